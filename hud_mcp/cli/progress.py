"""The progress of `hud-mcp eval`: lines that a terminal draws over and over.

Elsewhere, and with `--verbose`, each run that ended is a line.
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hud_mcp.base.text import clip
from hud_mcp.cli.output import WHY_CHARS, cell, print_line, telling_in_pipes, tone_style
from hud_mcp.rollout.run import PlannedRun, Rollout
from hud_mcp.values.outcome import Outcome, OutcomeClass

_SHOWN = 4
"""Runs under way that are named."""
_PAUSE_S = 10.0
"""The time without an ended run after which a pipe gets a line."""
_QUICK = 1.0
"""Runs a second from which a tenth of a run a minute is nothing."""
_RECENT = 64
"""Ends of runs that the rate is of."""


class Progress:
    """The progress of runs as they begin and end.

    Args:
        console: The console that shows the progress.
        total: The number of runs.
        group: The number of runs of each task.
        verbose: Whether each run that ended is a line on a terminal too.
        missed: Returns the expected reward of a run that got another, else None. The progress then
            counts such runs in place of a mean, and each is a line on a terminal too.
        pause_s: The time without an end after which a pipe gets a line about what goes on.

    Attributes:
        done: The results of the runs, in the order of their ends, without tries that were repeated.
        told: The printed reasons, each once, with each task that has had it.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        *,
        group: int,
        verbose: bool,
        missed: Callable[[Rollout], str | None] | None = None,
        pause_s: float = _PAUSE_S,
    ) -> None:
        self.done: list[Rollout] = []
        self.told: set[tuple[str, str]] = set()
        self._console = console
        self._total = total
        self._group = group
        self._lines = verbose or not console.is_terminal
        self._missed_by = missed
        self._missed = 0
        self._began_s = time.monotonic()
        self._ends_s: deque[float] = deque(maxlen=_RECENT)
        self._running: dict[int, float] = {}
        self._names: dict[int, str] = {}
        self._outcomes: Counter[OutcomeClass] = Counter()
        self._sum = 0.0
        self._note = "starting the server"
        self._pause_s = pause_s
        self._told = ExitStack()
        self._live = Live(
            console=console,
            get_renderable=self._drawn,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        in_pipe = not self._console.is_terminal
        self._told.enter_context(
            telling_in_pipes(self._tell, every_s=self._pause_s, is_wanted=in_pipe)
        )
        if not in_pipe:
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._console.is_terminal:
            self._live.stop()
        self._told.close()

    def _tell(self, passed_s: float) -> None:
        if self._ends_s and time.monotonic() - self._ends_s[-1] < self._pause_s:
            return
        what = self._under_way().plain
        if what:
            line = f"[{len(self.done)}/{self._total}] {what}, {_clock(passed_s)} since the start"
            self._console.print(cell(line, "dim"))

    def on_start(self, run: PlannedRun) -> None:
        """Note that a try begins."""
        self._note = ""
        self._running[id(run)] = time.monotonic()
        self._names[id(run)] = run_name(run, self._group)

    def on_end(self, done: Rollout, again: bool) -> None:  # noqa: FBT001  # a callback's
        """Note that a try has ended. Another try of the same run may follow."""
        self._running.pop(id(done.planned), None)
        if not again:
            self.done.append(done)
            self._ends_s.append(time.monotonic())
            self._outcomes[done.outcome] += 1
            self._sum += done.reward or 0.0
        expected = self._missed_by(done) if self._missed_by and not again else None
        self._missed += expected is not None
        if self._lines or expected:
            self._print(done, again=again, expected=expected)

    def on_death(self, text: str) -> None:
        """Note that the server has died."""
        self._console.print(cell(text, "yellow"))

    def on_note(self, text: str) -> None:
        """Print something that people have to know."""
        self._console.print(text, style="bold", soft_wrap=True, markup=False)

    def _print(self, done: Rollout, *, again: bool, expected: str | None) -> None:
        name = run_name(done.planned, self._group)
        reward = "" if done.reward is None else f" {done.reward:g}"
        number = f"[{len(self.done)}/{self._total}] " if not again else ""
        tail = "; it is tried again" if again else ""
        tail += f"; {expected}" if expected else ""
        line = f"{number}{name}: {done.outcome}{reward} ({done.seconds:.1f} s){tail}"
        style = "red" if expected else tone_style(done.outcome.tone)
        print_line(self._console, line, style)
        if done.error:
            is_new = done.error not in {text for _, text in self.told}
            self.told.add((done.planned.task.id, done.error))
            if not is_new:
                return
            self._console.print(cell(f"    {clip(done.error, WHY_CHARS)}", "red"), soft_wrap=True)

    def _drawn(self) -> Group:
        return Group(self._bar(), self._figures(), self._under_way())

    def _bar(self) -> Table:
        row = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=max(1, self._total), completed=len(self.done), width=32)
        elapsed_s = time.monotonic() - self._began_s
        rate = self._rate()
        parts = [bar, f"{len(self.done)}/{self._total}", _clock(elapsed_s)]
        if rate:
            left_s = (self._total - len(self.done)) / rate
            parts += [f"{_clock(left_s)} left", _per(rate)]
        row.add_row(*parts)
        return row

    def _figures(self) -> Text:
        text = Text()
        for name, number in self._outcomes.most_common():
            text.append(f"{number} {name}", style=tone_style(name.tone))
            text.append("   ")
        if self._missed_by is not None:
            told = f"{self._missed} not as expected" if self._missed else ""
            return text.append(told, style="red")
        graded = self._outcomes[Outcome.GRADED]
        text.append(f"mean {self._sum / graded:.3f} over {graded} graded" if graded else "")
        return text

    def _under_way(self) -> Text:
        if not self._running:
            return Text(self._note, style="dim")
        now = time.monotonic()
        oldest = sorted(self._running.items(), key=lambda item: item[1])
        shown = [f"{self._names[key]} {now - began:.0f} s" for key, began in oldest[:_SHOWN]]
        more = f" and {len(oldest) - _SHOWN} more" if len(oldest) > _SHOWN else ""
        text = Text(f"running {len(oldest)}: {', '.join(shown)}{more}", style="dim")
        text.truncate(self._console.width - 1, overflow="ellipsis")
        return text

    def _rate(self) -> float | None:
        """Return the runs a second, of those that ended last."""
        if not self._ends_s:
            return None
        began_s = self._ends_s[0] if len(self._ends_s) == _RECENT else self._began_s
        number = len(self._ends_s) - (1 if len(self._ends_s) == _RECENT else 0)
        return number / max(0.001, time.monotonic() - began_s)


def run_name(run: PlannedRun, group: int) -> str:
    """Return a run's task, and which of the group it is."""
    return run.task.id if group == 1 else f"{run.task.id} {run.place + 1}/{group}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _per(rate: float) -> str:
    return f"{60 * rate:,.0f}/min" if rate >= _QUICK else f"{60 * rate:.1f}/min"

"""What is shown while runs go on says the same at ten and at a thousand of them."""

import io
import re
import time
from collections.abc import Callable

from rich.console import Console

from hud_mcp.cli.output import Telling
from hud_mcp.cli.progress import Progress
from hud_mcp.rollout.run import PlannedRun, Rollout
from hud_mcp.task import Task
from hud_mcp.values.outcome import Outcome

GRADED, LOST = Outcome.GRADED, Outcome.LOST


def rollout(
    planned: PlannedRun,
    outcome: Outcome = GRADED,
    reward: float | None = 1.0,
    error: str | None = None,
) -> Rollout:
    """A run that has ended."""
    return Rollout(planned, "traj-1", outcome, reward, error, agent_failed=False, seconds=1.25)


def planned(number: int, place: int = 0) -> PlannedRun:
    """A run of a task with a long name."""
    return PlannedRun(Task(id=f"a-task-with-a-long-name-{number}", env="e", template="t"), place)


def console(*, terminal: bool, width: int = 80) -> Console:
    """A console that can be read."""
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)


def text_of(shown: Console) -> str:
    """What was printed, without the terminal's commands."""
    assert isinstance(shown.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.file.getvalue())


def test_a_thousand_runs_are_three_lines_on_a_terminal() -> None:
    """How many ended in which way, the mean so far with its denominator, and what runs now."""
    shown = console(terminal=True)
    progress = Progress(shown, 1000, group=1, verbose=False)
    runs = [planned(i) for i in range(950)]
    for i, run in enumerate(runs):
        progress.on_start(run)
        if i < 900:
            progress.on_end(rollout(run, *((LOST, None) if i % 9 == 0 else (GRADED, 0.5))), False)
    shown.print(progress._drawn())
    lines = text_of(shown).splitlines()
    assert len(lines) == 3
    assert "900/1000" in lines[0]
    assert "left" in lines[0]
    assert re.search(r"/s|/min", lines[0])
    assert lines[1].split("   ")[:2] == ["800 graded", "100 lost"]
    assert "mean 0.500 over 800 graded" in lines[1]
    assert lines[2].startswith("running 50: a-task-with-a-long-name-900 0 s, ")
    assert all(len(line) <= 80 for line in lines)


def test_a_pipe_gets_a_line_for_each_run_with_what_went_wrong() -> None:
    """With its number, its place in its group, its outcome, its reward and its time."""
    shown = console(terminal=False)
    progress = Progress(shown, 3, group=2, verbose=False)
    with progress:
        progress.on_start(planned(1, 1))
        progress.on_end(rollout(planned(1, 1), reward=0.25), False)
        progress.on_end(rollout(planned(2), LOST, None, "[red]the server[/] died"), True)
        progress.on_end(rollout(planned(2)), False)
    assert text_of(shown).splitlines() == [
        "[1/3] a-task-with-a-long-name-1 2/2: graded 0.25 (1.2 s)",
        "a-task-with-a-long-name-2 1/2: lost (1.2 s); it is tried again",
        "    [red]the server[/] died",
        "[2/3] a-task-with-a-long-name-2 1/2: graded 1 (1.2 s)",
    ]
    assert [done.outcome for done in progress.done] == [GRADED, GRADED]


def test_what_was_not_expected_is_a_line_on_a_terminal_too() -> None:
    """A proof counts such runs as it goes on, and makes no mean."""
    shown = console(terminal=True)
    expected = {0.0: None, 1.0: "less than 1 was expected"}
    progress = Progress(
        shown, 3, group=1, verbose=False, missed=lambda done: expected[done.reward or 0.0]
    )
    for number, reward in enumerate((0.0, 1.0)):
        progress.on_start(planned(number))
        progress.on_end(rollout(planned(number), reward=reward), False)
    assert text_of(shown).splitlines() == [
        "[2/3] a-task-with-a-long-name-1: graded 1 (1.2 s); less than 1 was expected"
    ]
    shown.print(progress._drawn())
    assert text_of(shown).splitlines()[2].split("   ") == ["2 graded", "1 not as expected"]


def test_a_terminal_gets_those_lines_only_if_asked() -> None:
    """`--verbose` prints them above the drawing."""
    for verbose in (False, True):
        shown = console(terminal=True)
        with Progress(shown, 1, group=1, verbose=verbose) as progress:
            progress.on_start(run := planned(1))
            progress.on_end(rollout(run), False)
        assert ("[1/1] a-task-with-a-long-name-1: graded 1" in text_of(shown)) is verbose


def test_a_pipe_is_told_what_goes_on_where_nothing_ends_for_long() -> None:
    """From a long start on; a terminal has its bar."""
    shown = console(terminal=False)
    with Progress(shown, 3, group=1, verbose=False, pause_s=0.01) as progress:
        wait_for(lambda: "[0/3] starting the server, 0:00:0" in text_of(shown))
        progress.on_start(planned(7))
        wait_for(lambda: "[0/3] running 1: a-task-with-a-long-name-7" in text_of(shown))


def test_a_long_work_says_how_far_it_is() -> None:
    """A line now and then in a pipe; what is soon done says nothing."""
    told = io.StringIO()
    Telling("exporting as jsonl", target=told, every_s=0).show(3, 10, "traj-1")
    Telling("exporting as jsonl", target=told).show(4, 10)
    assert told.getvalue() == "exporting as jsonl: 3/10; traj-1\n"


def wait_for(told: Callable[[], bool]) -> None:
    """Wait until another thread has printed something."""
    until_s = time.monotonic() + 60
    while not told():
        assert time.monotonic() < until_s
        time.sleep(0.005)

"""`hud-mcp eval`: an agent through a taskset, with progress, a table and a report."""

import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import click
from platformdirs import user_data_path
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hud_mcp import rollout
from hud_mcp.agents.command import CommandAgent
from hud_mcp.agents.nop import NopAgent
from hud_mcp.agents.oracle import OracleAgent
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.grade import Outcome
from hud_mcp.job import Job
from hud_mcp.log import configure_logging
from hud_mcp.rollout import Rollout, ServerCommand, Solver
from hud_mcp.source import find_taskset, load_environments, shipped_environments
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset
from hud_mcp.web.report import write_report

__all__ = ["command"]

_TOLERANCE = 1e-6
_STYLES = {"graded": "green", "cancelled": "yellow", "expired": "yellow"}


@click.command("eval")
@click.argument("taskset")
@click.option("--agent", type=click.Choice(["oracle", "nop"]), help="A built-in agent.")
@click.option("--agent-command", metavar="COMMAND", help="Any command; see the README.")
@click.option("--env", "sources", multiple=True, metavar="SOURCE", help="Where environments are.")
@click.option(
    "--filter", "pattern", metavar="PATTERN", help="Only ids, environments or templates like this."
)
@click.option("--max-concurrent", type=click.IntRange(1), default=4, help="Tasks at once.")
@click.option(
    "--timeout", type=click.FloatRange(1), default=600.0, help="Seconds for a command on one task."
)
@click.option("--store", metavar="URL", help="A SQLite file or a database URL for the record.")
@click.option(
    "--report", "report_path", type=click.Path(path_type=Path), help="Where to write the report."
)
@click.option("--name", help="What to call the job.")
@click.option(
    "--image", type=click.Choice(["jpeg", "png"]), default="jpeg", help="Format of pictures."
)
def command(**options: Any) -> None:
    """Run an agent through a TASKSET (a .jsonl file, or the name of a shipped one).

    The agent reaches the server as any client does, in another process. The exit status
    is 0 if every task ended as expected: for the oracle and the nop, with the reward that
    the taskset says; for a command, with a grade.
    """
    if (options["agent"] is None) == (options["agent_command"] is None):
        raise click.UsageError("Give --agent oracle, --agent nop, or --agent-command COMMAND.")
    configure_logging("warning")
    sys.exit(anyio.run(_evaluate, options))


async def _evaluate(options: dict[str, Any]) -> int:
    path = find_taskset(options["taskset"])
    tasks = Taskset.load(path)
    chosen = tasks.filter(options["pattern"]) if options["pattern"] else tasks
    if not len(chosen):
        raise HudMcpError(
            f"No task of {path} is like {options['pattern']!r}; `hud-mcp tasks` lists them, and * "
            "matches anything."
        )
    sources = _sources(options["sources"], chosen, path)
    solver = _built_in(options["agent"], sources, chosen)
    store = Store(options["store"])
    agent = options["agent"] or options["agent_command"]
    job = Job(name=options["name"] or f"{tasks.name} {agent}", taskset=tasks.name, agent=agent)
    await store.add_job(job)
    console = Console()
    report = options["report_path"] or user_data_path("hud-mcp") / "reports" / f"{job.id}.html"
    report.parent.mkdir(parents=True, exist_ok=True)
    log_path = report.with_suffix(".log")
    expected = {t.id: _expected(t, options["agent"]) for t in chosen}
    live = _Live(console, len(chosen))
    try:
        with log_path.open("w") as log, tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            rows = Path(folder) / path.name
            chosen.save(rows)  # the server loads what this run needs, and nothing else
            server = ServerCommand(
                sources, rows, store.url, job.id, log, ("--image", options["image"])
            )
            with live:
                signalled = await _until_signalled(
                    partial(_run, options, server, chosen, store, live, built_in=solver)
                )
        done = [live.done[t.id] for t in chosen if t.id in live.done]
        _print_results(console, done, expected)
        await write_report(store, job.id, report, expected=expected)
    finally:
        await store.close()
    console.print(f"Job {job.id}. Server log: {log_path}", style="dim", soft_wrap=True)
    console.print(f"Report: {report.resolve()}", soft_wrap=True)
    if signalled is not None:
        text = f"Interrupted: {len(done)} of {len(chosen)} tasks ended; the others were cut off."
        console.print(text, style="red")
        return 128 + signalled
    wrong = [r for r in done if not _as_expected(r, expected[r.task.id], options["agent"])]
    if wrong:
        console.print(f"{len(wrong)} of {len(done)} tasks did not end as expected.", style="red")
    return 1 if wrong else 0


def _built_in(agent: str | None, sources: Sequence[str], tasks: Taskset) -> Solver | None:
    """The built-in agent of that name, or None for a command's.

    Raises:
        InvalidTask: The oracle is wanted, and templates have none.
    """
    if agent is None:
        return None
    if agent == "nop":
        return NopAgent()
    environments = {e.name: e for e in load_environments(sources)}
    wanted = {(t.env, t.template) for t in tasks if t.env in environments}
    templates = [environments[env].find_template(template) for env, template in sorted(wanted)]
    without = [f"{t.id} ({t.where})" for t in templates if t.oracle_function is None]
    if without:
        raise InvalidTask(
            f"These templates have no oracle: {', '.join(without)}. Declare one with "
            "@<template>.oracle, or leave their tasks out with --filter."
        )
    return OracleAgent(environments.values())


async def _until_signalled(work: Callable[[], Awaitable[None]]) -> int | None:
    """Run until it ends or a signal says to stop, and then in order; return the signal."""
    if os.name == "nt":  # there, only Ctrl-C comes, as an exception
        await work()
        return None
    caught: int | None = None
    # Outside of what is cancelled: a second signal does not cut the end of the run short.
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                nonlocal caught
                async for number in signals:
                    caught = int(number)
                    group.cancel_scope.cancel()

            group.start_soon(watch)
            await work()
            group.cancel_scope.cancel()
    return caught


async def _run(
    options: dict[str, Any],
    server: ServerCommand,
    tasks: Taskset,
    store: Store,
    live: "_Live",
    *,
    built_in: Solver | None,
) -> None:
    shared: dict[str, Any] = {
        "store": store,
        "max_concurrent": options["max_concurrent"],
        "on_start": live.on_start,
        "on_end": live.on_end,
    }
    if built_in is not None:
        async with rollout.stdio_server(server) as call:
            await rollout.roll_out(list(tasks), solver=built_in, call_tool=call, **shared)
        return
    async with rollout.http_server(server) as (call, url, token):
        solver = CommandAgent(
            options["agent_command"], url=url, token=token, timeout_s=options["timeout"]
        )
        await rollout.roll_out(list(tasks), solver=solver, call_tool=call, **shared)


class _Live:
    """Progress while tasks run: a bar with what is under way, or a line for each that ended."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self.done: dict[str, Rollout] = {}
        self._running: list[str] = []
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[running]}", markup=True),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._bar = self._progress.add_task("tasks", total=total, running="starting the server")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._progress.stop()

    def on_start(self, task: Task) -> None:
        self._running.append(task.id)
        self._show()

    def on_end(self, done: Rollout) -> None:
        self._running.remove(done.task.id)
        self.done[done.task.id] = done
        reward = "" if done.reward is None else f" {done.reward:g}"
        line = f"[{len(self.done)}/{self._total}] {done.task.id}: {done.outcome}{reward}"
        style = _STYLES.get(done.outcome, "red")
        self._progress.console.print(
            f"{line} ({done.seconds:.1f} s)", style=style, markup=False, highlight=False
        )
        if done.error:
            self._progress.console.print(
                f"    {done.error[:500]}", style="red", markup=False, highlight=False
            )
        self._progress.advance(self._bar)
        self._show()

    def _show(self) -> None:
        running = ", ".join(self._running[:4]).replace("[", "\\[")
        self._progress.update(self._bar, running=running)


def _sources(given: Sequence[str], tasks: Taskset, path: Path) -> list[str]:
    """Where the environments of the tasks are: as given, shipped, or beside the taskset."""
    if given:
        return list(given)
    shipped = shipped_environments()
    beside = path.parent / "env.py"
    found: list[str] = []
    for name in tasks.environment_names:
        if name in shipped:
            found.append(name)
        elif beside.is_file():
            found.append(str(beside))
        elif Path("env.py").is_file():
            found.append("env.py")
        else:
            raise HudMcpError(
                f"{path} needs environment {name!r}, which is not shipped ({', '.join(shipped)}); "
                "say where it is with --env path/to/env.py."
            )
    return list(dict.fromkeys(found))


def _expected(task: Task, agent: str | None) -> float | None:
    if task.validation is None or agent is None:
        return None
    return task.validation.oracle if agent == "oracle" else task.validation.nop


def _as_expected(done: Rollout, expected: float | None, agent: str | None) -> bool:
    if done.outcome != Outcome.GRADED.value or (agent is not None and done.error):
        return False
    return expected is None or abs((done.reward or 0.0) - expected) <= _TOLERANCE


def _print_results(
    console: Console, done: Sequence[Rollout], expected: dict[str, float | None]
) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("outcome")
    for name in ("reward", "expected", "steps", "seconds"):
        table.add_column(name, justify="right")
    for result in done:
        wanted = expected[result.task.id]
        steps = len(result.trajectory.steps) if result.trajectory else 0
        table.add_row(
            result.task.id,
            f"[{_STYLES.get(result.outcome, 'red')}]{result.outcome}",
            "" if result.reward is None else f"{result.reward:g}",
            "" if wanted is None else f"{wanted:g}",
            str(steps),
            f"{result.seconds:.1f}",
        )
    console.print(table)
    rewards = [r.reward for r in done if r.reward is not None]
    counts = Counter(r.outcome for r in done)
    mean = f"mean reward {sum(rewards) / len(rewards):.3f}" if rewards else "no rewards"
    others = ", ".join(f"{n} {name}" for name, n in counts.items() if name != "graded")
    text = f"{mean} over {len(rewards)} graded of {len(done)} tasks"
    console.print(f"{text}{'; ' + others if others else ''}.", style="bold")

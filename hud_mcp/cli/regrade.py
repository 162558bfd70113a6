"""`hud-mcp regrade`: the stored answers of a job, graded again without its agent."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import click
import orjson
from rich.console import Console
from rich.text import Text

from hud_mcp.analysis.tries import choose_runs, counting, outcome_class
from hud_mcp.base.egress import read_hosts
from hud_mcp.cli.help import Command
from hud_mcp.cli.options import (
    WholeNumber,
    allow_option,
    complete_jobs,
    in_store,
    json_option,
    store_option,
)
from hud_mcp.cli.output import Telling, cell, make_console, make_table, print_table
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.provenance import sets_metadata
from hud_mcp.loading.sets import find_taskset
from hud_mcp.loading.source import load_environments
from hud_mcp.record.job import Job
from hud_mcp.record.place import check_place
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.regrade import LIVE_WORLD, NO_ANSWER, PRUNED, Regraded, Regrader
from hud_mcp.session.log import LineStream, configure_logging
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store, opened_store

_ROWS = 60
"""A longer table shows only what has changed, or could not be graded."""


@click.command(
    "regrade",
    Command,
    epilog="Exit status: 0 if every answer was graded again. 1 if one was not, or the job has "
    "none. 2 for a mistake in the options.",
)
@click.argument("job", shell_complete=complete_jobs)
@click.option(
    "--taskset",
    metavar="FILE",
    help="Grade by the rows of this taskset with the same ids. Default: the recorded rows.",
)
@click.option(
    "--env", "sources", multiple=True, metavar="SOURCE", help="The source of the environments."
)
@click.option(
    "--max-concurrent",
    type=WholeNumber(1),
    metavar="N",
    default=4,
    help="The most gradings at one time.",
)
@click.option("--name", metavar="NAME", help="The new job's name.")
@json_option
@allow_option
@store_option
def command(**options: Any) -> None:
    """Grade the stored answers of a JOB again. A unique beginning of its id is enough.

    No agent runs. For a grader that looks at the world, the command repeats the recorded steps in a
    new world. If it cannot, the row keeps its grade and says that it needs the live world. The new
    grades form a new job; the old grades stay.
    """
    configure_logging("error")
    raise_file_limit()
    sys.exit(anyio.run(_run, options))


async def _run(options: dict[str, Any]) -> int:
    console = make_console(lasting=True)
    check_place(options["store"])
    async with opened_store(options["store"]) as store:
        old, tasks, runs = await _load(store, options)
        new = Job(
            name=options["name"] or f"{old.name}, regraded",
            taskset=old.taskset,
            agent=old.agent,
            group=old.group,
            planned=True,
            metadata={"regrade_of": old.id, **sets_metadata(tasks, old.set_of, old.taskset)},
        )
        sessions = Sessions(
            load_environments(_sources(options, old, tasks)),
            store=store,
            limits=_limits(options["max_concurrent"]),
            job_id=new.id,
            resumes=False,
            local_hosts=read_hosts(options["allow"]),
        )
        await store.add_job(new, tasks)
        done = await _regrade(sessions, tasks, runs, options)
    if options["as_json"]:
        for row in done:
            click.echo(orjson.dumps(_fields(row)))
    else:
        _print(console, done, old, new, options["store"])
    failed = [row for row in done if not row.is_graded and row.outcome != NO_ANSWER]
    return 1 if failed or not any(row.is_graded for row in done) else 0


async def _load(
    store: Store, options: dict[str, Any]
) -> tuple[Job, list[Task], list[TrajectorySummary]]:
    """Return the job, the tasks by which its answers are graded, and the runs of it that count."""
    job, tasks, runs = await store.load_job_summary(await store.find_job_id(options["job"]))
    of_task: dict[str, list[TrajectorySummary]] = {task.id: [] for task in tasks}
    for run in counting(runs):
        of_task.setdefault(run.task_id, []).append(run)
    counted = [run for all_of in of_task.values() for run in choose_runs(all_of, job.group)[0]]
    if not counted:
        raise HudMcpError(f"Job {job.id} has no runs; there is nothing to grade again.")
    if options["taskset"]:
        rows = Taskset.from_file(find_taskset(options["taskset"]))
        chosen = [rows[task_id] for task_id in of_task if task_id in rows]
        if not chosen:
            raise HudMcpError(
                f"No row of {options['taskset']} has the id of a task of job {job.id}; rows are "
                f"found by id, such as {next(iter(of_task))!r}."
            )
        return job, chosen, counted
    if job.damage or not tasks:  # each run has recorded its task too
        tasks = list({run.task_id: run.task for run in counted}.values())
    return job, tasks, counted


def _sources(options: dict[str, Any], job: Job, tasks: Sequence[Task]) -> Sequence[str]:
    if not options["sources"] and "options" in job.metadata:
        return RunOptions.of(job).sources
    place = find_taskset(options["taskset"]) if options["taskset"] else Path()
    return find_sources(options["sources"], Taskset(tasks, name=f"Job {job.id}"), place)


def _limits(max_concurrent: int) -> Limits:
    default = Limits()
    return default.model_copy(
        update={
            "sessions": max(default.sessions, 2 * max_concurrent),
            "sessions_per_caller": max(default.sessions_per_caller, 2 * max_concurrent),
        }
    )


async def _regrade(
    sessions: Sessions,
    tasks: Sequence[Task],
    runs: Sequence[TrajectorySummary],
    options: dict[str, Any],
) -> list[Regraded]:
    ended = 0

    def on_end(row: Regraded) -> None:
        nonlocal ended
        ended += 1
        telling.show(ended, len(runs), row.original.task_id)

    printed = sys.stdout
    sys.stdout = LineStream(sys.stderr)  # what a template prints is no result of this command
    regrader = Regrader(sessions, {task.id: task for task in tasks})
    try:
        with Telling("graded again") as telling:
            return await regrader.regrade(
                runs, max_concurrent=options["max_concurrent"], on_end=on_end
            )
    finally:
        await sessions.close()
        sys.stdout = printed


def _fields(row: Regraded) -> dict[str, Any]:
    return {
        "task": row.original.task_id,
        "original": row.original.id,
        "old_outcome": outcome_class(row.original),
        "old_reward": row.original.reward,
        "trajectory": row.trajectory_id,
        "outcome": row.outcome,
        "reward": row.reward,
        "changed": row.has_changed,
        "reason": row.reason,
    }


def _print(
    console: Console, done: Sequence[Regraded], old: Job, new: Job, store: str | None
) -> None:
    rows = done
    jobs = in_store(f"hud-mcp jobs {new.id}", store)
    if len(rows) > _ROWS:
        rows = [row for row in done if row.has_changed or not row.is_graded][:_ROWS]
    table = make_table("task", "old", "new", "change", "why", right=("old", "new", "change"))
    for row in rows:
        style = "" if row.is_graded and not row.has_changed else "yellow"
        table.add_row(
            cell(row.original.task_id),
            cell(_shown(row.original.reward, outcome_class(row.original))),
            cell(_shown(row.reward, row.outcome), style),
            _change(row),
            cell(row.reason or "", "yellow"),
        )
    if rows:
        print_table(console, table, whole="task")
    if len(rows) < len(done):
        telling = sum(row.has_changed or not row.is_graded for row in done)
        text = f"Not shown: {len(done) - telling} that did not change"
        text += f", and {telling - len(rows)} more like these." if telling > len(rows) else "."
        console.print(cell(f"{text} `{jobs}` lists all new grades.", "dim"))
    for line in _summary(done):
        console.print(cell(line, "bold"))
    console.print(cell(f"Job {new.id}: `{jobs}` shows it.", "dim"))
    if old.damage:
        console.print(cell(old.damage, "red"))


def _summary(done: Sequence[Regraded]) -> list[str]:
    graded = [row for row in done if row.is_graded]
    changed = sum(row.has_changed for row in graded)
    lines = [f"Graded again: {len(graded)} of {len(done)} runs; {changed} changed."]
    both = [(row.original.reward, row.reward) for row in graded]
    pairs = [(old, new) for old, new in both if old is not None and new is not None]
    if pairs:
        before = sum(old for old, _ in pairs) / len(pairs)
        after = sum(new for _, new in pairs) / len(pairs)
        lines.append(
            f"Mean reward of the {len(pairs)} with both grades: {before:.3f} before, "
            f"{after:.3f} now."
        )
    if len(pairs) < len(graded):
        lines.append(f"{len(graded) - len(pairs)} had no grade before.")
    kept = Counter(row.outcome for row in done if not row.is_graded)
    if kept:
        what = ", ".join(f"{number} {_SAID.get(name, name)}" for name, number in kept.items())
        lines.append(f"The others keep what they had: {what}.")
    return lines


_SAID = {LIVE_WORLD: "need the live world", NO_ANSWER: "without an answer", PRUNED: "pruned"}


def _shown(reward: float | None, outcome: str) -> str:
    if reward is not None:
        return f"{reward:g}"
    return "needs the live world" if outcome == LIVE_WORLD else outcome


def _change(row: Regraded) -> Text:
    if not row.is_graded or row.reward is None:
        return Text("kept", style="dim")
    if row.original.reward is None:
        return Text("new", style="yellow")
    difference = row.reward - row.original.reward
    return Text(f"{difference:+g}", style="yellow") if difference else Text("")

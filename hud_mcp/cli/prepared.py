"""A job of `hud-mcp eval` before it runs: a new one, or one that is taken up again."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio.to_thread

from hud_mcp.agents.command import command_name
from hud_mcp.analysis.tries import counting
from hud_mcp.cli.bridges import is_bridged
from hud_mcp.cli.hosts import read_hosts
from hud_mcp.cli.places import find_sources, lasting_source
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.loading.contexts import contexts_for, spread
from hud_mcp.loading.importers.rows import count
from hud_mcp.loading.protocols import PROTOCOL, PROTOCOLS, TIMEOUT_S, Conduct, ProtocolRecord
from hud_mcp.loading.provenance import (
    LEFT_OUT,
    UNUSED,
    LeftOut,
    UnusedContexts,
    leave_out,
    unused_contexts,
    why_not_runnable,
)
from hud_mcp.loading.source import find_taskset, load_environments
from hud_mcp.record.job import Job
from hud_mcp.rollout.plan import PlannedRun, RunOptions, plan_runs
from hud_mcp.rollout.run import end_as_lost
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset

__all__ = ["Prepared", "begin_job", "resume_job"]

_SHOWN_REASONS = 3


@dataclass(frozen=True)
class Prepared:
    """A job that is ready to run.

    Attributes:
        job: The job; it is recorded.
        tasks: Everything that it runs.
        planned: What is still to be run of it.
        how: How it is run.
    """

    job: Job
    tasks: Sequence[Task]
    planned: Sequence[PlannedRun]
    how: RunOptions


async def begin_job(store: Store, options: Mapping[str, Any]) -> Prepared:
    """Begin a job with the command's options; it is recorded, with what it needs to be resumed.

    Raises:
        SourceNotFound: There is no such taskset, environment or file of contexts.
        InvalidContext: A context does not fit an environment of the tasks.
        HudMcpError: No task is meant.
    """
    path = await anyio.to_thread.run_sync(find_taskset, options["taskset"])
    tasks = Taskset.from_file(path)
    if not len(tasks):
        raise HudMcpError(f"{path} holds no tasks. Write one as JSON on each line.")
    chosen, left_out = _runnable(_chosen(tasks, path, options))
    chosen, conduct, protocol = _as_published(chosen, tasks, options)
    timeout_s = conduct.timeout_s or (TIMEOUT_S if protocol else options["timeout"])
    sources = find_sources(options["sources"], chosen, path if path.is_dir() else path.parent)
    how = _how(options, sources, timeout_s=timeout_s, max_steps=conduct.max_steps)
    chosen, unsolved = _solvable(how, chosen)
    left_out = [*left_out, *unsolved]
    chosen = _bound(chosen, how)
    unused: UnusedContexts | None = None
    if options["contexts"] is not None:
        chosen, unused = _spread(chosen, how, options["contexts"], options["context_selector"])
    metadata: dict[str, Any] = {"options": how.model_dump(mode="json", exclude_none=True)}
    if unused is not None:
        metadata[UNUSED] = unused.model_dump(mode="json")
    if left_out:
        metadata[LEFT_OUT] = [each.model_dump(mode="json") for each in left_out]
    if protocol is not None:
        metadata[PROTOCOL] = protocol.model_dump(mode="json")
    agent = how.agent or command_name(how.agent_command or "", Path(how.folder))
    job = Job(
        name=options["name"] or f"{tasks.name} {agent}",
        taskset=tasks.name,
        agent=agent,
        group=options["group"],
        planned=True,
        metadata=metadata,
    )
    await store.add_job(job, list(chosen))
    planned = plan_runs(list(chosen), [], group=job.group, seed=how.seed)
    return Prepared(job, list(chosen), planned, how)


def _how(
    options: Mapping[str, Any], sources: Sequence[str], *, timeout_s: float, max_steps: int | None
) -> RunOptions:
    """How a new job is run, by the command's options and what a protocol makes of them."""
    return RunOptions(
        agent=options["agent"],
        agent_command=options["agent_command"],
        sources=tuple(lasting_source(source) for source in sources),
        folder=str(Path.cwd()),
        timeout_s=timeout_s,
        max_steps=max_steps,
        max_concurrent=options["max_concurrent"],
        retries=options["retries"],
        seed=options["seed"],
        image=options["image"],
        contexts=options["contexts"],
        context_selector=options["context_selector"] if options["contexts"] else None,
        protocol=options["protocol"],
        allow=read_hosts(options["allow"]),
    )


async def resume_job(store: Store, options: Mapping[str, Any]) -> Prepared:
    """Take a job up again from its record; what an earlier run left without an end is lost.

    Raises:
        HudMcpError: It is no job of this command, or it is still run by another process.
    """
    job_id = await store.find_job_id(options["resume"])
    job, tasks, runs = await store.load_job_summary(job_id)
    if job.damage:
        raise HudMcpError(f"Job {job.id} cannot be resumed as it is. {job.damage}")
    if job.is_proof:
        raise HudMcpError(
            f"Job {job.id} proves tasks, and no agent runs it: `hud-mcp check --resume {job.id}` "
            "goes on with it."
        )
    how = RunOptions.of(job)
    if options["sources"]:
        how = how.model_copy(
            update={"sources": tuple(lasting_source(s) for s in options["sources"])}
        )
    for run in counting(runs):
        text = "The evaluation that it belongs to ended before it did."
        if run.outcome is None and not await end_as_lost(store, run.id, text):
            raise HudMcpError(
                f"A server process is still at work on {run.id} of job {job_id}. Wait for the "
                "evaluation that runs it, or stop that one first."
            )
    _solvable(how, Taskset(tasks), every=True)
    planned = plan_runs(tasks, runs, group=job.group, seed=how.seed)
    given = {name: options[name] for name in ("max_concurrent", "retries")}
    how = how.model_copy(update={name: n for name, n in given.items() if n is not None})
    return Prepared(job, tasks, planned, how)


def _chosen(tasks: Taskset, path: Path, options: Mapping[str, Any]) -> Taskset:
    """The tasks that the options mean.

    Raises:
        InvalidTask: There is no such split.
        HudMcpError: None is like the pattern.
    """
    chosen = tasks.split(options["split"]) if options.get("split") else tasks
    if options["pattern"]:
        chosen = chosen.filter(options["pattern"])
    if not len(chosen):
        raise HudMcpError(
            f"No task of {path} is like {options['pattern']!r}; `hud-mcp tasks` lists them, and * "
            "matches anything."
        )
    return chosen


def _runnable(tasks: Taskset) -> tuple[Taskset, list[LeftOut]]:
    """The rows that run here, and why the others do not.

    Raises:
        HudMcpError: None runs here.
    """
    counted = count(tasks)
    if counted.rows and not counted.runnable:
        why = "; ".join(list(counted.reasons)[:_SHOWN_REASONS])
        raise HudMcpError(f"None of {counted.rows} tasks of {tasks.name} runs here: {why}.")
    without = ((task, why) for task in tasks if (why := why_not_runnable(task)) is not None)
    return tasks.filter(lambda task: why_not_runnable(task) is None), leave_out(without)


def _as_published(
    chosen: Taskset, whole: Taskset, options: Mapping[str, Any]
) -> tuple[Taskset, Conduct, ProtocolRecord | None]:
    """The rows as the protocol that is wanted has them, how they are run, and what differs.

    Raises:
        InvalidTask: A row is none of that benchmark.
    """
    conduct = Conduct(
        max_steps=options["max_steps"],
        timeout_s=options["own_timeout"],
        contexts=options["contexts"],
        judge=os.environ.get("HUD_MCP_JUDGE_MODEL", ""),
        judge_url=os.environ.get("HUD_MCP_JUDGE_URL", ""),
    )
    if options["protocol"] is None:
        return chosen, conduct, None
    protocol = PROTOCOLS[options["protocol"]]
    if conduct.max_steps is None:
        conduct = replace(conduct, max_steps=protocol.max_steps)
    rows = [protocol.published(task, conduct) for task in chosen]
    made = Taskset(rows, name=chosen.name, id=chosen.id, description=chosen.description)
    return made, conduct, protocol.record(rows, conduct, whole=count(whole).runnable)


def _spread(
    tasks: Taskset, how: RunOptions, contexts: str, selector: str
) -> tuple[Taskset, UnusedContexts | None]:
    """Give each task a context, or every one; tell which contexts no task got.

    Raises:
        SourceNotFound: There is no such file.
        InvalidContext: A context does not fit an environment, or an environment has none to draw.
        InvalidTask: The id of a row would be too long, or there twice.
    """
    spaces = {e.name: e.context_space for e in load_environments(how.sources)}
    wanted = {name: spaces[name] for name in tasks.environment_names if name in spaces}
    found = contexts_for(contexts, wanted, seed=how.seed or 0)
    rows = spread(tasks, found, selector=selector, seed=how.seed or 0)
    names = {env: [named.name for named in given] for env, given in found.items()}
    return rows, unused_contexts(names, rows)


def _bound(tasks: Taskset, how: RunOptions) -> Taskset:
    """The tasks as their environments read them, before anything is recorded or runs.

    Those of a server that is bridged are checked there.

    Raises:
        InvalidTask: Naming the file, the line and the field of the first that cannot be run.
    """
    if any(is_bridged(source) for source in how.sources):
        return tasks
    found = Catalogue(load_environments(how.sources), [tasks]).tasks
    return Taskset(found, name=tasks.name, id=tasks.id, description=tasks.description)


def _solvable(
    how: RunOptions, tasks: Taskset, *, every: bool = False
) -> tuple[Taskset, list[LeftOut]]:
    """What the agent can play, and what is left out, found out before anything runs.

    The oracle plays what has one. Any other agent plays all.

    Args:
        how: How the job is run.
        tasks: The rows.
        every: Whether all of them have to be played, as they were recorded.

    Raises:
        InvalidTask: None has an oracle, or, where all are to be played, some have not.
    """
    if how.agent != "oracle":
        return tasks, []
    environments = {e.name: e for e in load_environments(how.sources)}
    why = {task.id: _unsolved(task, environments) for task in tasks}
    chosen = tasks.filter(lambda task: why[task.id] is None)
    if len(chosen) == len(tasks):
        return tasks, []
    if every or not len(chosen):
        raise InvalidTask(_nothing_to_play(tasks, environments))
    return chosen, leave_out((task, said) for task in tasks if (said := why[task.id]) is not None)


def _unsolved(task: Task, environments: Mapping[str, Environment]) -> str | None:
    """Why the oracle cannot play a task; None where it can, or another server knows."""
    if task.prompt is not None:
        return "a prompt has no oracle"
    if task.env not in environments:
        return None
    template = environments[task.env].find_template(task.template)
    return "its template has no oracle" if template.oracle_function is None else None


def _nothing_to_play(tasks: Taskset, environments: Mapping[str, Environment]) -> str:
    """What to do where tasks have no oracle."""
    if asked := [task.id for task in tasks if task.prompt is not None]:
        more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
        return (
            f"Tasks with a prompt have no oracle: {asked[0]}{more}. Play them with --agent nop or "
            "--agent-command, or leave them out with --filter."
        )
    wanted = {(t.env, t.template) for t in tasks if t.env in environments}
    templates = [environments[env].find_template(name) for env, name in sorted(wanted)]
    without = [f"{t.id} ({t.where})" for t in templates if t.oracle_function is None]
    return (
        f"These templates have no oracle: {', '.join(without)}. Declare one with "
        "@<template>.oracle, or leave their tasks out with --filter."
    )

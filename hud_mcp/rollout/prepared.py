"""A job before it runs: a new one, or a resumed one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from hud_mcp.environment import Environment, declared_environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidAgent, InvalidTask
from hud_mcp.loading.contexts import SELECTORS, contexts_for, spread
from hud_mcp.loading.find import declared_source, find_sources
from hud_mcp.loading.protocols import PROTOCOL, PROTOCOLS, TIMEOUT_S, Conduct, ProtocolRecord
from hud_mcp.loading.provenance import (
    LEFT_OUT,
    UNUSED,
    LeftOut,
    UnusedContexts,
    leave_out,
    sets_metadata,
    unused_contexts,
    why_not_runnable,
)
from hud_mcp.loading.public import count
from hud_mcp.loading.source import (
    Source,
    lasting_source,
    load_environments,
    narrow_sources,
    shipped_name,
)
from hud_mcp.record.job import IN_PROCESS, Job, new_job_id
from hud_mcp.rollout.agents import agent_name, check_agent, with_options
from hud_mcp.rollout.options import JobOptions, RunOptions
from hud_mcp.rollout.run import PlannedRun, plan_runs
from hud_mcp.rollout.trusted import end_left_runs, load_resumable
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.store import Store

_SHOWN_REASONS = 3


@dataclass(frozen=True)
class JobRequest:
    """A new job as somebody wants it.

    Its options choose from the tasks. Without sources, the environments of the tasks are found.
    `files` has the place of each set by its name, and is empty if a program made the tasks.
    """

    tasks: Taskset
    options: JobOptions
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    job_id: str | None = None

    @property
    def place(self) -> str:
        """The place of its tasks, for people."""
        return ", ".join(map(str, self.files.values())) or self.tasks.name


@dataclass(frozen=True)
class Prepared:
    """A recorded job, the runs that it still needs, and its model's cost so far."""

    job: Job
    tasks: Sequence[Task]
    planned: Sequence[PlannedRun]
    how: RunOptions
    spent_usd: float = 0.0


async def begin_job(store: Store | None, request: JobRequest) -> Prepared:
    """Begin a job, and record it with all that a resumption needs. Without a store, only check it.

    Raises:
        SourceNotFound: There is no such environment or file of contexts.
        InvalidContext: A context does not fit an environment of the tasks.
        HudMcpError: No task matches.
    """
    tasks, how = request.tasks, request.options.recorded()
    how = how.model_copy(update={"folder": str(Path.cwd())})
    check_agent(how)
    check_in_process(how)  # before anything is recorded: a job that cannot run leaves no trace
    chosen, left_out = _runnable(_chosen(request))
    chosen, conduct, protocol = _as_published(chosen, request)
    sources = narrow_sources(  # other environments may need what this machine lacks
        how.sources or _find_sources(chosen, request), chosen.environment_names
    )
    how = how.model_copy(
        update={
            "sources": tuple(lasting_source(source) for source in sources),
            "timeout_s": conduct.timeout_s or (TIMEOUT_S if protocol else how.timeout_s),
            "max_steps": conduct.max_steps,
        }
    )
    if how.kind is not None and how.kind.is_person:
        more_s = request.options.own_timeout_s or TIMEOUT_S  # a person does one thing at a time
        how = how.model_copy(update={"max_concurrent": 1, "timeout_s": more_s})
    chosen = _fitting(chosen, how)  # first, as its error names the file and the line of a wrong row
    chosen, unsolved = solvable(how, chosen)
    chosen, how, unserved = await anyio.to_thread.run_sync(_served, how, chosen)
    left_out = [*left_out, *unsolved, *unserved]
    unused: UnusedContexts | None = None
    if how.contexts is not None:  # after the check: an error names the row as its file has it
        chosen, unused = _spread(chosen, how, how.contexts)
    metadata = _metadata(how, unused, left_out, protocol)
    metadata |= sets_metadata(chosen, tasks.set_of, tasks.name)
    agent = agent_name(how)
    job = Job(
        id=request.job_id or new_job_id(),
        name=request.options.name or f"{tasks.name} {agent}",
        taskset=tasks.name,
        agent=agent,
        group=request.options.group,
        planned=True,
        metadata=metadata,
    )
    if store is not None:
        await store.add_job(job, list(chosen))  # from here on, a resumption needs nothing else
    planned = plan_runs(list(chosen), [], group=job.group, seed=how.seed)
    return Prepared(job, list(chosen), planned, how)


def _metadata(
    how: RunOptions,
    unused: UnusedContexts | None,
    left_out: Sequence[LeftOut],
    protocol: ProtocolRecord | None,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"options": how.model_dump(mode="json", exclude_none=True)}
    if how.agent_object is not None:
        metadata[IN_PROCESS] = True
    if unused is not None:
        metadata[UNUSED] = unused.model_dump(mode="json")
    if left_out:
        metadata[LEFT_OUT] = [each.model_dump(mode="json") for each in left_out]
    if protocol is not None:
        metadata[PROTOCOL] = protocol.model_dump(mode="json")
    return metadata


def check_in_process(how: RunOptions) -> None:
    """Check that a job's agent and environments can be in this process.

    Raises:
        HudMcpError: The agent is another process, or an environment is served elsewhere.
    """
    if not how.in_process:
        return
    if how.ray is not None:
        raise HudMcpError(
            "Servers on a cluster are no part of this process: give ray or in_process."
        )
    if how.workers is not None:
        raise HudMcpError(
            "workers run in their own processes; give workers or in_process, not both."
        )
    if how.is_remote:
        raise HudMcpError(
            f"{agent_name(how)} runs in its own process and calls a server. Leave out "
            "in_process, or give an agent that runs in this process."
        )
    remote = [source for source in how.sources if Source(source).is_remote]
    if remote:
        raise HudMcpError(f"{remote[0]} runs elsewhere, so leave in_process out.")


async def resume_job(
    store: Store,
    job_id: str,
    options: JobOptions,
    *,
    agent: str | None = None,
    of_model: Mapping[str, Any] | None = None,
) -> Prepared:
    """Take a job up again from its record.

    Runs that an earlier call left without an end are lost.

    Raises:
        HudMcpError: It is no such job, another process still runs it, or an option would make it
            another job.
    """
    job, tasks, runs = await load_resumable(store, job_id)
    if job.is_proof:
        raise HudMcpError(
            f"Job {job.id} belongs to `hud-mcp check`, not to an agent. `hud-mcp check --resume "
            f"{job.id}` continues it."
        )
    how = RunOptions.of(job)
    _check_agent(job, how, agent)
    how = with_options(how, of_model or {})
    check_agent(how)
    changed = options.changed
    if changed.get("sources"):
        changed["sources"] = tuple(lasting_source(each) for each in changed["sources"])
    how = how.model_copy(update=changed)
    # Only after the agent's check: a job that is refused keeps its record unchanged.
    await end_left_runs(store, job, runs)
    solvable(how, Taskset(tasks), every=True)
    planned = plan_runs(tasks, runs, group=job.group, seed=how.seed)
    check_in_process(how)
    # A budget holds for the whole job. An agent that is another process can report any cost.
    uses = [
        run.use for run in runs if run.use is not None and (run.use.source or not how.is_remote)
    ]
    spent_usd = sum(use.cost_usd or 0.0 for use in uses)
    return Prepared(job, tasks, planned, how, spent_usd)


def _check_agent(job: Job, how: RunOptions, given: str | None) -> None:
    """Check that a resumed job has the agent that it began with; else raise `InvalidAgent`."""
    if given is None and how.agent_object is None:
        return
    if given is None:
        raise InvalidAgent(
            f"{how.agent_object}, which is an agent in Python, runs job {job.id} inside its own "
            f"program. Resume it there: evaluate(agent={how.agent_object}, resume={job.id!r})."
        )
    if given == agent_name(how):
        return
    raise InvalidAgent(
        f"{agent_name(how)} runs job {job.id}, and {given} was passed. Pass the same agent, or "
        "start another job."
    )


def _chosen(request: JobRequest) -> Taskset:
    """Return the tasks that a request chooses.

    Raises:
        InvalidTask: There is no such split.
        HudMcpError: No task matches the pattern.
    """
    tasks, pattern, split = request.tasks, request.options.pattern, request.options.split
    if not len(tasks):
        raise HudMcpError(f"{request.place} holds no tasks. Write one as JSON on each line.")
    chosen = tasks.split(split) if split else tasks
    if pattern:
        chosen = chosen.filter(pattern)
    if not len(chosen):
        raise HudMcpError(
            f"No task of {request.place} matches {pattern!r}; `hud-mcp tasks` lists them, and * "
            "matches anything."
        )
    return chosen


def _find_sources(tasks: Taskset, request: JobRequest) -> list[str]:
    if request.files:
        parts = {name: tasks.filter(partial(_is_of, tasks, name)) for name in request.files}
        found = (find_sources((), parts[name], file) for name, file in request.files.items())
        return list(dict.fromkeys(source for sources in found for source in sources))
    here: dict[str, str] = {}
    for name in tasks.environment_names:
        declared = declared_environment(name)
        if declared is not None and shipped_name(name) is None:
            here[name] = declared_source(declared)  # the program's own is nearer than a file's
    others = tasks.filter(lambda task: task.env not in here)
    return [*here.values(), *find_sources((), others, Path.cwd())]


def _is_of(tasks: Taskset, name: str, task: Task) -> bool:
    return tasks.set_of(task.id) == name


def _runnable(tasks: Taskset) -> tuple[Taskset, list[LeftOut]]:
    """Return the rows that run here, and the others with reasons, or raise `HudMcpError`."""
    counted = count(tasks)
    if counted.rows and not counted.runnable:
        why = "; ".join(list(counted.reasons)[:_SHOWN_REASONS])
        raise HudMcpError(f"None of {counted.rows} tasks of {tasks.name} runs here: {why}.")
    without = ((task, why) for task in tasks if (why := why_not_runnable(task)) is not None)
    return tasks.filter(lambda task: why_not_runnable(task) is None), leave_out(without)


def _as_published(
    chosen: Taskset, request: JobRequest
) -> tuple[Taskset, Conduct, ProtocolRecord | None]:
    """Return a protocol's form of the rows, how they run, and the record of both.

    A row of another benchmark raises `InvalidTask`.
    """
    how = request.options
    conduct = Conduct(
        max_steps=how.max_steps,
        timeout_s=request.options.own_timeout_s,
        contexts=how.contexts,
        judge=os.environ.get("HUD_MCP_JUDGE_MODEL", ""),
        judge_url=os.environ.get("HUD_MCP_JUDGE_URL", ""),
    )
    if how.protocol is None:
        return chosen, conduct, None
    protocol = PROTOCOLS[how.protocol]
    if conduct.max_steps is None:  # the user's bound counts more than the protocol's
        conduct = replace(conduct, max_steps=protocol.max_steps)
    rows = [protocol.published(task, conduct) for task in chosen]
    made = Taskset(rows, name=chosen.name, id=chosen.id, description=chosen.description)
    return made, conduct, protocol.record(rows, conduct, whole=count(request.tasks).runnable)


def _spread(
    tasks: Taskset, how: RunOptions, contexts: str
) -> tuple[Taskset, UnusedContexts | None]:
    """Give each task a context, or every context. Return the contexts that no task got, too.

    Raises:
        SourceNotFound: There is no such file.
        InvalidContext: A context does not fit an environment, or an environment has no features to
            draw.
        InvalidTask: The id of a row would be too long, or stand there twice.
    """
    spaces = {e.name: e.context_space for e in load_environments(how.sources)}
    wanted = {name: spaces[name] for name in tasks.environment_names if name in spaces}
    found = contexts_for(contexts, wanted, seed=how.seed or 0)
    selector = how.context_selector or SELECTORS[0]
    rows = spread(tasks, found, selector=selector, seed=how.seed or 0)
    names = {env: [named.name for named in given] for env, given in found.items()}
    return rows, unused_contexts(names, rows)


def _fitting(tasks: Taskset, how: RunOptions) -> Taskset:
    """Return the tasks as their environments read them; a bridged server checks its own.

    Raises:
        InvalidTask: A task cannot be run; the text names its file, line and field.
    """
    if any(Source(each).is_remote for each in how.sources):
        return tasks
    found = Catalogue(load_environments(how.sources), [tasks]).tasks
    return Taskset(found, name=tasks.name, id=tasks.id, description=tasks.description)


def _served(how: RunOptions, tasks: Taskset) -> tuple[Taskset, RunOptions, list[LeftOut]]:
    """Return the tasks whose worlds can be opened here, and the others, or raise `HudMcpError`."""
    if any(Source(each).is_remote for each in how.sources):
        return tasks, how, []
    served = {e.name: e.world.missing(e.folder) for e in load_environments(how.sources)}
    chosen = tasks.filter(lambda task: served.get(task.env) is None)
    if not len(chosen):
        raise HudMcpError(f"No task of {tasks.name} can run here: {next(iter(served.values()))}")
    unserved = leave_out((task, why) for task in tasks if (why := served.get(task.env)))
    if unserved:
        here = narrow_sources(how.sources, chosen.environment_names)
        how = how.model_copy(update={"sources": tuple(here)})
    return chosen, how, unserved


def solvable(
    how: RunOptions, tasks: Taskset, *, every: bool = False
) -> tuple[Taskset, list[LeftOut]]:
    """Return the tasks that a job's agent can play, and the others, before anything runs.

    The oracle plays tasks with a solution. Any other agent plays all. A resumed job plays `every`
    recorded task.

    Raises:
        InvalidTask: No task has an oracle; or all have to be played, and some have no oracle.
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
    """Return the reason why the oracle cannot play a task; None if it can, or a server knows."""
    if task.prompt is not None:
        return "a prompt has no oracle"
    if task.env not in environments:  # a server elsewhere has it, and knows more
        return None
    template = environments[task.env].find_template(task.template)
    return "its template has no oracle" if template.oracle_function is None else None


def _nothing_to_play(tasks: Taskset, environments: Mapping[str, Environment]) -> str:
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

"""`evaluate`: an agent through a taskset from Python, as `hud-mcp eval` does it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

import anyio.to_thread

from hud_mcp.agents.kind import AgentOptions
from hud_mcp.base.secrets import keep_to_itself
from hud_mcp.environment.author_files import file_being_loaded
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidAgent, JobStopped, sole_cause
from hud_mcp.loading.sets import find_sets
from hud_mcp.record.job import Job
from hud_mcp.rollout.agents import (
    agent_name,
    check_command,
    model_of_program,
    options_of_agent,
)
from hud_mcp.rollout.evaluation import Evaluation, report_folder, with_workers
from hud_mcp.rollout.options import JobKeywords, JobOptions, read_job_options, recorded_already
from hud_mcp.rollout.prepared import JobRequest, Prepared, begin_job, resume_job
from hud_mcp.rollout.run import PlannedRun, Rollout, Watch
from hud_mcp.rollout.trusted import recorded_runs
from hud_mcp.store import opened_store
from hud_mcp.store.files import make_private_file, make_private_folder
from hud_mcp.store.store import Place
from hud_mcp.values.action import Value
from hud_mcp.values.option import fields_by_keyword

__all__ = ["JobProgress", "evaluate"]

logger = logging.getLogger(__name__)

Tasks = Taskset | Sequence[Task] | Task | str | Path


@dataclass(frozen=True)
class JobProgress:
    """An event in a job: a run began, ended or is repeated, the server died, or a note.

    A `note` informs a person, such as about the address of the page of `human`. `ended` and `total`
    count this call's runs. `run` is None if the server died, and `rollout` while the run continues.
    """

    event: Literal["began", "ended", "retried", "server_died", "note"]
    ended: int
    total: int
    run: PlannedRun | None
    rollout: Rollout | None
    text: str


async def evaluate(
    taskset: Tasks | None = None,
    agent: Any = None,
    *,
    model: str | AgentOptions | None = None,
    store: Place = None,
    on_progress: Callable[[JobProgress], None] | None = None,
    resume: Job | str | None = None,
    isolated: bool = False,
    **options: Unpack[JobKeywords],
) -> Job:
    """Run an agent through a taskset. A failed run becomes data of the job; it raises nothing.

    The environments run in a separate server process, as with `hud-mcp eval`, unless
    `in_process` says otherwise.

    Args:
        taskset: The tasks: a taskset, a list of tasks, or the name or path of a set. Leave it out
            to resume a job.
        agent: A name as for `--agent`; a model, as `provider:name` or its `ModelOptions`; or an
            agent in Python. That is an async function of `(agent)` or `(agent, task)`, an object
            with such a method `solve`, or a class of such objects. Each run creates its own object
            of a class. An agent in Python works in this process, and is trusted. If it submits no
            answer, its return value is the answer.
        model: The model that an agent of another process asks, as `provider:name` or its
            `ModelOptions`; by default its own. Its turns are recorded, and budgets bind it.
        store: The store that records the job: an open store, which stays open, a path or a URL.
            None means the default store.
        on_progress: Called as a run begins or ends, or the server dies. An exception in it ends
            the job, which can be resumed.
        resume: A job of this function or of `hud-mcp eval`, or its id. Runs that are missing, or
            that failed because of infrastructure, run again. The record has all options except an
            agent that was an object. `env`, `max_concurrent`, `retries`, `workers` and `ray` may
            be given again, and so may the budget and the rates of a model.
        isolated: Whether each run of an agent in Python gets its own process, with only the
            credential of its session. The agent must be a function or a class of a module.
        **options: The options of `hud-mcp eval`, with the same meaning: `group`, `seed`,
            `max_concurrent`, `max_steps`, `timeout_s`, `retries`, `env`, `filter`, `split`,
            `contexts`, `context_selector`, `protocol`, `allow`, `workers`, `ray`, `in_process`,
            `image`, `name` and `agent_command`. The page about evaluating has a table of them.
            None means the default.

    Returns:
        The recorded job. `runs`, `reward` and `results` have every run that counts.

    Raises:
        InvalidAgent: The agent cannot work. Nothing ran.
        InvalidTask, InvalidContext, SourceNotFound: A task does not fit its environment; or the
            set, the environment or the context does not exist. Nothing ran.
        TypeError: There is no such option. Nothing ran.
        HudMcpError: An option is wrong, or the job cannot be resumed. Nothing ran.
        EnvironmentFailed: The server does not start. The job is recorded, and can be resumed.
        JobStopped: No server is left. The record stays; `job` is the job.

    If this call is cancelled, it waits a moment for answers that are being graded. It records every
    other unfinished run as lost. The job can be resumed.
    """
    _check_place()
    given = _given(options, has_agent=agent is not None)
    how, solver = None, None
    if agent is not None or (resume is None and "agent_command" not in given):
        how, solver = await options_of_agent(agent, isolated=isolated)
    async with opened_store(store) as opened:
        if resume is not None:
            prepared = await resume_job(
                opened,
                resume.id if isinstance(resume, Job) else resume,
                await _read_resumed(given, taskset),
                agent=None if how is None else agent_name(how),
                of_model=None if how is None or how.model is None else _given_of(how.model),
            )
        else:
            fields = {} if how is None else _given_of(how)
            wanted = read_job_options({**fields, **given}, in_python=True)
            if model is not None:
                fields = {**fields, "model": model_of_program(wanted, model, {})}
                wanted = read_job_options({**fields, **given}, in_python=True)
            if wanted.agent_command is not None:
                check_command(wanted.agent_command)
            wanted = await with_workers(wanted, resumed=False)
            tasks, files = await _tasks_of(taskset)
            prepared = await begin_job(opened, JobRequest(tasks, wanted, files))
        await _run(
            Evaluation(opened, prepared, agent=solver),
            report_folder(opened) / f"{prepared.job.id}.log",
            on_progress,
        )
        job = prepared.job.kept_in(store)
        # From the record: earlier calls made some of them.
        job.runs[:] = await recorded_runs(opened, job.id)
        return job


def _given(keywords: JobKeywords, *, has_agent: bool) -> dict[str, Any]:
    values: Mapping[str, Any] = {**keywords}
    given = {name: value for name, value in values.items() if value is not None and value != ()}
    fields = fields_by_keyword(JobOptions, given)
    if has_agent and "agent_command" in fields:
        raise InvalidAgent("Give one agent: `agent` or `agent_command`, not both.")
    return fields


def _given_of(values: Value) -> dict[str, Any]:
    """Return the fields of a value that were given when it was created."""
    return {name: getattr(values, name) for name in values.model_fields_set}


async def _read_resumed(given: Mapping[str, Any], taskset: Any) -> JobOptions:
    if taskset is not None:
        raise HudMcpError(recorded_already("taskset"))
    options = read_job_options(given, in_python=True, resumed=True)
    return await with_workers(options, resumed=True)


async def _run(
    evaluation: Evaluation, log_path: Path, on_progress: Callable[[JobProgress], None] | None
) -> None:
    prepared = evaluation.prepared
    if not prepared.planned:
        return
    if prepared.how.is_remote or prepared.how.model is not None:
        # Other processes of this user could read the secrets in /proc.
        keep_to_itself()  # it holds the token from which those of its agents are made, or a key
    watch = _watch(prepared, on_progress)
    await anyio.to_thread.run_sync(make_private_folder, log_path.parent)
    await anyio.to_thread.run_sync(make_private_file, log_path)
    with log_path.open("a", encoding="utf-8") as log:  # a local file, for a child
        try:
            await evaluation.run(log, watch)
        except BaseExceptionGroup as found:
            raise sole_cause(found) from None
    if evaluation.lost is not None:
        raise JobStopped(
            f"{evaluation.lost} Its log is {log_path}. To continue: evaluate(agent=…, "
            f"resume={prepared.job.id!r}).",
            prepared.job,
        )


def _watch(prepared: Prepared, on_progress: Callable[[JobProgress], None] | None) -> Watch:
    total, ended = len(prepared.planned), 0

    def tell(event: JobProgress) -> None:
        logger.debug("%s: %s", prepared.job.id, event.text)
        if on_progress is not None:
            on_progress(event)

    def on_start(run: PlannedRun) -> None:
        tell(JobProgress("began", ended, total, run, None, f"{_named(run, prepared)} began"))

    def on_end(done: Rollout, again: bool) -> None:  # noqa: FBT001  # as `Runs` calls it
        nonlocal ended
        ended += not again  # a repeated run has not ended yet
        reward = "" if done.reward is None else f" {done.reward:g}"
        text = f"[{ended}/{total}] {_named(done.planned, prepared)}: {done.outcome}{reward}"
        event: Literal["retried", "ended"] = "retried" if again else "ended"
        tell(JobProgress(event, ended, total, done.planned, done, text))

    def on_death(text: str) -> None:
        tell(JobProgress("server_died", ended, total, None, None, text))

    def on_note(text: str) -> None:
        tell(JobProgress("note", ended, total, None, None, text))

    return Watch(on_start, on_end, on_death, on_note)


def _named(run: PlannedRun, prepared: Prepared) -> str:
    group = prepared.job.group
    return run.task.id if group == 1 else f"{run.task.id} {run.place + 1}/{group}"


async def _tasks_of(given: Tasks | None) -> tuple[Taskset, Mapping[str, Path]]:
    if given is None:
        raise HudMcpError("Give a taskset, or resume=JOB to continue a job.")
    if isinstance(given, str | Path):
        read = (await anyio.to_thread.run_sync(find_sets, [str(given)])).read()
        return read.tasks, read.files
    if isinstance(given, Task):
        return Taskset([given], given.id), {}
    return (given if isinstance(given, Taskset) else Taskset(given, "tasks")), {}


def _check_place() -> None:
    """Refuse a file that calls this while it is loaded: raise `HudMcpError`.

    The server of the evaluation would evaluate in its turn.
    """
    if (file := file_being_loaded()) is not None:
        raise HudMcpError(
            f"{file} calls evaluate() while it is loaded as an environment. Write that call under "
            "`if __name__ == '__main__':`."
        )

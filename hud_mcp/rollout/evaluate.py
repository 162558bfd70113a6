"""`evaluate`: an agent through a taskset from Python, as `hud-mcp eval` does it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread

from hud_mcp.base.egress import read_hosts
from hud_mcp.base.secrets import keep_to_itself
from hud_mcp.environment.author_files import file_being_loaded
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, JobStopped, sole_cause
from hud_mcp.loading.sets import find_sets
from hud_mcp.plugins.cluster.nodes import read_ray
from hud_mcp.record.job import Job
from hud_mcp.rollout.agents import options_of_agent
from hud_mcp.rollout.evaluation import Evaluation, report_folder
from hud_mcp.rollout.plan import PlannedRun, Rollout, RunOptions
from hud_mcp.rollout.prepared import JobRequest, Prepared, agent_name, begin_job, resume_job
from hud_mcp.rollout.run import Watch
from hud_mcp.rollout.runs import recorded_runs
from hud_mcp.rollout.served import EACH, place_workers, read_workers
from hud_mcp.store import opened_store
from hud_mcp.store.files import make_private_file, make_private_folder
from hud_mcp.store.store import Place
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat

__all__ = ["JobProgress", "evaluate"]

logger = logging.getLogger(__name__)

Tasks = Taskset | Sequence[Task] | Task | str | Path


@dataclass(frozen=True)
class JobProgress:
    """An event in a job: a run began, ended or is repeated, or the server died.

    A `note` informs a person, such as about the address of the page of `human`.

    Attributes:
        event: What has happened.
        ended: How many of this call's runs have ended.
        total: How many runs this call has.
        run: The run; None if the server died.
        rollout: The result of the run; None while it continues.
        text: One line for people.
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
    group: int = 1,
    max_concurrent: int | None = None,
    store: Place = None,
    on_progress: Callable[[JobProgress], None] | None = None,
    resume: Job | str | None = None,
    env: str | Path | Sequence[str | Path] = (),
    name: str | None = None,
    seed: int | None = None,
    max_steps: int | None = None,
    timeout_s: float | None = None,
    retries: int | None = None,
    contexts: str | None = None,
    context_selector: str | None = None,
    protocol: str | None = None,
    allow: Sequence[str] = (),
    image: ImageFormat = DEFAULT_FORMAT,
    isolated: bool = False,
    in_process: bool = False,
    workers: int | Literal["auto"] | None = None,
    ray: str | bool | None = None,
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
        group: Runs of each task.
        max_concurrent: The most runs at one time; by default 4, or 4 for each worker.
        store: The store that records the job: an open store, which stays open, a path or a URL.
            None means the default store.
        on_progress: Called as a run begins or ends, or the server dies. An exception in it ends
            the job, which can be resumed.
        resume: A job of this function or of `hud-mcp eval`, or its id. Runs that are missing, or
            that failed because of infrastructure, run again. The record has all options except an
            agent that was an object.
        env: The sources of the environments, as for `hud-mcp serve`. By default the function finds
            them as the command does. It finds environments of this program by their files.
        name: What to call the job.
        seed: Derive each run's seed from this number. A task with a seed in its row keeps that
            seed.
        max_steps: The agent stops after this number of steps; an answer that it has given counts.
        timeout_s: Seconds for the agent on one run, 600 by default.
        retries: How often to repeat a run that failed because of infrastructure; never by default.
        contexts: Other contexts for the tasks: a file, or `sample:N`.
        context_selector: Which context a task gets: `round-robin`, `random`, `static` or `every`.
        protocol: The benchmark whose authors' protocol the runs follow.
        allow: Hosts of this machine or of a private network that rows may open.
        image: The format of pictures.
        isolated: Whether each run of an agent in Python gets its own process, with only the
            credential of its session. The agent must be a function or a class of a module.
        in_process: Whether the environments run in this process too. Short runs are several times
            as fast. A world that ends its process then ends the job, which can be resumed.
        workers: How many server processes share the runs, each with its own worlds; `auto` means
            one for each core. Each run goes to the least busy process.
        ray: The Ray cluster where these processes run, by its address; True for the one that is
            there, or of this machine. Then there is one for each node by default, placed by what
            `Needs` of the environments say.

    Returns:
        The recorded job. `runs`, `reward` and `results` have every run that counts.

    Raises:
        InvalidAgent: The agent cannot work. Nothing ran.
        InvalidTask, InvalidContext, SourceNotFound: A task does not fit its environment; or the
            set, the environment or the context does not exist. Nothing ran.
        HudMcpError: An option is wrong, or the job cannot be resumed. Nothing ran.
        EnvironmentFailed: The server does not start. The job is recorded, and can be resumed.
        JobStopped: No server is left. The record stays; `job` is the job.

    If this call is cancelled, it waits a moment for answers that are being graded. It records every
    other unfinished run as lost. The job can be resumed.
    """
    _check_place()
    cluster = read_ray(ray)
    count = await place_workers(read_workers(workers), cluster)
    options, solver = None, None
    if agent is not None or resume is None:
        options, solver = await options_of_agent(agent, isolated=isolated)
    async with opened_store(store) as opened:
        if resume is not None:
            _check_resumed(taskset, group=group)
            prepared = await resume_job(
                opened,
                resume.id if isinstance(resume, Job) else resume,
                sources=_sources(env),
                max_concurrent=max_concurrent,
                retries=retries,
                workers=count,
                ray=cluster,
                agent=None if options is None else agent_name(options),
            )
        else:
            given = {
                "sources": _sources(env),
                "folder": str(Path.cwd()),
                "timeout_s": _positive("timeout_s", timeout_s, 600.0),
                "max_steps": _positive("max_steps", max_steps, None),
                "max_concurrent": _positive("max_concurrent", max_concurrent, EACH * (count or 1)),
                "retries": retries or 0,
                "seed": seed,
                "image": image,
                "contexts": contexts,
                "context_selector": context_selector if contexts else None,
                "protocol": protocol,
                "allow": read_hosts(allow),
                "in_process": in_process,
                "workers": count,
                "ray": cluster,
            }
            how = RunOptions.model_validate({**(options or RunOptions()).model_dump(), **given})
            tasks, files = await _tasks_of(taskset)
            request = JobRequest(
                tasks, how, files, _positive("group", group, 1), own_timeout_s=timeout_s, name=name
            )
            prepared = await begin_job(opened, request)
        await _run(
            Evaluation(opened, prepared, agent=solver),
            report_folder(opened) / f"{prepared.job.id}.log",
            on_progress,
        )
        job = prepared.job.kept_in(store)
        job.runs[:] = await recorded_runs(opened, job.id)
        return job


async def _run(
    evaluation: Evaluation, log_path: Path, on_progress: Callable[[JobProgress], None] | None
) -> None:
    prepared = evaluation.prepared
    if not prepared.planned:
        return
    if prepared.how.is_remote or prepared.how.model is not None:
        keep_to_itself()  # it holds the token of which those of its agents are made, or a key
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
    """Tell somebody of what happens; or log it, where nobody asked."""
    total, ended = len(prepared.planned), 0

    def tell(event: JobProgress) -> None:
        logger.debug("%s: %s", prepared.job.id, event.text)
        if on_progress is not None:
            on_progress(event)

    def on_start(run: PlannedRun) -> None:
        tell(JobProgress("began", ended, total, run, None, f"{_named(run, prepared)} began"))

    def on_end(done: Rollout, again: bool) -> None:  # noqa: FBT001  # as the runs call it
        nonlocal ended
        ended += not again
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
    """A run's task, and which of the group it is."""
    group = prepared.job.group
    return run.task.id if group == 1 else f"{run.task.id} {run.place + 1}/{group}"


async def _tasks_of(given: Tasks | None) -> tuple[Taskset, Mapping[str, Path]]:
    """The tasks, and the file that holds each set of them."""
    if given is None:
        raise HudMcpError("Give a taskset, or resume=JOB to continue a job.")
    if isinstance(given, str | Path):
        read = (await anyio.to_thread.run_sync(find_sets, [str(given)])).read()
        return read.tasks, read.files
    if isinstance(given, Task):
        return Taskset([given], given.id), {}
    return (given if isinstance(given, Taskset) else Taskset(given, "tasks")), {}


def _sources(given: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    listed = (given,) if isinstance(given, str | Path) else given
    return tuple(str(each) for each in listed)


def _check_place() -> None:
    """Check that this is not called by a file that is only being loaded.

    Raises:
        HudMcpError: It is: the server of the evaluation would evaluate in its turn.
    """
    if (file := file_being_loaded()) is not None:
        raise HudMcpError(
            f"{file} calls evaluate() while it is loaded as an environment. Write that call under "
            "`if __name__ == '__main__':`."
        )


def _check_resumed(taskset: Any, *, group: int) -> None:
    if taskset is not None or group != 1:
        raise HudMcpError(
            "A resumed job has its tasks and its group in its record; leave `taskset` and "
            "`group` out, or start another job."
        )


def _positive(name: str, given: Any, default: Any) -> Any:
    if given is None:
        return default
    if given <= 0:
        raise HudMcpError(f"{name} is {given}; give more than 0.")
    return given

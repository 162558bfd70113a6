"""`Task.run` and `Taskset.run`: an agent through tasks, as the HUD SDK's newer releases have it.

Such an agent is an object that is called with a live `Run`: it reads `run.prompt`, works through
`run.client`, and leaves its answer in `run.trace.content`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from uuid import uuid4

import anyio

from hud_mcp.channel.client import ChannelClient
from hud_mcp.channel.place import Place
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.outcome import Cause
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import utc_now
from hud_mcp.rollout.runtime import LocalRuntime, Placement, started_by
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset

__all__ = ["Run", "RunGrade", "RunStep", "Trace", "run_tasks"]

logger = logging.getLogger(__name__)

_CANCEL_S = 10.0
_CUT_OFF = "Its run was stopped, or took longer than it may."


@dataclass
class RunStep:
    """One event of a run.

    Attributes:
        source: Whose it is: `task`, `user`, `agent`, `tool`, `system`.
        messages: What was said.
        task_call: What the task was asked: its `phase`, `name`, `arguments` and `result`.
        error: What went wrong, or None.
        started_at: When it began, in ISO 8601.
        step_id: Its number in the trace, from 1.
        extra: Anything else.
    """

    source: str
    messages: list[Any] = field(default_factory=list[Any])
    task_call: dict[str, Any] | None = None
    error: str | None = None
    started_at: str | None = None
    step_id: int | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Trace:
    """What an agent did in one run.

    Attributes:
        content: Its answer, which is graded.
        steps: What happened, in order; the agent may record more.
        status: `completed`, `error` or `cancelled`; None while it runs.
        stop_reason: Why the agent stopped, where that is known: `done`, `timeout`, ….
        extra: Anything else.
        trace_id: Of its own.
    """

    content: Any = None
    steps: list[Any] = field(default_factory=list[Any])
    status: Literal["completed", "error", "cancelled"] | None = None
    stop_reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    trace_id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def is_error(self) -> bool:
        """Whether it went wrong."""
        return self.status == "error"

    @property
    def error(self) -> str | None:
        """The last step's error, or None."""
        errors = (getattr(step, "error", None) for step in reversed(self.steps))
        return next((error for error in errors if error is not None), None)

    def record(self, step: Any) -> None:
        """Add a step."""
        self.steps.append(step)
        if getattr(step, "step_id", 0) is None:
            step.step_id = len(self.steps)


@dataclass(frozen=True)
class RunGrade:
    """The grade of one run, as the channel has it.

    Attributes:
        reward: The number; 0.0 where there is no grade, which `is_error` then says.
        done: Whether the task is over.
        content: What the grader said, or None.
        info: What else it said.
        is_error: Whether there is no grade.
        raw: The whole frame.
    """

    reward: float = 0.0
    done: bool = True
    content: str | None = None
    info: dict[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False
    raw: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of_frame(cls, frame: Mapping[str, Any]) -> "RunGrade":
        """Read what the channel answered."""
        content, info = frame.get("content"), frame.get("info")
        return cls(
            reward=float(frame["score"]),
            done=bool(frame.get("done", True)),
            content=content if isinstance(content, str) else None,
            info=cast("dict[str, Any]", info) if isinstance(info, dict) else {},
            is_error=bool(frame.get("isError", False)),
            raw=dict(frame),
        )


class Run:
    """One task under way, and what became of it.

    Attributes:
        task: The task.
        slug: Its id.
        prompt: What is asked: a text, or a list of messages.
        client: A connection to the environment, while the agent works; it knows the published
            capabilities, and carries connections to them. It begins and grades nothing.
        trace: What the agent did; it leaves its answer in `trace.content`.
        grade: What it is worth; an error until it is graded.
        runtime: Where it runs.
    """

    def __init__(self, task: Task, *, runtime: str | None = None) -> None:
        self.task = task
        self.slug = task.id
        self.prompt: Any = ""
        self.client: ChannelClient | None = None
        self.trace = Trace()
        self.grade = RunGrade(is_error=True, content="not graded")
        self.runtime = runtime
        self.started: dict[str, Any] = {}

    @property
    def reward(self) -> float:
        """The grade's."""
        return self.grade.reward

    @property
    def prompt_messages(self) -> list[dict[str, Any]]:
        """What is asked, as messages with a `role` and a `content`."""
        asked = self.prompt
        items = cast("list[Any]", asked) if isinstance(asked, list) else [asked]
        return [
            cast("dict[str, Any]", item)
            if isinstance(item, dict)
            else {"role": "user", "content": str(item)}
            for item in items
        ]

    @property
    def prompt_text(self) -> str:
        """What is asked, as one text."""
        parts: list[str] = []
        for message in self.prompt_messages:
            content = message.get("content")
            if isinstance(content, dict):
                content = cast("dict[str, Any]", content).get("text")
            parts.append(str(content))
        return "\n\n".join(parts)

    @property
    def bindings(self) -> dict[str, Any]:
        """What the task published of single capabilities for this run, by their names."""
        found: Any = self.started.get("bindings")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def record(self, step: Any) -> None:
        """Add a step to the trace."""
        self.trace.record(step)


async def run_tasks(
    tasks: Taskset,
    agent: Callable[[Run], Awaitable[Any]],
    *,
    runtime: Placement | None = None,
    group: int | None = None,
    max_concurrent: int | None = None,
    job: Job | None = None,
    rollout_timeout: float | None = None,
) -> Job:
    """Run an agent through tasks; one that fails is data, and no exception.

    Args:
        tasks: What is worked on.
        agent: An object that is called with each run; it keeps nothing between them.
        runtime: Where; in this process by default.
        group: How many runs each task has; the job's by default, else 1.
        max_concurrent: How many at once; None for all.
        job: The job that they belong to; a new one by default.
        rollout_timeout: Seconds after which a run is cancelled, and has no grade.

    Returns:
        The job: `runs` in the tasks' order, `results` by task, `reward`, their mean.

    Raises:
        InvalidTask: A task does not fit its environment, or asks for what is not run here.
            Nothing ran.
        HudMcpError: The environments cannot be had. Nothing ran.

    If this call is cancelled, tasks that are under way end as cancelled.
    """
    _check(tasks, runtime, group, max_concurrent)
    placed = runtime or LocalRuntime()
    repeats = group if group is not None else job.group if job is not None else 1
    is_new = job is None
    job = job or Job(
        name=tasks.name,
        taskset=tasks.name,
        agent=type(agent).__name__,
        group=repeats,
        planned=True,
    )
    limiter = anyio.Semaphore(max_concurrent or max(1, len(tasks) * repeats))
    runs = [Run(task) for task in tasks for _ in range(repeats)]
    timeout_s = _agent_timeout(agent)

    async with placed.serve(tasks, job) as places:
        if is_new:
            await job.begin(tasks)

        async def one(run: Run) -> None:
            async with limiter:
                rollout = _Rollout(run, agent, places[run.task.env], job, timeout_s=timeout_s)
                await rollout.run(knows_rows=placed.knows_rows, bound_s=rollout_timeout)

        async with anyio.create_task_group() as tasks_under_way:
            for run in runs:
                tasks_under_way.start_soon(one, run)
    job.runs.extend(runs)
    return job


class _Rollout:
    """One run from its start to its grade."""

    def __init__(
        self,
        run: Run,
        agent: Callable[[Run], Awaitable[Any]],
        place: Place,
        job: Job,
        *,
        timeout_s: float | None,
    ) -> None:
        self._run = run
        self._agent = agent
        self._place = place
        self._job = job
        self._timeout_s = timeout_s
        self._phase = "connecting"
        run.runtime = f"tcp://{place.host}:{place.port}"

    async def run(self, *, knows_rows: bool, bound_s: float | None) -> None:
        run = self._run
        try:
            with anyio.move_on_after(bound_s) as bound:
                await self._drive(knows_rows=knows_rows)
            if bound.cancelled_caught:
                run.trace.stop_reason = "timeout"
                self._fail(f"it took more than {bound_s:g} s")
        except anyio.get_cancelled_exc_class():
            run.trace.status = "cancelled"
            raise
        except Exception as exc:  # one run's failure is data of this run
            logger.warning("%s: %s", run.slug, exc, exc_info=not isinstance(exc, HudMcpError))
            self._fail(f"{type(exc).__name__}: {exc}")
        finally:
            run.client = None

    async def _drive(self, *, knows_rows: bool) -> None:
        run = self._run
        async with ChannelClient.connect(self._place) as client:
            await self._job.plan_run(client.session_id)
            name, args = started_by(run.task, knows_rows=knows_rows)
            self._phase, began = "starting", utc_now()
            run.started = await self._start(client, name, args)
            run.prompt = run.started.get("prompt", "")
            self._record("setup", args, run.started, began.isoformat())
            run.record(RunStep("user", messages=run.prompt_messages))
            try:
                async with client.for_agent() as run.client:
                    await self._work()
                run.client = None
                self._phase, began = "grading", utc_now()
                frame = await client.grade(run.trace.content)
            except anyio.get_cancelled_exc_class():
                await _cut_off(client)
                raise
            run.grade = RunGrade.of_frame(frame)
            self._record("evaluate", run.trace.content, frame, began.isoformat())
            run.trace.status = run.trace.status or "completed"

    async def _start(
        self, client: ChannelClient, name: str, args: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Start the task; a cancelled start is cancelled there too."""
        starting = asyncio.ensure_future(client.start(name, args))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _cut_off(client)
            starting.cancel()
            await asyncio.wait([starting])
            if not starting.cancelled():
                starting.exception()  # seen
            raise

    async def _work(self) -> None:
        """Let the agent work; what it has answered is graded, also where it failed."""
        run = self._run
        self._phase = "agent loop"
        began_s = time.monotonic()
        try:
            with anyio.move_on_after(self._timeout_s) as bound:
                await self._agent(run)
        except Exception as exc:  # the agent's own failure, which the trace says
            logger.warning("the agent failed on %s", run.slug, exc_info=True)
            self._fail(f"{type(exc).__name__}: {exc}")
            return
        if bound.cancelled_caught:
            run.trace.stop_reason = "timeout"
            self._fail(f"the agent was stopped after {time.monotonic() - began_s:.1f} s")

    def _record(self, phase: str, arguments: Any, result: Any, began: str) -> None:
        call = {
            "phase": phase,
            "name": self._run.task.template,
            "arguments": arguments,
            "result": result,
        }
        self._run.record(RunStep("task", task_call=call, started_at=began))

    def _fail(self, error: str) -> None:
        self._run.trace.status = "error"
        self._run.record(RunStep("system", error=f"[{self._phase}] {error}"))


async def _cut_off(client: ChannelClient) -> None:
    """End what a run holds, as whoever runs it; where its server is gone, that ends it."""
    with anyio.move_on_after(_CANCEL_S, shield=True), suppress(HudMcpError):
        await client.cancel(reason=_CUT_OFF, cause=Cause.OPERATOR)


def _check(tasks: Taskset, runtime: Any, group: int | None, max_concurrent: int | None) -> None:
    for name, number in (("group", group), ("max_concurrent", max_concurrent)):
        if number is not None and number < 1:
            raise InvalidTask(f"{name} is {number}; give 1 or more.")
    if runtime is not None and not hasattr(runtime, "serve"):
        raise InvalidTask(
            f"{runtime!r:.60} is no runtime of this package; give LocalRuntime(…), "
            "SubprocessRuntime(…) or Runtime('tcp://host:port')."
        )
    verified = [task.id for task in tasks if "verifier" in task.metadata.get("hud", {})]
    if verified:
        raise InvalidTask(
            f"The task {verified[0]!r} has a verifier, which is not run here; leave it out of the "
            "row, or run it with HUD's SDK on this server's channel."
        )


def _agent_timeout(agent: Any) -> float | None:
    """What an agent's `config.timeout_seconds` says, as HUD's agents have it."""
    found = getattr(getattr(agent, "config", None), "timeout_seconds", None)
    return None if found is None else float(found)

"""`run_job`: an agent of the HUD SDK 0.2 through tasks, each in a live environment of its own.

Such an agent has `async predict(observation) -> (actions, done)`. What goes wrong on the runner's
side is a row of `job.errors`; what the agent reached is in the trajectories.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from hud_mcp import gym
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from hud_mcp.env import Environment
    from hud_mcp.observation import Observation
    from hud_mcp.store import Store

__all__ = ["ClassicAgent", "run_job"]

logger = logging.getLogger(__name__)

_PREDICTIONS = 5
"""How often a prediction that raised is tried, as in HUD's SDK."""
_CLOSE_S = 30.0


class ClassicAgent(Protocol):
    """An agent as the HUD SDK 0.2 has it."""

    async def predict(self, observation: "Observation") -> tuple[Sequence[Any], bool]:
        """Say what to do next, and whether that is all."""
        ...


async def run_job(  # noqa: PLR0917  # HUD's order
    agent_cls: type[Any],
    task_or_taskset: Task | Taskset | Sequence[Task],
    job_name: str,
    auto_reply_question: bool = False,  # noqa: FBT001, FBT002  # HUD's
    adapter_cls: type[Any] | None = None,
    agent_kwargs: Mapping[str, Any] | None = None,
    adapter_kwargs: Mapping[str, Any] | None = None,
    max_steps_per_task: int = 20,
    run_parallel: bool = True,  # noqa: FBT001, FBT002  # the same
    job_metadata: Mapping[str, Any] | None = None,
    show_progress: bool = True,  # noqa: FBT001, FBT002  # the same
    verbose: bool = False,  # noqa: FBT001, FBT002  # the same
    max_concurrent_env_creations: int | None = 30,
    max_concurrent_agent_predictions: int | None = None,
    max_concurrent_tasks: int | None = 30,
    *,
    url: str | None = None,
    store: "Store | str | None" = None,
) -> Job:
    """Run an agent through tasks, each with a new agent in a new environment.

    Args:
        agent_cls: Made anew for each task, with `agent_kwargs`.
        task_or_taskset: What is worked on.
        job_name: What to call the job.
        auto_reply_question: HUD's cloud answered an agent's questions; it has to be False here.
        adapter_cls: Made anew for each task too, and given to the agent as `adapter`.
        agent_kwargs: For the agent.
        adapter_kwargs: For the adapter.
        max_steps_per_task: After so many steps the task is evaluated as it is.
        run_parallel: Whether several tasks are worked on at once.
        job_metadata: Recorded with the job.
        show_progress: Whether each end of a task is logged at INFO; else at DEBUG.
        verbose: Whether each step is logged at INFO too.
        max_concurrent_env_creations: How many environments are made at once.
        max_concurrent_agent_predictions: How many predictions run at once; None for any number.
        max_concurrent_tasks: How many tasks are worked on at once.
        url: Where the environments run, as for `gym.make`.
        store: Where it is recorded; the default store where it is None.

    Returns:
        The job, with `errors`; `load_trajectories` reads what was recorded.

    Raises:
        HudMcpError: An option cannot work, or there are no tasks. Nothing was recorded.
        StoreFailed: Nothing can be recorded.

    If this call is cancelled, environments are closed, and what was recorded stays.
    """
    if auto_reply_question:
        raise HudMcpError(
            "auto_reply_question=True asked HUD's cloud to answer; let your agent's `predict` "
            "answer its own questions instead."
        )
    tasks = _tasks_of(task_or_taskset)
    for name, number in (
        ("max_steps_per_task", max_steps_per_task),
        ("max_concurrent_env_creations", max_concurrent_env_creations),
        ("max_concurrent_agent_predictions", max_concurrent_agent_predictions),
        ("max_concurrent_tasks", max_concurrent_tasks),
    ):
        if number is not None and number < 1:
            raise HudMcpError(f"{name} is {number}; give 1 or more.")
    job = await Job.create(
        job_name,
        taskset=tasks,
        agent=agent_cls.__name__,
        metadata=job_metadata,
        planned=True,
        store=store,
    )

    def make_agent() -> ClassicAgent:
        given = dict(agent_kwargs or {})
        if adapter_cls is not None:
            given["adapter"] = adapter_cls(**(adapter_kwargs or {}))
        return cast("ClassicAgent", agent_cls(**given))

    runner = _Runner(
        job,
        make_agent=make_agent,
        max_steps=max_steps_per_task,
        url=url,
        creating=_limited(max_concurrent_env_creations),
        predicting=_limited(max_concurrent_agent_predictions),
        end_level=logging.INFO if show_progress else logging.DEBUG,
        step_level=logging.INFO if verbose else logging.DEBUG,
    )
    working = _limited(max_concurrent_tasks if run_parallel else 1)

    async def work(task: Task) -> None:
        async with working:
            await runner.run(task)

    try:
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(work, task)
    finally:
        if job.errors:
            with anyio.CancelScope(shield=True):
                await job.save()
    return job


class _Runner:
    """Works on one task after the other, of one job."""

    def __init__(
        self,
        job: Job,
        *,
        make_agent: Any,
        max_steps: int,
        url: str | None,
        creating: AbstractAsyncContextManager[Any],
        predicting: AbstractAsyncContextManager[Any],
        end_level: int,
        step_level: int,
    ) -> None:
        self._job = job
        self._make_agent = make_agent
        self._max_steps = max_steps
        self._url = url
        self._creating = creating
        self._predicting = predicting
        self._end_level = end_level
        self._step_level = step_level

    async def run(self, task: Task) -> None:
        """Work on one task; what fails is a row of the job's errors, and no exception."""
        try:
            agent = self._make_agent()
            async with self._creating:
                env = await gym.make(task, job=self._job, url=self._url)
        except Exception as exc:  # noqa: BLE001  # whatever an author's class or a gym raises, others go on
            self._note(task, "setup_error", exc)
            return
        async with self._closing(env, task):
            if await self._work(agent, env, task):
                await self._evaluate(env, task)

    async def _work(self, agent: ClassicAgent, env: "Environment", task: Task) -> bool:
        """Let the agent work; return whether it may be evaluated."""
        step = 0
        try:
            observation = await _first_look(env)
            for step in range(self._max_steps):
                actions, done = await self._predict(agent, observation, task)
                observation, _, terminated, _ = await env.step(list(actions))
                logger.log(self._step_level, "%s: step %d: %s", task.id, step, actions)
                if done or terminated:
                    break
        except Exception as exc:  # noqa: BLE001  # the agent's or the world's, which the row says
            self._note(task, "step_error", exc, step=step)
            return False
        return True

    async def _predict(
        self, agent: ClassicAgent, observation: "Observation", task: Task
    ) -> tuple[Sequence[Any], bool]:
        for left in range(_PREDICTIONS - 1, -1, -1):
            try:
                async with self._predicting:
                    return await agent.predict(observation)
            except Exception as exc:
                if not left:
                    raise
                logger.info("%s: a prediction failed, and is tried again: %r", task.id, exc)
        raise HudMcpError("a prediction was tried no times")  # unreachable

    async def _evaluate(self, env: "Environment", task: Task) -> None:
        try:
            value = await env.evaluate()
        except Exception as exc:  # noqa: BLE001  # an author's function, or the world
            self._note(task, "evaluation_error", exc)
            return
        logger.log(self._end_level, "%s: %s", task.id, value)

    @asynccontextmanager
    async def _closing(self, env: "Environment", task: Task) -> "AsyncGenerator[None]":
        try:
            yield
        finally:
            with anyio.move_on_after(_CLOSE_S, shield=True) as bound:
                try:
                    await env.close()
                except Exception as exc:  # noqa: BLE001  # what was measured stands in the record
                    self._note(task, "env_close_error", exc)
            if bound.cancelled_caught:
                self._note(task, "env_close_error", f"it took more than {_CLOSE_S:g} s")

    def _note(
        self, task: Task, kind: str, error: str | Exception, *, step: int | None = None
    ) -> None:
        self._job.set_error(task.id, kind, error, step=step)
        logger.warning("%s: %s: %s", task.id, kind, error)


async def _first_look(env: "Environment") -> "Observation":
    """What the agent sees first: the prompt, and the world. `gym.make` has set it up once."""
    seen = (await env.step()).observation
    text = "\n\n".join(part for part in (env.prompt, seen.text) if part)
    return seen.model_copy(update={"text": text or None})


def _tasks_of(given: Any) -> Taskset:
    if isinstance(given, Taskset):
        tasks = given
    else:
        listed = [given] if isinstance(given, Task) else given
        tasks = Taskset(cast("Sequence[Task]", listed), getattr(given, "id", "") or "tasks")
    if not len(tasks):
        raise InvalidTask(f"{tasks.name} holds no tasks; give a task, or a taskset with some.")
    return tasks


def _limited(number: int | None) -> AbstractAsyncContextManager[Any]:
    return nullcontext() if number is None else anyio.Semaphore(number)

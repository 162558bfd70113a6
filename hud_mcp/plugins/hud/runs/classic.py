"""`run_job`: run an agent of the HUD SDK 0.2 through tasks, each in its own live environment.

Such an agent has `async predict(observation) -> (actions, done)`. Failures on the runner's side
are rows of `job.errors`; the trajectories have the rest.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from hud_mcp.base.contention import Contention
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidAction, InvalidTask
from hud_mcp.plugins.hud import gym
from hud_mcp.record.job import Job
from hud_mcp.rollout.plan import PlannedRun, Rollout
from hud_mcp.rollout.run import FirstSigns
from hud_mcp.rollout.trusted import end_as_lost, plan_trusted, resume_trusted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from hud_mcp.plugins.hud.live import Environment
    from hud_mcp.plugins.hud.live.environment import Step
    from hud_mcp.store import Store
    from hud_mcp.store.store import Place
    from hud_mcp.values.observation import Observation

__all__ = ["ClassicAgent", "run_job"]

logger = logging.getLogger(__name__)

_PREDICTIONS = 5
"""The number of tries of a prediction that raises, as in HUD's SDK."""
_CLOSE_S = 30.0


class ClassicAgent(Protocol):
    """An agent as the HUD SDK 0.2 has it."""

    async def predict(self, observation: "Observation") -> tuple[Sequence[Any], bool]:
        """Return the next actions, and whether the agent is done."""
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
    store: "Place" = None,
    retries: int = 0,
    resume: "Job | str | None" = None,
) -> Job:
    """Run an agent through tasks, each with a new agent in a new environment.

    Args:
        agent_cls: Called for each task, with `agent_kwargs`.
        task_or_taskset: The tasks.
        job_name: The name of the new job.
        auto_reply_question: HUD's cloud answered an agent's questions; here it must be False.
        adapter_cls: Called for each task too; the agent gets the result as `adapter`.
        agent_kwargs: Arguments of the agent.
        adapter_kwargs: Arguments of the adapter.
        max_steps_per_task: The number of steps after which a task is evaluated.
        run_parallel: Whether several tasks run at the same time.
        job_metadata: Recorded with the job.
        show_progress: Whether the end of each task is logged at INFO; else at DEBUG.
        verbose: Whether each step is logged at INFO too.
        max_concurrent_env_creations: The most environments that start at the same time.
        max_concurrent_agent_predictions: The most predictions at the same time; None for all.
        max_concurrent_tasks: The most tasks at the same time.
        url: The place of the environments, as for `gym.make`.
        store: The store that records the job; None for the default store.
        retries: The number of further tries of a task that failed for infrastructure.
        resume: A job of this function, or its id. Only its missing tasks, and those that failed for
            infrastructure, are run; `job_name` and `job_metadata` stay unchanged.

    Returns:
        The job, with `errors`; `load_trajectories` reads its records.

    Raises:
        HudMcpError: An option cannot work, or there are no tasks. Nothing was recorded.
        StoreFailed: Nothing can be recorded.

    The agent works in this process, and is trusted. An exception of the agent is its result, which
    does not pass. If this call is cancelled, it closes the environments and keeps the records; the
    job can be resumed.
    """
    if auto_reply_question:
        raise HudMcpError(
            "auto_reply_question=True needs HUD's cloud. Let your agent's `predict` answer its "
            "own questions instead."
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
    if retries < 0:
        raise HudMcpError(f"retries is {retries}; give 0 or more.")
    if resume is not None:
        trusted = await resume_trusted(tasks, agent_cls, resume, store=store)
    else:
        trusted = plan_trusted(tasks, agent_cls, name=job_name, metadata=job_metadata, store=store)
    job = trusted.job

    def make_agent() -> ClassicAgent:
        given = dict(agent_kwargs or {})
        if adapter_cls is not None:
            given["adapter"] = adapter_cls(**(adapter_kwargs or {}))
        return cast("ClassicAgent", agent_cls(**given))

    playing = _Playing(
        job,
        make_agent=make_agent,
        max_steps=max_steps_per_task,
        url=url,
        creating=_limited(max_concurrent_env_creations),
        predicting=_limited(max_concurrent_agent_predictions),
        end_level=logging.INFO if show_progress else logging.DEBUG,
        step_level=logging.INFO if verbose else logging.DEBUG,
    )
    at_once = max_concurrent_tasks if run_parallel else 1
    async with trusted.recorded() as (opened, begun):
        try:
            begin = partial(ClassicTry, playing=playing, store=opened)
            await trusted.run(begin, begun, max_concurrent=at_once, retries=retries)
        finally:
            if job.errors:
                with anyio.CancelScope(shield=True):
                    await job.save()
    return job


@dataclass(frozen=True)
class _Playing:
    """The options that all runs of one job share.

    Attributes:
        make_agent: Makes the agent of one run.
        max_steps: The number of steps after which a task is evaluated.
        url: The place of the environments, as for `gym.make`.
        creating: Entered while an environment starts.
        predicting: Entered during a prediction.
        end_level: The log level of each end.
        step_level: The log level of each step.
    """

    job: Job
    make_agent: Callable[[], ClassicAgent]
    max_steps: int
    url: str | None
    creating: AbstractAsyncContextManager[Any]
    predicting: AbstractAsyncContextManager[Any]
    end_level: int
    step_level: int


class _AgentFailed(Exception):
    """A failure of the agent; its cause is the exception."""


class ClassicTry:
    """One try of a run, in a live environment of this run alone.

    Args:
        planned: The run.
        playing: The options of its job.
        store: The store of its record.
    """

    server_lost: str | None = None

    def __init__(
        self,
        planned: PlannedRun,
        _signs: FirstSigns,
        _contention: Contention,
        *,
        playing: _Playing,
        store: "Store",
    ) -> None:
        self.planned = planned
        self._playing = playing
        self._store = store
        self._began_s = time.monotonic()
        self._env: Environment | None = None
        self._error: str | None = None
        self._by_agent = False

    async def run(self) -> Rollout:
        """Work on the task. A failure becomes a row of the job's errors, and raises nothing."""
        task, playing = self.planned.task, self._playing
        try:
            agent = playing.make_agent()
            async with playing.creating:
                env = await gym.make(task, job=playing.job, url=playing.url)
        except Exception as exc:  # noqa: BLE001  # whatever an author's class or a gym raises, others go on
            self._note("setup_error", exc)
            return self._done()
        self._env = env
        async with self._closing(env):
            if await self._work(agent, env):
                await self._evaluate(env)
        return self._done()

    async def finish_grading(self) -> Rollout | None:
        """Return the result of a run that was cancelled; None if it has no end."""
        env = self._env
        return None if env is None or env.outcome is None else self._done()

    async def give_up(self, reason: str) -> bool:
        """Record the run as lost if it has begun and has no end here.

        Returns:
            Whether this call recorded the end.
        """
        env = self._env
        if env is None or env.outcome is not None or self._playing.url is not None:
            return False
        return await end_as_lost(self._store, env.trajectory, reason)

    def lost(self, reason: str) -> Rollout:
        """Return the result of a run that cannot be brought to an end."""
        begun = None if self._env is None else self._env.trajectory
        return Rollout.lost(self.planned, begun, reason, began_s=self._began_s)

    async def _work(self, agent: ClassicAgent, env: "Environment") -> bool:
        """Let the agent work, and return whether its work may be evaluated."""
        step = 0
        try:
            observation = await _first_look(env)
            for step in range(self._playing.max_steps):
                actions, done = await self._predict(agent, observation)
                observation, _, terminated, _ = await _step(env, actions)
                logger.log(self._playing.step_level, "%s: step %d: %s", env, step, actions)
                if done or terminated:
                    break
        except _AgentFailed as exc:
            self._by_agent = True
            self._note("step_error", exc.__cause__ or exc, step=step)
            return False
        except Exception as exc:  # noqa: BLE001  # the world's, which the row says
            self._note("step_error", exc, step=step)
            return False
        return True

    async def _predict(
        self, agent: ClassicAgent, observation: "Observation"
    ) -> tuple[list[Any], bool]:
        for left in range(_PREDICTIONS - 1, -1, -1):
            try:
                async with self._playing.predicting:
                    actions, done = await agent.predict(observation)
                return list(actions), done
            except Exception as exc:
                if not left:
                    raise _AgentFailed from exc
                task_id = self.planned.task.id
                logger.info("%s: a prediction failed, and is tried again: %r", task_id, exc)
        raise HudMcpError("a prediction had no tries")  # unreachable

    async def _evaluate(self, env: "Environment") -> None:
        try:
            value = await env.evaluate()
        except Exception as exc:  # noqa: BLE001  # an author's function, or the world
            self._note("evaluation_error", exc)
            return
        logger.log(self._playing.end_level, "%s: %s", self.planned.task.id, value)

    @asynccontextmanager
    async def _closing(self, env: "Environment") -> "AsyncGenerator[None]":
        try:
            yield
        finally:
            with anyio.move_on_after(_CLOSE_S, shield=True) as bound:
                try:
                    await env.give_up(self._error, by_agent=self._by_agent)
                except Exception as exc:  # noqa: BLE001  # what was measured stands in the record
                    self._note("env_close_error", exc)
            if bound.cancelled_caught:
                self._note("env_close_error", f"it took more than {_CLOSE_S:g} s")

    def _note(self, kind: str, error: str | BaseException, *, step: int | None = None) -> None:
        task_id, job = self.planned.task.id, self._playing.job
        job.set_error(task_id, kind, error, step=step)
        self._error = str(job.errors[-1]["error"])
        logger.warning("%s: %s: %s", task_id, kind, error)

    def _done(self) -> Rollout:
        env = self._env
        begun = None if env is None else env.trajectory
        return Rollout.of(
            self.planned, begun, None if env is None else env.receipt, error=self._error,
            agent_failed=self._by_agent, began_s=self._began_s,
        )  # fmt: skip


async def _step(env: "Environment", actions: list[Any]) -> "Step":
    """Perform the agent's actions. An action that no environment takes is the agent's failure."""
    try:
        return await env.step(actions)
    except InvalidAction as exc:
        raise _AgentFailed from exc


async def _first_look(env: "Environment") -> "Observation":
    """Return the first observation: the prompt, and the world, which `gym.make` has set up."""
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

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
from hud_mcp.rollout.run import FirstSigns, PlannedRun, Rollout
from hud_mcp.rollout.trusted import TrustedJob, end_as_lost, plan_trusted, resume_trusted

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
    agent_cls: type[Any], task_or_taskset: Task | Taskset | Sequence[Task], job_name: str,
    auto_reply_question: bool = False, adapter_cls: type[Any] | None = None,  # noqa: FBT001, FBT002  # HUD's
    agent_kwargs: Mapping[str, Any] | None = None, adapter_kwargs: Mapping[str, Any] | None = None,
    max_steps_per_task: int = 20, run_parallel: bool = True,  # noqa: FBT001, FBT002  # HUD's
    job_metadata: Mapping[str, Any] | None = None,
    show_progress: bool = True, verbose: bool = False,  # noqa: FBT001, FBT002  # HUD's
    max_concurrent_env_creations: int | None = 30,
    max_concurrent_agent_predictions: int | None = None, max_concurrent_tasks: int | None = 30,
    *, url: str | None = None, store: "Place" = None, retries: int = 0,
    resume: "Job | str | None" = None,
) -> Job:  # fmt: skip
    """Run an agent through tasks, each with a new agent in a new environment.

    A task's agent is `agent_cls(**agent_kwargs)`; `adapter_cls(**adapter_kwargs)` is its `adapter`.
    It is evaluated when it is done, or after `max_steps_per_task`. INFO logs each end
    (`show_progress`) and each step (`verbose`). `url` is as for `gym.make`, `retries` and `resume`
    as for `Taskset.run`. HUD's cloud answered questions; here `auto_reply_question` must be False.

    Returns:
        The job, with `errors`; `load_trajectories` reads its records.

    Raises:
        HudMcpError: An option cannot work, or there are no tasks. Nothing was recorded.
        StoreFailed: Nothing can be recorded.

    The agent is trusted, and its exceptions are results that do not pass. If this call is
    cancelled, it closes the environments and keeps the records; the job can be resumed.
    """
    tasks = _tasks_of(task_or_taskset)
    _check(
        auto_reply_question, retries, max_steps_per_task=max_steps_per_task,
        max_concurrent_env_creations=max_concurrent_env_creations,
        max_concurrent_agent_predictions=max_concurrent_agent_predictions,
        max_concurrent_tasks=max_concurrent_tasks,
    )  # fmt: skip
    if resume is not None:
        trusted = await resume_trusted(tasks, agent_cls, resume, store=store)
    else:
        trusted = plan_trusted(tasks, agent_cls, name=job_name, metadata=job_metadata, store=store)
    make_agent = partial(_make_agent, agent_cls, agent_kwargs, adapter_cls, adapter_kwargs)
    playing = _Playing(
        trusted.job, make_agent, url, max_steps_per_task, _limited(max_concurrent_env_creations),
        _limited(max_concurrent_agent_predictions), _level(show_progress), _level(verbose),
    )  # fmt: skip
    at_once = max_concurrent_tasks if run_parallel else 1
    return await _play(trusted, playing, at_once=at_once, retries=retries)


async def _play(
    trusted: TrustedJob, playing: "_Playing", *, at_once: int | None, retries: int
) -> Job:
    job = trusted.job
    async with trusted.recorded() as (opened, begun):
        try:
            begin = partial(ClassicTry, playing=playing, store=opened)
            await trusted.run(begin, begun, max_concurrent=at_once, retries=retries)
        finally:
            if job.errors:
                # Errors are rows of the job, which a cancelled call keeps too.
                with anyio.CancelScope(shield=True):
                    await job.save()
    return job


def _check(auto_reply_question: bool, retries: int, **numbers: int | None) -> None:  # noqa: FBT001  # HUD's
    if auto_reply_question:
        raise HudMcpError(
            "auto_reply_question=True needs HUD's cloud. Let your agent's `predict` answer its "
            "own questions instead."
        )
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise HudMcpError(f"{name} is {number}; give 1 or more.")
    if retries < 0:
        raise HudMcpError(f"retries is {retries}; give 0 or more.")


def _make_agent(
    agent_cls: type[Any],
    agent_kwargs: Mapping[str, Any] | None,
    adapter_cls: type[Any] | None,
    adapter_kwargs: Mapping[str, Any] | None,
) -> ClassicAgent:
    arguments = dict(agent_kwargs or {})
    if adapter_cls is not None:
        arguments["adapter"] = adapter_cls(**(adapter_kwargs or {}))
    return cast("ClassicAgent", agent_cls(**arguments))


def _level(shown: bool) -> int:  # noqa: FBT001  # one flag, and its level
    return logging.INFO if shown else logging.DEBUG


@dataclass(frozen=True)
class _Playing:
    """The options that all runs of one job share, as for `run_job`."""

    job: Job
    make_agent: Callable[[], ClassicAgent]
    url: str | None
    max_steps: int
    creating: AbstractAsyncContextManager[Any]
    predicting: AbstractAsyncContextManager[Any]
    end_level: int
    step_level: int


class _AgentFailed(Exception):
    """A failure of the agent; its cause is the exception."""


class ClassicTry:
    """One try of a run, in a live environment of this run alone."""

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
        """Record a begun run without an end here as lost; return whether this call did so."""
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
                except Exception as exc:  # noqa: BLE001  # the measurement is in the record
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

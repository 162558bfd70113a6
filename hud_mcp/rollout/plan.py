"""Which runs a job still needs, each with its seed.

A run is one of the group of its task. With a seed of the job's, each has one of its own that
follows from the job's, the task's id and its place in the group: the same job can be run
again, whatever order its runs come in and however often it was interrupted.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import Field, ValidationError

from hud_mcp.agents.ready import is_ready
from hud_mcp.analysis.tries import counting, outcome_class, plan
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.job.options import ModelOptions
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Receipt, TrajectorySummary
from hud_mcp.values.action import Value
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat
from hud_mcp.values.outcome import NOT_BEGUN, UNFINISHED, Outcome, OutcomeClass, cause_of, class_of

__all__ = ["PlannedRun", "Rollout", "RunOptions", "derived_seed", "plan_runs"]

_OPTIONS = "options"
"""Where a job's metadata has them."""
_SEED_BYTES = 4
"""As many as a session draws for itself; every random generator takes them."""


class RunOptions(Value):
    """How a job is run: its record keeps this, so that it can be resumed with nothing else."""

    agent: str | None = Field(default=None, description="A built-in agent.")
    agent_command: str | None = Field(default=None, description="Or any command.")
    agent_python: str | None = Field(
        default=None,
        description="Or one in Python, with a process of its own: `path.py:name`, `module:name`.",
    )
    agent_object: str | None = Field(
        default=None,
        description="Or the name of an agent in Python that worked in its program's own process.",
    )
    model: ModelOptions | None = Field(default=None, description="Or a model.")
    sources: tuple[str, ...] = Field(
        default=(), description="Environments, by name or absolute path; none where they are found."
    )
    folder: str = Field(default="", description="Where the run began; commands run there.")
    timeout_s: float = Field(default=600.0, gt=0)
    max_steps: int | None = Field(default=None, ge=1)
    max_concurrent: int = Field(default=4, ge=1, description="The most runs at one time.")
    retries: int = Field(default=0, ge=0, description="Of a run that failed for infrastructure.")
    seed: int | None = None
    image: ImageFormat = DEFAULT_FORMAT
    contexts: str | None = Field(default=None, description="What its rows were spread over.")
    context_selector: str | None = Field(default=None, description="And how.")
    protocol: str | None = Field(default=None, description="By whose protocol.")
    allow: tuple[str, ...] = Field(default=(), description="Local hosts that rows may open.")

    workers: int | None = Field(default=None, ge=1, description="Server processes; one by default.")
    ray: str | None = Field(default=None, description="The cluster where they run.")
    in_process: bool = Field(
        default=False, description="Whether the environments are in the process that runs it."
    )

    @property
    def is_remote(self) -> bool:
        """Whether its agent is another process, which calls the server over HTTP by itself."""
        if self.agent is not None:
            return is_ready(self.agent)
        return self.agent_command is not None or self.agent_python is not None

    @staticmethod
    def are_in(job: Job) -> bool:
        """Whether a job's record says how it was run."""
        return _OPTIONS in job.metadata

    @property
    def known_agent(self) -> str | None:
        """The agent of which rows say what reward it gets; None for any other."""
        return self.agent if self.agent in ("oracle", "nop") else None

    @classmethod
    def of(cls, job: Job) -> "RunOptions":
        """Read what a job was run with.

        Raises:
            HudMcpError: Its record does not say.
        """
        if job.trusts_agent and not cls.are_in(job):
            raise HudMcpError(
                f"Job {job.id} resumes only in the program of its agent: Taskset.run(agent, "
                f"resume={job.id!r}), or run_job(…, resume={job.id!r})."
            )
        try:
            return cls.model_validate(job.metadata.get(_OPTIONS))
        except ValidationError:
            raise HudMcpError(
                f"Job {job.id} cannot be resumed, because its record has no options. Only jobs "
                "of `hud-mcp eval` can be resumed."
            ) from None


@dataclass(frozen=True)
class PlannedRun:
    """One run of a task that a job is to have.

    Attributes:
        task: The task.
        place: Its place in the group of the task's runs, from 0.
        seed: What its session starts with; None for the task's own, or none at all.
    """

    task: Task
    place: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class Rollout:
    """What became of one run of a task.

    Attributes:
        planned: The run.
        trajectory_id: Its record's id; None where it was never begun.
        outcome: The class that it is counted in.
        reward: None unless graded.
        error: What went wrong, on whichever side, or None.
        agent_failed: Whether that was on the agent's side.
        seconds: From the start to the end, as the client saw it.
    """

    planned: PlannedRun
    trajectory_id: str | None
    outcome: OutcomeClass
    reward: float | None
    error: str | None
    agent_failed: bool
    seconds: float

    @classmethod
    def of(
        cls, planned: PlannedRun, trajectory_id: str | None, receipt: Receipt | None, *,
        error: str | None, agent_failed: bool, began_s: float,
    ) -> Self:  # fmt: skip
        """What became of a run by its record.

        Args:
            planned: The run.
            trajectory_id: Its record's id; None where it was never begun.
            receipt: What is recorded of its end; None where it has none.
            error: What went wrong.
            agent_failed: Whether that was on the agent's side.
            began_s: When it began, by the monotonic clock.
        """
        if receipt is not None:
            cause = cause_of(receipt.outcome, receipt.cause)
            outcome = class_of(receipt.outcome, cause, receipt.reward)
        else:
            outcome = NOT_BEGUN if trajectory_id is None else UNFINISHED
        return cls(
            planned=planned,
            trajectory_id=trajectory_id,
            outcome=outcome,
            reward=None if receipt is None else receipt.reward,
            error=error,
            agent_failed=agent_failed,
            seconds=time.monotonic() - began_s,
        )

    @classmethod
    def lost(
        cls, planned: PlannedRun, trajectory_id: str | None, reason: str, *, began_s: float
    ) -> Self:
        """What became of a run that cannot be brought to its end.

        Args:
            planned: The run.
            trajectory_id: Its record's id; None where it was never begun.
            reason: Why.
            began_s: When it began, by the monotonic clock.
        """
        seconds = time.monotonic() - began_s
        return cls(planned, trajectory_id, Outcome.LOST, None, reason, False, seconds)

    @property
    def is_tried_again(self) -> bool:
        """Whether it may be tried again."""
        return self.outcome.tried_again


def derived_seed(seed: int, task_id: str, place: int) -> int:
    """The seed of one run: 32 bits of the SHA-256 of the job's seed, the task and the place."""
    text = f"{seed}/{place}/{task_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_SEED_BYTES], "big")


def plan_runs(
    tasks: Sequence[Task], runs: Iterable[TrajectorySummary], *, group: int, seed: int | None
) -> list[PlannedRun]:
    """Tell which runs a job still needs: those that are missing or that infrastructure failed.

    Args:
        tasks: What the job runs, in order.
        runs: What it has begun so far.
        group: How many runs of each task it is to have.
        seed: The job's, or None. A task that has a seed in its row keeps it.

    Returns:
        One run of each task after the other, then the next of each: what is cut short has
        seen most tasks.
    """
    begun = counting(runs)
    missing = plan([task.id for task in tasks], begun, group)
    done: dict[str, Counter[int | None]] = {}
    for run in begun:
        if run.task_id in missing and not outcome_class(run).tried_again:
            done.setdefault(run.task_id, Counter())[run.seed] += 1
    planned: list[PlannedRun] = []
    for task in tasks:
        open_places: list[PlannedRun] = []
        had = done.get(task.id, Counter())
        for place in range(group):
            derived = None if seed is None else derived_seed(seed, task.id, place)
            run = PlannedRun(task, place, derived if task.seed is None else None)
            if run.seed is not None and had[run.seed]:
                had[run.seed] -= 1  # this very run is there
            else:
                open_places.append(run)
        needed = missing.get(task.id, 0)
        planned += open_places[len(open_places) - needed :] if needed else []
    return sorted(planned, key=lambda run: run.place)

"""The runs of a job: planned with their seeds, then tried several at once until a result counts.

A run's seed follows from the job's seed, the task's id and the run's place in the group of its
task. Therefore a job can be run again, in any order and after any interruption. A job that is cut
short leaves no session without an end: its runs under way are recorded as lost.
"""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import anyio

from hud_mcp.analysis.tries import counting, outcome_class, plan
from hud_mcp.base.contention import Contention
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.values import Receipt
from hud_mcp.rollout.link import ServerLost
from hud_mcp.values.outcome import NOT_BEGUN, UNFINISHED, Outcome, OutcomeClass, cause_of, class_of

_SEED_BYTES = 4
"""The size of a derived seed: as much as a session draws, and any random generator takes."""


@dataclass(frozen=True)
class PlannedRun:
    """One planned run of a task, at its place from 0 in the group of the task's runs.

    Without a seed, the session has the task's own, or none.
    """

    task: Task
    place: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class Rollout:
    """The result of one run of a task.

    Without a trajectory it never began; without a reward it was not graded.

    `error` is of either side, `agent_failed` tells which. `seconds` is the time that the client
    saw.
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
        """Return the result of a run by its receipt and its start on the monotonic clock."""
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
        """Return the result of a run that cannot end in order."""
        seconds = time.monotonic() - began_s
        return cls(planned, trajectory_id, Outcome.LOST, None, reason, False, seconds)

    @property
    def is_tried_again(self) -> bool:
        """Whether infrastructure failed it, so that it may be tried again."""
        return self.outcome.tried_again


def derived_seed(seed: int, task_id: str, place: int) -> int:
    """Return a run's seed: 32 bits of the SHA-256 of the job's seed, the place and the task."""
    text = f"{seed}/{place}/{task_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_SEED_BYTES], "big")


def plan_runs(
    tasks: Sequence[Task], runs: Iterable[TrajectorySummary], *, group: int, seed: int | None
) -> list[PlannedRun]:
    """Plan the runs that a job still needs: the missing ones, and those that infrastructure failed.

    The first run of each task comes before the second of any: a job that is cut short has seen most
    tasks. A task with a seed in its row keeps that one.
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
                # Each recorded run of a seed is counted off once.
                had[run.seed] -= 1  # this very run is there
            else:
                open_places.append(run)
        needed = missing.get(task.id, 0)
        planned += open_places[len(open_places) - needed :] if needed else []
    return sorted(planned, key=lambda run: run.place)


logger = logging.getLogger(__name__)

T = TypeVar("T")


async def work_through(
    items: Iterable[T], work: Callable[[T], Awaitable[bool]], *, max_concurrent: int | None
) -> None:
    """Work on all items, in their order, at most so many at one time; None for all.

    The work on one item returns whether its worker takes another one.

    If this call is cancelled, the items under way are cancelled, and no other begins.
    """
    listed = list(items)
    # One iterator for all workers: each item is taken once, in order.
    queue = iter(listed)

    async def one_after_the_other(left: Iterator[T]) -> None:
        for item in left:
            if not await work(item):
                return

    async with anyio.create_task_group() as group:
        for _ in range(min(max_concurrent or len(listed), len(listed))):
            group.start_soon(one_after_the_other, queue)


_ENOUGH = 3
"""After so many deaths from the first run on, it is no accident."""


class FirstSigns:
    """The signs of life of an agent's command in the first runs of a job.

    It is `alive` once a run of the command has called a tool, or ended in order.
    """

    def __init__(self) -> None:
        self.alive = False
        self._deaths: list[str] = []
        self._halted: str | None = None

    def halt(self, reason: str) -> None:
        """Begin no other run, as each would end in the same way, for this reason."""
        # The first reason is the cause of the others.
        self._halted = self._halted or f"The job was stopped. {reason}"

    def note(self, death: str | None, *, called: bool) -> bool:
        """Note the end of a run; return whether it says nothing of the agent.

        It says nothing if the command died and no run has ever lived. A command that has called a
        tool has ended its own run.
        """
        if death is None or called:
            self.alive = True
        if self.alive or death is None:  # one that has lived before works in principle
            return False
        self._deaths.append(death)
        return True

    @property
    def verdict(self) -> str | None:
        """The reason why no other run begins; None as long as the command may work."""
        if self._halted is not None:
            return self._halted
        if self.alive or len(self._deaths) < _ENOUGH:
            return None
        return (
            f"The job was stopped: the agent's command died in each of its first "
            f"{len(self._deaths)} runs, before it called a tool. {self._deaths[-1]} Mend the "
            "command, then resume the job."
        )


_FINISH_S = 5.0
"""The time for answers that are being graded when the job is interrupted."""
_SETTLE_S = 15.0
"""The time to record the ends of runs that were cut off."""


class Try(Protocol):
    """One try of a planned run, on whichever wire."""

    @property
    def planned(self) -> PlannedRun:
        """The planned run."""
        ...

    @property
    def server_lost(self) -> str | None:
        """The reason why no run can be tried any more, or None."""
        ...

    async def run(self) -> Rollout:
        """Let the agent work on the task, and end its session.

        Raises:
            ServerLost: It cannot end in order; its record has no end.

        If this call is cancelled, its session has its end, or `finish_grading` and `give_up` are
        called next.
        """
        ...

    async def finish_grading(self) -> Rollout | None:
        """Wait for the grade of a submitted answer; return None if it still has no end then."""
        ...

    async def give_up(self, reason: str) -> bool:
        """Record that it is lost, if it has begun and has no end; return whether it did.

        Raises:
            HudMcpError: The end cannot be recorded, or a living server runs the session.
        """
        ...

    def lost(self, reason: str) -> Rollout:
        """Return the result of a try that cannot end in order."""
        ...


Begin = Callable[[PlannedRun, FirstSigns, Contention], Try]
"""Makes a try of a run. All tries share the signs of the agent and of the machine's load."""


@dataclass(frozen=True)
class Watch:
    """The callbacks of a job while it runs. `on_end` gets whether another try follows.

    `on_death` and `on_note` get lines for people.
    """

    on_start: Callable[[PlannedRun], None] = lambda _run: None
    on_end: Callable[[Rollout, bool], None] = lambda _done, _again: None
    on_death: Callable[[str], None] = lambda _text: None
    on_note: Callable[[str], None] = lambda _text: None


class Runs:
    """The runs that an agent works on, several at once, each repeated if infrastructure failed it.

    `lost` is the reason why no other run begins, or None.
    """

    def __init__(
        self,
        begin: Begin,
        *,
        max_concurrent: int | None,
        retries: int = 0,
        watch: Watch | None = None,
    ) -> None:
        self.lost: str | None = None
        self._begin = begin
        self._max_concurrent = max_concurrent
        self._retries = retries
        self._watch = watch or Watch()
        self._signs = FirstSigns()
        self._contention = Contention()
        self._under_way: set[Try] = set()

    async def run(self, planned: Sequence[PlannedRun]) -> None:
        """Work on all runs. A failed run is data, and raises nothing.

        If this call is cancelled, answers that are being graded have a moment to get their grade.
        The rest stays under way, for `record_lost`.
        """
        # The machine's load is measured once for all runs: it is added to each agent's time.
        self._contention.start()
        try:
            await work_through(planned, self._work, max_concurrent=self._max_concurrent)
        finally:
            self._contention.stop()

    async def record_lost(self, reason: str) -> int:
        """Record the runs under way as lost, once the server has ended; return their number.

        It is done within its bound, also if this call is cancelled.
        """
        # Cleared first: a second call, after a second interrupt, has nothing to repeat.
        left = list(self._under_way)
        self._under_way.clear()
        lost = 0
        with anyio.move_on_after(_SETTLE_S, shield=True):
            for one in left:
                try:
                    lost += await one.give_up(reason)
                except HudMcpError as exc:
                    logger.warning("%s: %s", one.planned.task.id, exc)
        return lost

    async def _work(self, planned: PlannedRun) -> bool:
        """Try one run as often as it may be; return whether another one may begin."""
        if self.lost is not None:
            return False
        for left in range(self._retries, -1, -1):  # the last one has no other behind it
            done = await self._try(planned)
            if done is None:
                return False
            self.lost = self.lost or self._signs.verdict
            again = left > 0 and done.is_tried_again and self.lost is None
            self._watch.on_end(done, again)
            if not again:
                break
        return True

    async def _try(self, planned: PlannedRun) -> Rollout | None:
        """Make one try; return None if there is no server any more."""
        one = self._begin(planned, self._signs, self._contention)
        self._watch.on_start(planned)
        self._under_way.add(one)  # before the first wait: an interrupt must find it
        try:
            done = await one.run()
        except ServerLost as exc:
            return await self._lose(one, exc)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_FINISH_S, shield=True):
                await self._finish(one)
            raise
        # An unfinished run stays under way, so that its end is recorded as lost.
        if done.outcome is not UNFINISHED:
            self._under_way.discard(one)
        return done

    async def _lose(self, one: Try, exc: ServerLost) -> Rollout | None:
        """Give up one run, or all runs if there is no server any more."""
        if one.server_lost is not None:
            self.lost = one.server_lost
            return None
        try:
            # Now, while no server has it: the next one would resume it, and die of it too.
            await one.give_up(str(exc))
            self._under_way.discard(one)
        except HudMcpError as failure:
            logger.warning("%s: %s", one.planned.task.id, failure)
        return one.lost(str(exc))

    async def _finish(self, one: Try) -> None:
        """Wait a moment for the grade of an answer that was submitted before an interruption."""
        try:
            done = await one.finish_grading()
        except HudMcpError as exc:
            logger.debug("%s: %s", one.planned.task.id, exc)
            return
        if done is not None:
            self._under_way.discard(one)
            self._watch.on_end(done, False)

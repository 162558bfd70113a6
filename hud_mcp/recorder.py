"""What a session writes to the store, and what it still owes it.

A write that fails is kept and made good with the next one: a full disk loses nothing.
"""

import logging
from datetime import datetime
from typing import Any, Literal

import anyio
from pydantic_core import to_jsonable_python

from hud_mcp.action import ActionEffect
from hud_mcp.errors import StoreFailed
from hud_mcp.observation import Observation, Screenshot
from hud_mcp.store import Store
from hud_mcp.trajectory import Receipt, ScreenshotRecord, TrajectoryStep, utc_now

__all__ = ["Draft", "Recorder", "StepKind"]

logger = logging.getLogger(__name__)

StepKind = Literal["step", "act", "screenshot", "tool", "response"]


class Draft:
    """A step while it is made.

    Args:
        kind: How the record names the call.
        actions: What the agent sent.
    """

    def __init__(self, kind: StepKind, actions: list[dict[str, Any]]) -> None:
        self.kind: StepKind = kind
        self.actions = actions
        self.started_at = utc_now()
        self.performed = 0
        self.observation: Observation | None = None
        self.error: str | None = None
        self.rewards: list[float] = []
        self.notes: list[str] = []
        self.info: dict[str, Any] = {}
        self.terminated = False
        self.truncated = False

    @property
    def reward(self) -> float | None:
        """The sum of the rewards that the world gave, or None."""
        return sum(self.rewards) if self.rewards else None

    def add(self, effect: ActionEffect) -> None:
        """Add what one action did."""
        self.performed += 1
        if effect.text:
            self.notes.append(effect.text)
        if effect.reward is not None:
            self.rewards.append(effect.reward)
        self.terminated |= effect.terminated
        self.truncated |= effect.truncated
        self.info.update(effect.info)

    def step(self, index: int) -> TrajectoryStep:
        """The step as the record keeps it."""
        seen = self.observation or Observation()
        return TrajectoryStep(
            index=index,
            kind=self.kind,
            actions=tuple(self.actions),
            performed=self.performed,
            observation_text=seen.text,
            screenshot=ScreenshotRecord.of(seen.image) if seen.image else None,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            info=to_jsonable_python(self.info, fallback=str),
            error=self.error,
            started_at=self.started_at,
            ended_at=utc_now(),
        )


class Recorder:
    """Writes one session's steps, log and end, each once and in order.

    Args:
        store: Where to.
        trajectory_id: The record's id.
        log_lines: How many lines of log are kept.
    """

    def __init__(self, store: Store, trajectory_id: str, *, log_lines: int) -> None:
        self._store = store
        self._id = trajectory_id
        self._room = log_lines
        self._steps: list[tuple[TrajectoryStep, Screenshot | None]] = []
        self._lines: list[tuple[datetime, str]] = []
        self._receipt: Receipt | None = None
        self._lock = anyio.Lock()
        self.count = 0

    def log(self, line: str) -> None:
        """Add a line to the log; it is written with the next step, or at the end."""
        if self._room > 0:
            self._room -= 1
            more = " … the log is full; later lines are dropped" if self._room == 0 else ""
            self._lines.append((utc_now(), line + more))

    async def add(self, draft: Draft) -> None:
        """Make a step durable.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next one.
        """
        self.owe(draft)
        try:
            await self._flush()
        except StoreFailed as exc:
            raise StoreFailed(
                f"This call was performed, but not recorded. {exc} It is kept, and recorded with "
                "the next call: do not repeat its actions."
            ) from exc

    async def keep(self, draft: Draft) -> None:
        """Make a step durable whose call has failed; where that fails too, with the next one."""
        try:
            await self.add(draft)
        except StoreFailed as exc:
            logger.warning("%s", exc)

    def owe(self, draft: Draft) -> None:
        """Keep a step, to be written with the next one."""
        shot = draft.observation.image if draft.observation else None
        self._steps.append((draft.step(self.count), shot))
        self.count += 1

    def withdraw(self) -> None:
        """Take the last step back, if it is not written yet: what it says was not done."""
        if self._steps:
            self._steps.pop()
            self.count -= 1

    async def end(self, receipt: Receipt) -> None:
        """Make the end durable, with everything that is still owed.

        Raises:
            StoreFailed: It was not written; `settle` tries again.
        """
        self._receipt = receipt
        await self.settle()

    async def leave(self) -> None:
        """Write what was logged after the end, and what is still owed.

        Raises:
            StoreFailed: It was not written.
        """
        await self.settle()
        await self._flush()

    @property
    def owes(self) -> bool:
        """Whether the end is known and not written."""
        return self._receipt is not None

    async def settle(self) -> None:
        """Write the end, if it is still owed.

        Raises:
            StoreFailed: It still cannot be written.
        """
        if self._receipt is None:
            return
        try:
            await self._flush()
            await self._store.end_session(self._id, self._receipt)
        except StoreFailed as exc:
            raise StoreFailed(
                f"The task has ended, but its end is not recorded yet. {exc} The same call again "
                "tries again."
            ) from None
        self._receipt = None

    async def _flush(self) -> None:
        # Shielded: what was performed is recorded, also where its request was cancelled.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                while self._steps:
                    step, shot = self._steps[0]
                    await self._store.add_step(self._id, step, shot)
                    self._steps.pop(0)
                lines = list(self._lines)
                await self._store.add_logs(self._id, lines)
                del self._lines[: len(lines)]

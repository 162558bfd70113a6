"""What becomes of sessions that earlier servers left on the store, and nobody asks for.

One that was answered is graded; one that nobody resumes, or can, is ended.
"""

import asyncio
import logging
import time
from collections.abc import Collection

from hud_mcp.errors import HudMcpError
from hud_mcp.grade import Outcome
from hud_mcp.record.trajectory import utc_now
from hud_mcp.session.limits import Limits
from hud_mcp.session.resume import MAY_LACK_STEPS, Resumption
from hud_mcp.session.roster import Roster
from hud_mcp.store import Store
from hud_mcp.store.stored_session import WaitingSession

__all__ = ["Sweep"]

logger = logging.getLogger(__name__)

_LOOK_S = 10.0
"""How often to look for sessions that no server runs any more."""
_FIRST_LOOK_S = 3.0
"""When to look first: the database loads after the first requests are answered."""


class Sweep:
    """One task that looks, now and then, for what other servers on a store left.

    Args:
        store: Where they are recorded.
        environments: The names of those that this process serves.
        roster: Who is here.
        resumption: Resumes sessions.
        limits: How long a session may wait, and be open.
        is_wanted: Whether this process looks at all.
    """

    def __init__(
        self,
        store: Store,
        environments: Collection[str],
        *,
        roster: Roster,
        resumption: Resumption,
        limits: Limits,
        is_wanted: bool,
    ) -> None:
        self._store = store
        self._environments = environments
        self._roster = roster
        self._resumption = resumption
        self._limits = limits
        self._is_wanted = is_wanted
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look soon, if there is a record by now."""
        if self._store.exists:
            self.watch(_FIRST_LOOK_S)

    def watch(self, first_s: float = _LOOK_S) -> None:
        """Look from now on; again is not an error.

        Args:
            first_s: When to look first.
        """
        if self._is_wanted and self._task is None and not self._resumption.is_stopped:
            looking = self._look_on(first_s)
            self._task = asyncio.get_running_loop().create_task(looking, name="look")

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _look_on(self, pause_s: float) -> None:
        while True:
            await asyncio.sleep(pause_s)
            began_s = time.monotonic()
            await self._look()
            pause_s = max(0.0, began_s + _LOOK_S - time.monotonic())

    async def _look(self) -> None:
        """Grade what waits for its grade, and end what nobody will resume."""
        try:
            waiting = await self._store.waiting_sessions(list(self._environments))
        except HudMcpError as exc:
            logger.info("%s", exc)
            return
        for found in waiting:
            try:
                await self._look_after(found)
            except HudMcpError as exc:  # the others are looked after nevertheless
                logger.info("%s: %s", found.trajectory_id, exc)

    async def _look_after(self, found: WaitingSession) -> None:
        if self._resumption.is_under_way(found.trajectory_id) or self._resumption.is_stopped:
            return
        if found.answered:
            await self._resumption.resume(found.trajectory_id, connection=None)
        elif self._roster.of_record(found.trajectory_id) is not None:
            return  # somebody has resumed it meanwhile
        elif (end := _overdue(found, self._limits)) is not None:
            await self._resumption.end(found.trajectory_id, *end)


def _overdue(found: WaitingSession, limits: Limits) -> tuple[Outcome, str] | None:
    """How a session ends that no server runs; None while somebody may still resume it."""
    now = utc_now()
    if not found.has_prompt:
        return Outcome.LOST, "Its server ended while it was being prepared."
    if found.unflushed:
        return Outcome.LOST, MAY_LACK_STEPS
    if (now - found.started_at).total_seconds() > limits.total_s:
        return (
            Outcome.EXPIRED,
            f"It was open for {limits.total_s:g} s, the longest allowed.",
        )
    if (now - found.since).total_seconds() > limits.idle_s:
        text = f"Its server ended, and nobody went on with it for {limits.idle_s:g} s."
        return Outcome.EXPIRED, text
    return None

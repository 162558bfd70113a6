"""The ids of a job's sessions: its plan has them before anybody can begin one."""

import secrets

import anyio

from hud_mcp.session.receipts import digest
from hud_mcp.store import Store

__all__ = ["SessionIds", "draw_session_id"]

_AT_ONCE = 64
"""So many are planned in one commit."""


def draw_session_id() -> str:
    """An id that nobody can guess."""
    return f"sess-{secrets.token_hex(16)}"


class SessionIds:
    """Ids that the plan of a job has, many of them by one commit.

    Those that are planned and never begun count nowhere.

    Args:
        store: Where the job is recorded.
        job_id: The job; None where there is no plan.
        at_once: How many are planned in one commit.
    """

    def __init__(self, store: Store, job_id: str | None, *, at_once: int = _AT_ONCE) -> None:
        self._store = store
        self._job_id = job_id
        self._at_once = max(1, at_once)
        self._ready: list[str] = []
        self._alone = anyio.Lock(fast_acquire=True)

    async def take(self) -> str:
        """Take one for a run that begins now.

        Raises:
            StoreFailed: The plan cannot be written.
        """
        if self._job_id is None:
            return draw_session_id()
        async with self._alone:
            if not self._ready:
                drawn = [draw_session_id() for _ in range(self._at_once)]
                await self._store.plan_runs(self._job_id, [digest(each) for each in drawn])
                self._ready = drawn
            return self._ready.pop()

"""What earlier processes on a store held of a channel's tasks."""

from hud_mcp.plugins.hud.wire.hud_session import PRINCIPAL, HudSession, task_session_id
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.receipts import digest
from hud_mcp.store import Store

__all__ = ["find_stored", "waiting_records"]

_GAP = 8
"""How many starts in a row may have failed without a trace, where a session is looked up."""


async def waiting_records(store: Store, environment: str) -> list[str]:
    """The parked tasks of earlier processes, by their records' ids.

    Args:
        store: Where they are recorded.
        environment: The name of the environment whose they are.
    """
    if not store.exists:
        return []
    found = await store.waiting_sessions([environment])
    return [w.trajectory_id for w in found if w.principal == PRINCIPAL and w.has_prompt]


async def find_stored(store: Store, session_id: str) -> HudSession | None:
    """A HUD session that an earlier process had; None where none had it.

    Args:
        store: Where its tasks are recorded.
        session_id: What `hello` returned.
    """
    if not store.exists:
        return None
    count, number = 0, 0
    task: str | Receipt | None = None
    while number < count + _GAP:
        task_id = task_session_id(session_id, number)
        number += 1
        found = await store.find_session(digest(task_id), principal=PRINCIPAL)
        if found is not None:
            count, task = number, found[1] or task_id
    return HudSession(session_id, count=count, task=task) if count else None

"""Whose doing a cancellation is, as far as whoever asks for it may say so."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.grade import Cause
from hud_mcp.session.caller import CAUSE, REASON
from hud_mcp.store import Store

__all__ = ["read_cancellation"]


async def read_cancellation(
    said: Mapping[str, Any], *, secret_digest: str, store: Store
) -> tuple[str | None, Cause]:
    """What whoever runs an agent says of a session's end; an agent itself says nothing here.

    A runner is known by its plan: nobody else writes one. Else an agent could take a run that it
    has failed out of every figure.

    Args:
        said: What came with the call: a reason and a cause, or neither.
        secret_digest: Of the session's id.
        store: Where the plan is.

    Returns:
        Why it ends, for the record, and whose doing that is.

    Raises:
        StoreFailed: The plan cannot be read.
    """
    reason, cause = said.get(REASON), said.get(CAUSE)
    if reason is None and cause is None:
        return None, Cause.AGENT
    if not await store.is_planned(secret_digest):
        return None, Cause.AGENT
    by = Cause(cause) if cause in list(Cause) else Cause.AGENT
    return reason if isinstance(reason, str) else None, by

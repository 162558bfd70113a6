"""The time at which a session that nobody attends to ends: one timer for each."""

import asyncio
import time

from hud_mcp.grade import Cause, Outcome
from hud_mcp.session.events import EndWanted, Phase
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd

__all__ = ["expire_later"]

_SOON_S = 0.5
"""How soon to look again at a session that is at work, or that the machine let wait."""


def expire_later(session: Session) -> None:
    """Have a session end once it may be open, or idle, no longer."""
    limits = session.limits
    first_s = min(limits.idle_s, limits.total_s)
    if session.state.provisional:
        first_s = min(first_s, limits.provisional_s)
    _look_in(session, first_s)


def _look_in(session: Session, seconds: float) -> None:
    # The timer is not moved with each call, which would cost each of them: it looks again.
    session.expiry = asyncio.get_running_loop().call_later(seconds, _look, session)


def _look(session: Session) -> None:
    if session.state.is_over:
        return
    reason, left_s = _reason(session) if session.state.phase is Phase.OPEN else (None, _SOON_S)
    if reason is None:
        _look_in(session, max(left_s, _SOON_S))
    else:
        session.post(EndWanted(SessionEnd(Outcome.EXPIRED, told=reason, cause=Cause.AGENT)))


def _reason(session: Session) -> tuple[str | None, float]:
    """Why a session ends now, or None; and in how many seconds it may end at the earliest."""
    limits, now = session.limits, time.monotonic()
    idle_s = now - session.touched_s - session.waited_since(session.waited_at_touch_s)
    open_s = now - session.begun_s - session.waited_since(session.waited_at_begin_s)
    if open_s >= limits.total_s:
        return f"It was open for {limits.total_s:g} s, the longest allowed.", 0.0
    left_s = limits.total_s - open_s
    if session.is_busy:
        return None, _SOON_S
    if session.state.provisional:
        if idle_s >= limits.provisional_s:
            return f"Nobody acted on it for {limits.provisional_s:g} s.", 0.0
        left_s = min(left_s, limits.provisional_s - idle_s)
    if idle_s >= limits.idle_s:
        return f"It was idle for {limits.idle_s:g} s.", 0.0
    return None, min(left_s, limits.idle_s - idle_s)

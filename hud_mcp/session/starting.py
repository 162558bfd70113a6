"""The beginning of a session's life here, by a start or from its record, and its expiry."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from hud_mcp.environment.prompt import Prompt
from hud_mcp.errors import (
    EnvironmentFailed,
    HudMcpError,
    LimitReached,
    SessionEnded,
    SessionTaken,
    StoreFailed,
)
from hud_mcp.session.events import Claimed, EndWanted, Phase, Prompted, Staged
from hud_mcp.session.receipts import ended_text, over_text
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.values.grade import Cause, Outcome

logger = logging.getLogger(__name__)
T = TypeVar("T")


class _Line(Generic[T]):
    """The callers that wait for one piece of work."""

    __slots__ = ("callers", "task", "turn")

    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.turn = asyncio.Lock()  # fair: callers pass in the order in which they came
        self.callers = 0


class SharedWork(Generic[T]):
    """Work by key that several callers share. It goes on if its callers leave.

    Until the last of them has gone on, later callers wait behind them. So the next action of each
    caller happens in the order in which they asked.
    """

    def __init__(self) -> None:
        self._lines: dict[Hashable, _Line[T]] = {}

    def is_under_way(self, key: Hashable) -> bool:
        """Whether this work goes on, or a caller has yet to go on with its result."""
        return key in self._lines

    async def result_of(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for the work of a key, which the first caller begins; its exception goes to each."""
        line = self._lines.get(key)
        if line is None:
            # A task of its own, so that the work goes on if the first caller leaves.
            task = asyncio.get_running_loop().create_task(work())
            line = self._lines[key] = _Line(task)
            task.add_done_callback(lambda done: self._ended(key, done))
        line.callers += 1
        try:
            # Shielded: one caller's cancellation must not end the work of the others.
            async with line.turn:
                return await asyncio.shield(line.task)
        finally:
            line.callers -= 1
            # The last one removes the key, so that a later call begins anew.
            if not line.callers and line.task.done():
                del self._lines[key]

    def cancel(self) -> None:
        """Cancel all work; its callers are cancelled too."""
        for line in self._lines.values():
            line.task.cancel()

    def _ended(self, key: Hashable, done: "asyncio.Task[T]") -> None:
        """Forget work without callers, and retrieve its exception."""
        line = self._lines.get(key)  # gone if the last caller left in the turn of its end
        left = line is not None and line.task is done and not line.callers
        if left:
            del self._lines[key]
        error = None if done.cancelled() else done.exception()
        if left and error is not None:
            level = logging.INFO if isinstance(error, HudMcpError) else logging.ERROR
            logger.log(level, "work that nobody waited for failed: %s", error)


_SOON_S = 0.5
"""The time until the next look at a session that is at work, or that the machine delayed."""


async def start(session: Session) -> Prompt:
    """Open a session's world, run its template to the prompt, and return that.

    If this call is cancelled, the half-made session ends as cancelled.

    Raises:
        EnvironmentFailed: The setup failed; the session has ended and is recorded.
        InvalidContext: The context does not belong to the environment's space. Nothing was opened.
        LimitReached: The task has had its last start.
        StoreFailed: The record could not be written. Nothing was opened, or it is closed again.
    """
    session.stage()
    try:
        prompt = await _run_to_prompt(session)
    except asyncio.CancelledError:
        # A half-made session must not stay open without an owner.
        told = "Its start was cancelled."
        _end_start(session, SessionEnd(Outcome.CANCELLED, told=told, cause=Cause.OPERATOR))
        raise
    except (StoreFailed, LimitReached, SessionTaken):
        text = "It was not recorded."
        _end_start(session, SessionEnd(Outcome.ENVIRONMENT_FAILED, told=text))
        raise
    except Exception as exc:  # its setup failed, and it has its end; or its world is nowhere
        text = str(exc) if isinstance(exc, HudMcpError) else "Its world cannot be found again."
        error = f"{type(exc).__name__}: {exc}"
        _end_start(session, SessionEnd(Outcome.ENVIRONMENT_FAILED, error=error, told=text))
        raise
    state = session.post(Prompted())
    ends = state.phase is Phase.ENDING or state.is_over
    if ends and not state.has_ended_wait:  # its own deadline may have had it graded by now
        await session.over()
        raise SessionEnded(over_text(session.state))
    _expire_later(session)
    return prompt


def _end_start(session: Session, end: SessionEnd) -> None:
    session.post(EndWanted(end, abort=True))


async def _run_to_prompt(session: Session) -> Prompt:
    """Run the template to its prompt, and make that durable."""
    life, journal = session.life, session.journal
    # Where nothing is opened or awaited on the way, one commit has the row and its prompt.
    at_once = life.template.prompts_at_once and session.environment.world.opens_nothing
    # Otherwise the row comes first: a session that nothing records must not open a world.
    if not at_once:
        await journal.begin(session.spec)
    driven = session.post(Staged(life.number)).is_driven
    prompt = await life.driver.wait_for_prompt() if driven else None
    if prompt is None:
        await session.over()
        raise EnvironmentFailed(_why_not_started(session))
    setup_s = session.spec.limits.setup_s
    try:
        async with asyncio.timeout(setup_s):
            await life.world.ready()
    except TimeoutError:
        text = f"The start of its world took longer than {setup_s:g} s and was stopped."
        raise EnvironmentFailed(text) from None
    session.prompt = prompt
    if at_once:
        await journal.begin(session.spec, prompt.text)
    else:
        await journal.save_prompt(prompt.text)
    if (handle := await life.world.handle()) is not None:
        await journal.keep_handle(handle)
    return prompt


def _why_not_started(session: Session) -> str:
    state = session.state
    if session.spec.is_operated and state.receipt is not None and state.receipt.error is not None:
        return state.receipt.error  # an agent is told nothing of the author's
    return state.told or (state.end.outcome.value if state.end is not None else "It has ended.")


async def resume(session: Session) -> None:
    """Go on with a session that another server process began, and that this one has claimed.

    The world is opened anew, and brought to the last recorded step; a submitted answer is handed
    over again. No call reaches the session meanwhile. If this call is cancelled, it waits in its
    record as it was.

    Raises:
        SessionEnded: The session cannot come back; it has ended as lost, and is recorded.
        StoreFailed, SessionTaken: The record cannot be written. The session waits there unchanged.
    """
    session.post(Claimed())
    try:
        state = await session.until(lambda state: state.phase is not Phase.RESUMING)
    except asyncio.CancelledError:
        # The record is as it was, so another server can resume the session.
        session.post(EndWanted(SessionEnd.left_to_record(), abort=True))
        raise
    if not state.is_back:  # else it may be graded by now
        await session.closed()
        raise session.failure or SessionEnded(ended_text(session.receipt, session.state.told))
    _expire_later(session)


def _expire_later(session: Session) -> None:
    """Have a session end after its longest life, or its longest idle time."""
    limits = session.spec.limits
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
    """The reason why a session ends now, or None, and the least seconds until it may end."""
    limits, now = session.spec.limits, time.monotonic()
    # The machine's delays are no idleness of the agent.
    idle_s = now - session.touched_s - session.waited_since(session.waited_at_touch_s)
    open_s = now - session.begun_s - session.waited_since(session.waited_at_begin_s)
    if open_s >= limits.total_s:
        return f"It was open for {limits.total_s:g} s, the longest allowed.", 0.0
    left_s = limits.total_s - open_s
    # A session at work is not idle, however long its call takes.
    if session.is_busy:
        return None, _SOON_S
    if session.state.provisional:
        if idle_s >= limits.provisional_s:
            return f"Nobody acted on it for {limits.provisional_s:g} s.", 0.0
        left_s = min(left_s, limits.provisional_s - idle_s)
    if idle_s >= limits.idle_s:
        return f"It was idle for {limits.idle_s:g} s.", 0.0
    return None, min(left_s, limits.idle_s - idle_s)

"""Which task each peer of the channel holds: HUD's session ids, on the sessions of the process.

A HUD session runs one task after the other; each of ours runs one. So a HUD session's
first task is the session of the same id, and each later one has an id derived from it:
whoever has the HUD id reaches them all, after a restart too, and nobody else does.
"""

import time
from collections.abc import Mapping
from typing import Any, Protocol

import anyio

from hud_mcp.channel.hud_session import (
    HudSession,
    Speaker,
    new_session_id,
    task_session_id,
)
from hud_mcp.environment import Environment
from hud_mcp.errors import (
    HudMcpError,
    InvalidContext,
    InvalidTask,
    LimitReached,
    SessionEnded,
    did_you_mean,
)
from hud_mcp.grade import Cause, Outcome
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.cancellation import read_cancellation
from hud_mcp.session.receipts import digest, ended_how, ended_text
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Caller, Session
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.task import Task

__all__ = ["PRINCIPAL", "HudSessions", "NotHeld", "WaysIn"]

PRINCIPAL = "hud-channel"
"""Whose the channel's sessions are: an id of theirs opens nothing over MCP, nor the reverse."""

_GAP = 8
"""How many starts in a row may have failed without a trace, where a session is looked up."""

_UNTOLD = 256
"""How many grades that nobody received are kept for who asks without an id."""

_SWEEP_S = 10.0


class NotHeld(HudMcpError):
    """There is no such session, or not one to take; the text is what HUD's clients know.

    Attributes:
        receipt: Of the session that was named, where it has ended.
    """

    def __init__(self, text: str, receipt: Receipt | None = None) -> None:
        super().__init__(text)
        self.receipt = receipt


class WaysIn(Protocol):
    """The ways into the worlds of HUD sessions beside their calls."""

    def dismiss(self, held: HudSession) -> None:
        """Let a session in no more."""
        ...


class HudSessions:
    """All HUD sessions of one channel.

    Args:
        sessions: The registry.
        environment: The environment that the channel serves.
        takes_parked: Whether a peer that names no session may take over the only parked one.
        ways_in: They are told of each session that is over for good, or that only the store
            knows from then on.
    """

    def __init__(
        self, sessions: Sessions, environment: Environment, *, takes_parked: bool, ways_in: WaysIn
    ) -> None:
        self._sessions = sessions
        self._environment = environment
        self._takes_parked = takes_parked
        self._ways_in = ways_in
        self._held: dict[str, HudSession] = {}
        self._caller = Caller(principal=PRINCIPAL)
        self._taking = anyio.Lock()
        self._sweep_at_s = 0.0

    def __len__(self) -> int:
        return len(self._held)

    def open(self, speaker: Speaker) -> HudSession:
        """A new HUD session, spoken for by its connection."""
        held = HudSession(new_session_id())
        held.speak(speaker)
        self._held[held.id] = held
        return held

    def find(self, named: str) -> HudSession | None:
        """The HUD session whose id has this digest; None where this process knows none."""
        return next((held for held in self._held.values() if digest(held.id) == named), None)

    def park(self, held: HudSession, speaker: Speaker) -> None:
        """Note that a connection is gone; what its session holds stays.

        Where another connection speaks for it by now, nothing happens.
        """
        if not held.park(speaker):
            return
        if not held.goes_on and not held.is_untold:
            self._remove(held)  # the store knows how it ended
        if time.monotonic() >= self._sweep_at_s:
            self._sweep_at_s = time.monotonic() + _SWEEP_S
            self._sweep()

    def _sweep(self) -> None:
        """Forget parked sessions whose tasks have ended meanwhile."""
        ended = [h for h in self._held.values() if h.speaker is None and not h.goes_on]
        untold = sorted((h for h in ended if h.is_untold), key=lambda h: h.untold_s)
        kept = {h.id for h in untold[-_UNTOLD:]}
        for held in ended:
            if held.id not in kept:
                self._remove(held)

    def _remove(self, held: HudSession) -> None:
        self._held.pop(held.id, None)
        self._ways_in.dismiss(held)

    def forget(self, held: HudSession) -> None:
        """Note that a session is over for good."""
        held.drop()
        self._remove(held)

    async def attend(self, held: HudSession) -> Session:
        """The session of the task that a HUD session holds, for what reaches its world directly.

        Raises:
            NotHeld: No task is held, or it is being started.
            SessionEnded, SessionBusy: It has ended, or cannot be resumed here now.
        """
        if held.starting.locked():
            raise NotHeld("The task is being started; wait for its prompt, then try again.")
        session = await self._current(held)
        if session is not None:
            await session.back()
            return session
        if held.receipt is not None:
            raise SessionEnded(ended_text(held.receipt))
        raise NotHeld("No task is in progress; start one with tasks.start, then try again.")

    async def resume(
        self, session_id: str, speaker: Speaker, *, take_over: bool = False
    ) -> HudSession:
        """Let a connection speak for a session that has none.

        Args:
            session_id: What `hello` returned.
            speaker: The connection.
            take_over: Whether to take it from a connection that may be dead.

        Raises:
            NotHeld: It is unknown, has a live connection, or has nothing that goes on: its last
                task has ended, and the error has the receipt.
            StoreFailed: It has ended, and that cannot be recorded.
        """
        held = self._held.get(session_id)
        if held is None:
            found = await self._find_stored(session_id)
            held = self._held.get(session_id) or found  # another one may have asked meanwhile
        if held is None:
            raise NotHeld(f"unknown session: {session_id!r}")
        receipt = await _settled(held)
        other = None if held.speaker is speaker else held.speaker
        if other is not None and not take_over:
            raise NotHeld(f"session {session_id!r} has a live connection")
        if receipt is not None:
            raise NotHeld(_unknown(session_id, receipt), receipt)
        if other is not None:
            other.lose()
        held.speak(speaker)
        self._held[held.id] = held
        held.touch()
        return held

    async def start(self, held: HudSession, task_id: str, args: Mapping[str, Any]) -> Session:
        """Start a task, in place of the one that the session holds.

        Raises:
            InvalidTask, InvalidContext: Nothing was started, and what was held still is.
            HudMcpError: It could not be started.

        If this call is cancelled, the half-made task ends as cancelled.
        """
        task = self._mint(task_id, args)
        async with held.starting:
            await self._end_current(held, _cancelled())
            held.drop()
            try:
                session = await self._sessions.start(
                    task,
                    caller=self._caller,
                    session_id=held.next_task_id(),
                    drawn=True,
                )
            except (InvalidTask, InvalidContext, LimitReached):
                held.return_task_id()  # nothing is recorded under it
                raise
            held.hold(session)
            return session

    async def grade(
        self, held: HudSession, answer: str, *, max_bytes: int | None = None
    ) -> Receipt:
        """Submit the answer of the task that a session holds, or of the only parked one.

        A session whose own grade was told holds nothing, as with HUD: it may take the only
        parked one. Where none is parked, the same answer again gives the same receipt.

        Raises:
            NotHeld: No task is held, or it is not clear which.
            HudMcpError: It was not graded; the text says why.

        If this call is cancelled, an answer that was submitted stays so, and is graded.
        """
        async with held.starting:
            pass  # one that is being started is graded, not another one in its place
        if held.session is None and held.stored is None and held.receipt is None:
            if held.count or not self._takes_parked:
                raise NotHeld("no task in progress")
            if not await self._take_parked(held, answer):
                raise NotHeld("no task in progress")
        elif self._takes_parked and held.is_told:
            await self._take_parked(held)
        session = await self._current(held)
        if session is None:
            return _same_answer(held.receipt, answer)
        held.ask_grade()
        try:
            receipt = await session.respond(answer, max_bytes=max_bytes)
        except SessionEnded:
            receipt = session.receipt
            if receipt is None or receipt.reward is None or receipt.answer_digest is not None:
                raise
            await session.flush_end()  # its own deadline had it graded, without any answer
        if receipt is None:
            raise SessionEnded("The task was not graded.")
        return receipt

    async def cancel(self, held: HudSession, said: Mapping[str, Any]) -> None:
        """End the task that a session holds, whatever it does; without one, nothing happens.

        Args:
            held: The session.
            said: What came with the call; see `read_cancellation`.
        """
        reason, cause = await read_cancellation(
            said,
            secret_digest=digest(held.task_id),
            store=self._sessions.store,
        )
        end = _cancelled(reason, cause)
        if held.starting.locked() and (begun := self.begun(held)) is not None:
            await begun.finish(end, abort=True)
        async with held.starting:
            await self._end_current(held, end)
            held.drop()

    def begun(self, held: HudSession) -> Session | None:
        """The session of a task that is being started, while its setup runs; else None."""
        found = self._sessions.here(held.task_id, self._caller)
        return None if found is None or found.is_closed else found

    async def _end_current(self, held: HudSession, end: SessionEnd) -> None:
        try:
            session = await self._current(held)
        except HudMcpError:
            return  # it cannot be resumed, or another server runs it
        if session is not None and not session.is_over:
            await session.finish(end, abort=True)

    async def _current(self, held: HudSession) -> Session | None:
        """The session of the task that is held; None where it ended before this process began."""
        found: Session | Receipt | None = None
        if held.stored is not None:
            found = await self._sessions.find(held.stored, self._caller)
        elif held.session is not None and held.session.is_let_go:
            found = await self._sessions.current(held.session)
        if found is not None:
            held.hold(found)
        return held.session

    async def _take_parked(self, held: HudSession, answer: str | None = None) -> bool:
        """Let a session hold what the only parked one holds; return whether there was one.

        Args:
            held: The session.
            answer: Where it is given, a grade for it that nobody was told of counts too.

        Raises:
            NotHeld: It is not clear which one is meant.
        """
        async with self._taking:
            parked = [h for h in self._held.values() if h.speaker is None and h.goes_on]
            known = {h.session.trajectory_id for h in parked if h.session is not None}
            waiting = [w for w in await self._waiting() if w not in known]
            count = len(parked) + len(waiting)
            if count > 1:
                raise NotHeld(
                    f"{count} parked sessions; resume one by sending hello with its session_id"
                )
            if count == 0 and answer is not None:
                parked = self._untold(answer)
            if parked:
                await self._take(held, parked[0])
            elif waiting:
                held.hold(await self._sessions.resume(waiting[0]))
            return bool(parked or waiting)

    async def _take(self, held: HudSession, other: HudSession) -> None:
        async with other.starting:
            pass
        held.take(other)
        self.forget(other)

    def _untold(self, answer: str) -> list[HudSession]:
        """The one session that was graded for this answer and whose peer did not learn of it."""
        found = [
            h
            for h in self._held.values()
            if h.speaker is None
            and h.is_untold
            and h.session is not None
            and h.session.receipt is not None
            and h.session.receipt.answer_digest == digest(answer)
        ]
        return found if len(found) == 1 else []

    async def _waiting(self) -> list[str]:
        """The parked tasks of earlier processes on the store, by their records' ids."""
        if not self._sessions.store.exists:
            return []
        found = await self._sessions.store.waiting_sessions([self._environment.name])
        return [w.trajectory_id for w in found if w.principal == PRINCIPAL and w.has_prompt]

    async def _find_stored(self, session_id: str) -> HudSession | None:
        """A HUD session that an earlier process on the store held, or None."""
        if not self._sessions.store.exists:
            return None
        count, number = 0, 0
        held: str | Receipt | None = None
        while number < count + _GAP:
            task_id = task_session_id(session_id, number)
            number += 1
            found = await self._sessions.store.find_session(digest(task_id), principal=PRINCIPAL)
            if found is not None:
                count, held = number, found[1] or task_id
        return HudSession(session_id, count=count, held=held) if count else None

    def listed(self) -> list[dict[str, Any]]:
        """What can be started, as the wire has it: templates, and rows with their own prompts."""
        rows = [
            {
                "id": task.id,
                "description": task.title,
                "args": self._environment.template_of(task).arguments.schema,
            }
            for task in self._sessions.tasks
            if task.prompt is not None and task.env == self._environment.name
        ]
        return [*self._environment.manifest()["templates"], *rows]

    def _mint(self, task_id: str, args: Mapping[str, Any]) -> Task:
        name = self._environment.name
        if task_id in self._environment.templates:
            return self._sessions.mint(task_id, args, environment=name)
        if task_id in self._sessions.tasks and self._sessions.tasks[task_id].env == name:
            if args:
                raise InvalidTask(f"{task_id!r} is a row with its own arguments; pass none.")
            return self._sessions.tasks[task_id]
        ids = [str(each["id"]) for each in self.listed()]
        hint, known = did_you_mean(task_id, ids), ", ".join(ids) or "none"
        raise InvalidTask(f"unknown task: {task_id!r}.{hint} There are: {known}.")


async def _settled(held: HudSession) -> Receipt | None:
    """The receipt of what a session held last; None where that goes on.

    Raises:
        StoreFailed: It is not recorded, and cannot be.
    """
    if held.goes_on:
        return None
    if held.session is not None:
        await held.session.flush_end()
        return held.session.receipt
    return held.receipt


def _unknown(session_id: str, receipt: Receipt) -> str:
    """HUD's words for a session that is over; without a grade, with how it ended."""
    text = f"unknown session: {session_id!r}"
    return text if receipt.outcome is Outcome.GRADED else f"{text}: it {ended_how(receipt)}"


def _cancelled(reason: str | None = None, cause: Cause = Cause.AGENT) -> SessionEnd:
    told = "It was cancelled by the client."
    return SessionEnd(Outcome.CANCELLED, error=reason, told=told, cause=cause)


def _same_answer(receipt: Receipt | None, answer: str) -> Receipt:
    """The receipt again for the same answer.

    Raises:
        SessionEnded: It was another one, or there is no grade.
        NotHeld: There is none.
    """
    if receipt is None:
        raise NotHeld("no task in progress")
    if receipt.outcome is Outcome.GRADED and receipt.answer_digest in (None, digest(answer)):
        return receipt
    raise SessionEnded(ended_text(receipt))

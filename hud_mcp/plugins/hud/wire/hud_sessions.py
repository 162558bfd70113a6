"""The tasks that the peers of a channel hold, by HUD's session ids.

A HUD session runs one task after the other, and each of our sessions runs one. Therefore a HUD
session's first task is the session with the same id. Each later task has an id that is derived from
it. The HUD id alone reaches them all, after a restart too.
"""

import time
from collections.abc import Mapping
from typing import Any

import anyio

from hud_mcp.environment import Environment
from hud_mcp.environment.conversation import NOT_CARRIED
from hud_mcp.environment.task import Task
from hud_mcp.errors import (
    HudMcpError,
    InvalidContext,
    InvalidTask,
    LimitReached,
    SessionEnded,
    name_known,
)
from hud_mcp.plugins.hud.wire.hud_session import (
    PRINCIPAL,
    HudSession,
    Speaker,
    find_stored,
    new_session_id,
    waiting_records,
)
from hud_mcp.plugins.hud.wire.publishing import Publishing
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.receipts import digest, ended_how, ended_text
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import SessionEnd, read_cancellation
from hud_mcp.values.grade import Cause, Outcome

_UNTOLD = 256
"""The number of undelivered grades that are kept for peers that ask without an id."""

_SWEEP_S = 10.0


class NoHudSession(HudMcpError):
    """No such session exists, or it cannot be taken; the text is what HUD's clients know.

    `receipt` is that of the named session if it has ended.
    """

    def __init__(self, text: str, receipt: Receipt | None = None) -> None:
        super().__init__(text)
        self.receipt = receipt


class HudSessions:
    """All HUD sessions of one channel.

    `takes_parked` lets a peer without a session id take over the only parked session. `publishing`
    loses each session that this process forgets.
    """

    def __init__(
        self,
        sessions: Sessions,
        environment: Environment,
        *,
        takes_parked: bool,
        publishing: Publishing,
    ) -> None:
        self._sessions = sessions
        self._environment = environment
        self._takes_parked = takes_parked
        self._publishing = publishing
        self._by_id: dict[str, HudSession] = {}
        self._caller = Caller(principal=PRINCIPAL)
        self._taking = anyio.Lock()
        self._sweep_at_s = 0.0

    def __len__(self) -> int:
        return len(self._by_id)

    def listed(self) -> list[dict[str, Any]]:
        """Return the startable tasks as the wire has them: templates, and rows with prompts."""
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

    def open(self, speaker: Speaker) -> HudSession:
        """Return a new HUD session with its speaker."""
        hud = HudSession(new_session_id())
        hud.speaker = speaker
        self._by_id[hud.id] = hud
        return hud

    def find(self, named: str) -> HudSession | None:
        """Return the HUD session whose id has this digest; None if this process has none."""
        return next((hud for hud in self._by_id.values() if digest(hud.id) == named), None)

    def park(self, hud: HudSession, speaker: Speaker) -> None:
        """Note that a connection is gone; its session keeps its task.

        If another connection speaks for the session by now, nothing happens.
        """
        if not hud.park(speaker):
            return
        if not hud.goes_on and not hud.is_untold:
            self._remove(hud)  # the store knows how it ended
        # To look at all sessions for each connection that leaves would cost more than it frees.
        if time.monotonic() >= self._sweep_at_s:
            self._sweep_at_s = time.monotonic() + _SWEEP_S
            self._sweep()

    def _sweep(self) -> None:
        ended = [h for h in self._by_id.values() if h.speaker is None and not h.goes_on]
        untold = sorted((h for h in ended if h.is_untold), key=lambda h: h.untold_s)
        kept = {h.id for h in untold[-_UNTOLD:]}
        for hud in ended:
            if hud.id not in kept:
                self._remove(hud)

    def _remove(self, hud: HudSession) -> None:
        self._by_id.pop(hud.id, None)
        self._publishing.dismiss(hud)

    def forget(self, hud: HudSession) -> None:
        """Note that a session is over for good."""
        hud.drop()
        self._remove(hud)

    async def attend(self, hud: HudSession) -> Session:
        """Return the session of the held task, for direct access to its world.

        Raises:
            NoHudSession: No task is held, or the task is being started.
            SessionEnded, SessionBusy: The task has ended, or cannot be resumed here now.
        """
        if hud.starting.locked():
            raise NoHudSession("The task is being started; wait for its prompt, then try again.")
        session = await self._current(hud)
        if session is not None:
            await session.back()
            return session
        if hud.receipt is not None:
            raise SessionEnded(ended_text(hud.receipt))
        raise NoHudSession("No task is in progress; start one with tasks.start, then try again.")

    async def resume(
        self, session_id: str, speaker: Speaker, *, take_over: bool = False
    ) -> HudSession:
        """Let a connection speak for a session that has no speaker.

        `take_over` takes it from a connection that may be dead.

        Raises:
            NoHudSession: The id is unknown, or has a live connection. Or the last task has ended;
                the error then has the receipt.
            StoreFailed: The task has ended, and its end cannot be recorded.
        """
        # This process first: what the store has of its sessions may lag behind.
        hud = self._by_id.get(session_id)
        if hud is None:
            found = await find_stored(self._sessions.store, session_id)
            hud = self._by_id.get(session_id) or found  # another one may have asked meanwhile
        if hud is None:
            raise NoHudSession(f"unknown session: {session_id!r}")
        receipt = await _written_receipt(hud)
        other = None if hud.speaker is speaker else hud.speaker
        if other is not None and not take_over:
            raise NoHudSession(f"session {session_id!r} has a live connection")
        if receipt is not None:
            raise NoHudSession(_unknown(session_id, receipt), receipt)
        if other is not None:
            other.lose()
        hud.speaker = speaker
        self._by_id[hud.id] = hud
        hud.touch()
        return hud

    async def start(self, hud: HudSession, task_id: str, args: Mapping[str, Any]) -> Session:
        """Start a task in place of the one that the session holds.

        Raises:
            InvalidTask, InvalidContext: Nothing was started, and the session still holds its task.
            HudMcpError: The task could not be started.

        If this call is cancelled, the half-made task ends as cancelled.
        """
        task = self._mint(task_id, args)
        if task.prompt is None and self._environment.find_template(task.template).user:
            raise InvalidTask(NOT_CARRIED)
        async with hud.starting:
            # HUD's servers hold one task for each session: a start replaces the task before.
            await self._end_current(hud, _cancelled())
            hud.drop()
            try:
                session = await self._sessions.start(
                    task,
                    caller=self._caller,
                    session_id=hud.next_task_id(),
                    drawn=True,
                )
            except (InvalidTask, InvalidContext, LimitReached):
                hud.return_task_id()  # nothing is recorded under it
                raise
            hud.assign(session)
            return session

    async def grade(self, hud: HudSession, answer: str, *, max_bytes: int | None = None) -> Receipt:
        """Submit the answer of the held task, or of the only parked one.

        As with HUD, a session that was told its grade holds nothing: it may take the only parked
        task. If none is parked, the same answer again gives the same receipt.

        Raises:
            NoHudSession: No task is held, or more than one is parked.
            HudMcpError: The answer was not graded; the text says why.

        If this call is cancelled, a submitted answer stays submitted, and is graded.
        """
        async with hud.starting:
            pass  # one that is being started is graded, not another one in its place
        if hud.session is None and hud.stored is None and hud.receipt is None:
            if hud.count or not self._takes_parked:
                raise NoHudSession("no task in progress")
            if not await self._take_parked(hud, answer):
                raise NoHudSession("no task in progress")
        elif self._takes_parked and hud.is_told:
            await self._take_parked(hud)
        session = await self._current(hud)
        if session is None:
            return _same_answer(hud.receipt, answer)
        hud.ask_grade()
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

    async def cancel(self, hud: HudSession, said: Mapping[str, Any]) -> None:
        """End the task that a session holds, whatever its phase. Without a task, nothing happens.

        `said` are the parameters of the call; see `read_cancellation`.
        """
        reason, cause = await read_cancellation(
            said,
            secret_digest=digest(hud.task_id),
            store=self._sessions.store,
        )
        end = _cancelled(reason, cause)
        if hud.starting.locked() and (begun := self.begun(hud)) is not None:
            await begun.finish(end, abort=True)
        async with hud.starting:
            await self._end_current(hud, end)
            hud.drop()

    def begun(self, hud: HudSession) -> Session | None:
        """Return the session of a task whose setup runs; else None."""
        found = self._sessions.here(hud.task_id, self._caller)
        return None if found is None or found.state.is_closed else found

    def _mint(self, task_id: str, args: Mapping[str, Any]) -> Task:
        """Return the task of a template's or a listed row's id; a row has its own arguments.

        InvalidTask says that the task is unknown, or that the arguments do not fit.
        """
        name, tasks = self._environment.name, self._sessions.tasks
        if task_id in self._environment.templates:
            read = self._environment.templates[task_id].arguments.reader.read(args)
            return self._sessions.catalogue.mint(task_id, read, environment=name)
        if task_id in tasks and tasks[task_id].env == name:
            if args:
                raise InvalidTask(
                    f"{task_id!r} is a row with its own arguments; pass no arguments."
                )
            return tasks[task_id]
        ids = [str(each["id"]) for each in self.listed()]
        known = name_known(task_id, ids, what="There are")
        raise InvalidTask(f"unknown task: {task_id!r}.{known}")

    async def _end_current(self, hud: HudSession, end: SessionEnd) -> None:
        try:
            session = await self._current(hud)
        except HudMcpError:
            return  # it cannot be resumed, or another server runs it
        if session is not None and not session.state.is_over:
            await session.finish(end, abort=True)

    async def _current(self, hud: HudSession) -> Session | None:
        """Return the session of the held task; None if it ended before this process began."""
        found: Session | Receipt | None = None
        if hud.stored is not None:
            found = await self._sessions.find(hud.stored, self._caller)
        elif hud.session is not None and hud.session.state.is_let_go:
            found = await self._sessions.current(hud.session)
        if found is not None:
            hud.assign(found)
        return hud.session

    async def _take_parked(self, hud: HudSession, answer: str | None = None) -> bool:
        """Let a session hold the task of the only parked one, and return whether there was one.

        An undelivered grade for `answer` counts too. More than one parked session is NoHudSession.
        """
        # Two peers may ask for the only parked session at the same time; one gets it.
        async with self._taking:
            parked = [h for h in self._by_id.values() if h.speaker is None and h.goes_on]
            known = {h.session.trajectory_id for h in parked if h.session is not None}
            stored = await waiting_records(self._sessions.store, self._environment.name)
            waiting = [each for each in stored if each not in known]
            count = len(parked) + len(waiting)
            if count > 1:
                raise NoHudSession(
                    f"{count} parked sessions; resume one by sending hello with its session_id"
                )
            if count == 0 and answer is not None:
                parked = self._untold(answer)
            if parked:
                await self._take(hud, parked[0])
            elif waiting:
                hud.assign(await self._sessions.resume(waiting[0]))
            return bool(parked or waiting)

    async def _take(self, hud: HudSession, other: HudSession) -> None:
        async with other.starting:
            pass
        hud.take(other)
        self.forget(other)

    def _untold(self, answer: str) -> list[HudSession]:
        """Return the session with an undelivered grade for this answer, if only one has it."""
        found = [
            h
            for h in self._by_id.values()
            if h.speaker is None
            and h.is_untold
            and h.session is not None
            and h.session.receipt is not None
            and h.session.receipt.answer_digest == digest(answer)
        ]
        return found if len(found) == 1 else []


async def _written_receipt(hud: HudSession) -> Receipt | None:
    """Return the receipt of a session's last task; None if the task goes on."""
    if hud.goes_on:
        return None
    if hud.session is not None:
        await hud.session.flush_end()
        return hud.session.receipt
    return hud.receipt


def _unknown(session_id: str, receipt: Receipt) -> str:
    """Return HUD's text for an ended session, and how it ended if it has no grade."""
    text = f"unknown session: {session_id!r}"
    return text if receipt.outcome is Outcome.GRADED else f"{text}: it {ended_how(receipt)}"


def _cancelled(reason: str | None = None, cause: Cause = Cause.AGENT) -> SessionEnd:
    text = "It was cancelled by the client."
    return SessionEnd(Outcome.CANCELLED, error=reason, told=text, cause=cause)


def _same_answer(receipt: Receipt | None, answer: str) -> Receipt:
    """Return the receipt again for the same answer; another answer raises SessionEnded."""
    if receipt is None:
        raise NoHudSession("no task in progress")
    if receipt.outcome is Outcome.GRADED and receipt.answer_digest in (None, digest(answer)):
        return receipt
    raise SessionEnded(ended_text(receipt))

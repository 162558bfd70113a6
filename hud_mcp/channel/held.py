"""Which task each peer of the channel holds: HUD's session ids, on the sessions of the process.

A HUD session runs one task after the other; each of ours runs one. So a HUD session's
first task is the session of the same id, and each later one has an id derived from it:
whoever has the HUD id reaches them all, after a restart too, and nobody else does.
"""

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from hud_mcp.ending import digest, ended_text
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, InvalidTask, SessionEnded
from hud_mcp.grade import Outcome
from hud_mcp.keeper import Ending
from hud_mcp.session import Caller, Session
from hud_mcp.sessions import Sessions
from hud_mcp.trajectory import Receipt

__all__ = ["PRINCIPAL", "Held", "HeldTasks", "NotHeld", "new_session_id"]

PRINCIPAL = "hud-channel"
"""Whose the channel's sessions are: an id of theirs opens nothing over MCP, nor the reverse."""

_MANY_TASKS = 100_000


class NotHeld(HudMcpError):
    """There is no such session, or not one to take; the text is what HUD's clients know."""


def new_session_id() -> str:
    """A HUD session's id: 128 random bits."""
    return f"sess-{secrets.token_hex(16)}"


class Held:
    """One HUD session.

    Attributes:
        id: Its id.
        live: Whether a connection speaks for it now.
        tasks: How many tasks it has started.
        session: The current task's session; None before the first, and where this process
            has not seen it yet.
    """

    def __init__(self, session_id: str, *, tasks: int = 0) -> None:
        self.id = session_id
        self.live = False
        self.tasks = tasks
        self.session: Session | None = None

    @property
    def task_session_id(self) -> str:
        """The id of the current task's session."""
        return _task_session_id(self.id, self.tasks - 1)


class HeldTasks:
    """All HUD sessions of one channel.

    Args:
        sessions: The registry.
        environment: The environment that the channel serves.
        adopts: Whether a peer that names no session may take over the only parked one.
    """

    def __init__(self, sessions: Sessions, environment: Environment, *, adopts: bool) -> None:
        self._sessions = sessions
        self._environment = environment
        self._adopts = adopts
        self._held: dict[str, Held] = {}
        self._caller = Caller(principal=PRINCIPAL)

    def open(self) -> Held:
        """A new HUD session, spoken for by its connection."""
        held = Held(new_session_id())
        held.live = True
        self._held[held.id] = held
        return held

    def park(self, held: Held) -> None:
        """Note that a connection is gone; what its session holds stays."""
        held.live = False
        if held.tasks == 0:
            self._held.pop(held.id, None)

    def forget(self, held: Held) -> None:
        """Note that a session is over for good."""
        held.live = False
        self._held.pop(held.id, None)

    async def resume(self, session_id: str, *, take_over: bool = False) -> Held:
        """Let a new connection speak for a session that has none.

        Args:
            session_id: What `hello` returned.
            take_over: Whether to take it from a connection that may be dead.

        Raises:
            NotHeld: It is unknown, or has a live connection.
        """
        held = self._held.get(session_id) or await self._find_stored(session_id)
        if held is None:
            raise NotHeld(f"unknown session: {session_id!r}")
        if held.live and not take_over:
            raise NotHeld(f"session {session_id!r} has a live connection")
        held.live = True
        self._held[held.id] = held
        return held

    async def start(self, held: Held, task_id: str, args: Mapping[str, Any]) -> Session:
        """Start a task, in place of the one that the session holds.

        Raises:
            InvalidTask, InvalidContext: Nothing was started, and what was held still is.
            HudMcpError: It could not be started.
        """
        task = self._mint(task_id, args)
        await self.cancel(held)
        held.tasks += 1
        held.session = None
        held.session = await self._sessions.start(
            task, caller=self._caller, session_id=held.task_session_id
        )
        return held.session

    async def grade(self, held: Held, answer: str) -> Receipt:
        """Submit the answer of the task that a session holds, or of the only parked one.

        Raises:
            NotHeld: No task is held, or it is not clear which.
            HudMcpError: It was not graded; the text says why.
        """
        if held.tasks == 0:
            await self._adopt(held)
        found = held.session or await self._sessions.find(held.task_session_id, self._caller)
        if isinstance(found, Receipt):
            return _same_answer(found, answer)
        held.session = found
        if found.is_over and found.receipt is not None:
            return _same_answer(found.receipt, answer)
        receipt = await found.respond(answer)
        if receipt is None:
            raise SessionEnded("The task was not graded.")
        return receipt

    async def cancel(self, held: Held) -> None:
        """End the task that a session holds, whatever it does; without one, nothing happens."""
        if held.tasks == 0:
            return
        session = held.session
        if session is None:
            try:
                found = await self._sessions.find(held.task_session_id, self._caller)
            except HudMcpError:
                return
            session = found if isinstance(found, Session) else None
        if session is not None and not session.is_over:
            ending = Ending(Outcome.CANCELLED, told="It was cancelled by the client.")
            await session.finish(ending, abort=True)

    async def _adopt(self, held: Held) -> None:
        """Let a session that started nothing hold what the only parked one holds."""
        parked = [h for h in self._held.values() if not h.live and await self._goes_on(h)]
        waiting = await self._waiting() if self._adopts else []
        known = {h.session.trajectory_id for h in parked if h.session is not None}
        strangers = [w for w in waiting if w not in known]
        count = len(parked) + len(strangers)
        if not self._adopts or count == 0:
            raise NotHeld("no task in progress")
        if count > 1:
            raise NotHeld(
                f"{count} parked sessions; resume one by sending hello with its session_id"
            )
        if parked:
            other = parked[0]
            self.forget(other)
            held.session = other.session
            held.tasks = 1  # this connection's own id is not that of the task
            if other.session is None:
                held.session = await self._session_of(other)
        else:
            held.session = await self._sessions.adopt(strangers[0])
            held.tasks = 1

    async def _session_of(self, held: Held) -> Session:
        found = await self._sessions.find(held.task_session_id, self._caller)
        if isinstance(found, Receipt):
            raise NotHeld("no task in progress")
        return found

    async def _goes_on(self, held: Held) -> bool:
        if held.tasks == 0:
            return False
        return held.session is None or not held.session.is_over

    async def _waiting(self) -> list[str]:
        """The parked tasks of earlier processes on the store, by their records' ids."""
        if not self._sessions.store.exists:
            return []
        found = await self._sessions.store.waiting_sessions([self._environment.name])
        return [
            w.trajectory_id
            for w in found
            if w.principal == PRINCIPAL and w.has_prompt and not w.answered
        ]

    async def _find_stored(self, session_id: str) -> Held | None:
        """A HUD session that an earlier process on the store held, or None."""
        if not self._sessions.store.exists:
            return None
        count = 0
        while count < _MANY_TASKS:
            name = digest(_task_session_id(session_id, count))
            if await self._sessions.store.find_session(name, principal=PRINCIPAL) is None:
                break
            count += 1
        return Held(session_id, tasks=count) if count else None

    def _mint(self, task_id: str, args: Mapping[str, Any]) -> Any:
        name = self._environment.name
        if task_id in self._environment.templates:
            return self._sessions.mint(task_id, args, environment=name)
        if task_id in self._sessions.tasks and self._sessions.tasks[task_id].env == name:
            if args:
                raise InvalidTask(f"{task_id!r} is a row with its own arguments; pass none.")
            return self._sessions.tasks[task_id]
        raise InvalidTask(f"unknown task: {task_id!r}")


def _task_session_id(session_id: str, number: int) -> str:
    if number == 0:
        return session_id
    return f"sess-{hashlib.sha256(f'{session_id}/{number}'.encode()).hexdigest()[:32]}"


def _same_answer(receipt: Receipt, answer: str) -> Receipt:
    """The receipt again for the same answer.

    Raises:
        SessionEnded: It was another one, or there is no grade.
    """
    if receipt.outcome is Outcome.GRADED and receipt.answer_digest == digest(answer):
        return receipt
    raise SessionEnded(ended_text(receipt))

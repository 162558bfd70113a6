"""One session's calls, each of them done once, whatever becomes of the server meanwhile.

A call whose reply was lost may have been performed or not. What may be called twice is
called again. Of a step, the record knows: it is repeated only if it is not there, and else
the reply is read from it.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio

from hud_mcp.agents.agent import turns_meta
from hud_mcp.errors import HudMcpError, SessionResuming, WorldDied
from hud_mcp.record.model_turn import ModelTurn
from hud_mcp.record.trajectory import Receipt
from hud_mcp.rollout.link import ConnectionLost, Reply
from hud_mcp.rollout.server import AnyServer, ServerLost
from hud_mcp.server.tools import CORE
from hud_mcp.session.caller import CAUSE, CHOSEN_SESSION, ONLY, REASON
from hud_mcp.session.receipts import NOTHING_DONE, digest
from hud_mcp.store import Store
from hud_mcp.values.call import CANCEL_TASK, START_TASK, TASK_STATUS
from hud_mcp.values.grade import Cause

__all__ = ["AgentStopped", "Conversation", "SessionIds", "draw_session_id", "repeat"]


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


T = TypeVar("T")

_LOSSES = 3
"""A call that meets more deaths than this in a row may be what kills its servers."""
_SUSPECT = 2
"""One that has met so many is made while no other such call is."""
_DEATHS = 3
"""So often is a step made again in a row that found its world dead, and did nothing."""
_PAUSE_S = 0.05
_MOST_TURNS = 100
"""Of an agent's model, in one call."""


class AgentStopped(HudMcpError):
    """The agent has used up what it may use. What it had answered, counts."""


class Conversation:
    """Calls tools for one session.

    Args:
        server: Reaches the servers.
        store: Where they record.
        ids: Gives its session an id, which its job's plan has then.
        max_steps: How many steps its agent may take; None for any number.

    Attributes:
        session: Its id, which is chosen before it begins, so that a start can be repeated.
        trajectory_id: The record's id; None until it is known.
        is_over: Whether the server has said that it has ended.
    """

    def __init__(
        self,
        server: AnyServer,
        store: Store,
        *,
        ids: SessionIds,
        max_steps: int | None = None,
    ) -> None:
        self.session = ""
        self.trajectory_id: str | None = None
        self._stopped: str | None = None
        self.is_over = False
        self._only: dict[str, Any] = {}
        self._ids = ids
        self._server = server
        self._store = store
        self._max_steps = max_steps
        self._steps: int | None = 0  # that are recorded; None where that is to be asked
        self._turn = anyio.Lock(fast_acquire=True)

    @property
    def stopped(self) -> str | None:
        """Why the agent may not go on, or None."""
        return self._stopped

    def stop(self, reason: str) -> AgentStopped:
        """Let the agent go on no more.

        Args:
            reason: When that was, and by which bound.

        Returns:
            The error that tells of it.
        """
        self._stopped = reason
        return AgentStopped(f"The agent was stopped {reason}.")

    async def start(self, task_id: str, *, seed: int | None) -> Reply:
        """Start the session, once the job's plan has it.

        Raises:
            ServerLost: There is no server any more.
            StoreFailed: The plan cannot be written. Nothing was started.
        """
        self.session = await self._ids.take()
        self.trajectory_id = None
        self._only = {ONLY: self.session}
        arguments: dict[str, Any] = {"task": task_id}
        if seed is not None:
            arguments["seed"] = seed
        meta = {CHOSEN_SESSION: self.session}
        reply = await repeat(
            lambda suspect: self._call(START_TASK, arguments, dict(meta), suspect=suspect)
        )
        if not reply.is_error:
            self.trajectory_id = reply.meta["hud-mcp/start"]["trajectory"]
        return reply

    async def __call__(
        self, name: str, arguments: dict[str, Any], *, meta: Mapping[str, Any] | None = None
    ) -> Reply:
        """Call a tool, as an agent does: this session is the only one that the call may be about.

        Args:
            name: The tool's.
            arguments: The call's.
            meta: What goes with it beside that.

        Raises:
            AgentStopped: It would be a step too many. It was not performed.
            ServerLost: There is no server any more, or each one dies of this session.
        """
        tool, sent = CORE.get(name), {**(meta or {}), **self._only}
        if tool is not None and tool.idempotent and not tool.is_step:
            reply = await self._repeat(name, arguments, sent)
            self.is_over |= reply.structured.get("state") == "ended"
            if not tool.read_only:  # an answer is a step of the record
                self._steps = None
            return reply
        async with self._turn:
            return await self._step(name, arguments, sent)

    async def status(self) -> Reply:
        """Where the session stands.

        Raises:
            ServerLost: There is no server any more.
        """
        return await self(TASK_STATUS, {"session": self.session})

    async def report(self, turns: Sequence[ModelTurn]) -> None:
        """Record what an agent has said of its model that no call took.

        Raises:
            ServerLost: There is no server any more.
        """
        for start in range(0, len(turns), _MOST_TURNS):
            some = turns[start : start + _MOST_TURNS]
            meta = {**turns_meta(some), **self._only}
            await self._repeat(TASK_STATUS, {"session": self.session}, meta)

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End the session without a grade.

        Args:
            reason: Why, for the record.
            cause: Whose doing it is.

        Raises:
            ServerLost: There is no server any more.
        """
        meta = {CAUSE: cause.value, **({REASON: reason} if reason else {})}
        await self._repeat(CANCEL_TASK, {"session": self.session}, meta)

    async def steps(self) -> int:
        """How many steps the server says there are; 0 where it does not say.

        Raises:
            ServerLost: There is no server any more.
        """
        return int((await self.status()).structured.get("steps", 0))

    async def find_receipt(self) -> Receipt | None:
        """What is recorded of its end; None while there is none."""
        if not self.session:
            return None
        if self.is_over and (ended := self._server.find_ended(self.session)) is not None:
            self.trajectory_id = ended[0]
            return ended[1]
        principal = self._server.principal
        found = await self._store.find_session(digest(self.session), principal=principal)
        if found is None:
            return None
        self.trajectory_id = found[0]
        return found[1]

    async def _repeat(
        self, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None
    ) -> Reply:
        return await repeat(lambda suspect: self._call(name, arguments, meta, suspect=suspect))

    async def _call(
        self, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None, *, suspect: bool
    ) -> Reply:
        """Call a tool; again where the session is still being resumed, which takes a while."""
        while True:
            reply = await self._server.call(name, arguments, meta, suspect=suspect)
            if reply.meta.get("hud-mcp/error") != SessionResuming.__name__:
                return reply
            await anyio.sleep(_PAUSE_S)

    async def _step(self, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> Reply:
        before = await self.steps() if self._steps is None else self._steps
        if self._max_steps is not None and before >= self._max_steps:
            raise self.stop(f"after {before} step{'s' * (before != 1)} (--max-steps)")
        self._steps = None  # until it is known to be done, and recorded
        losses = deaths = 0
        while True:
            try:
                suspect = losses >= _SUSPECT
                reply = await self._call(name, arguments, meta, suspect=suspect)
                if _found_dead(reply) and deaths < _DEATHS:  # it is back, and nothing was done
                    deaths += 1
                    before = await self.steps()
                    continue
            except ConnectionLost as exc:
                losses += 1
                await _lose(exc, losses)
                status = await self.status()
                if status.is_error or self.is_over:
                    return Reply(status.text, is_error=True)
                if int(status.structured.get("steps", 0)) == before:
                    continue
                reply = await self._recorded(before)
            if not reply.is_error:
                self._steps = before + 1
            return reply

    async def _recorded(self, index: int) -> Reply:
        """The reply to a step that was performed, from its record."""
        if self.trajectory_id is None:
            raise ServerLost("The session's record is not known.")
        (step,) = await self._store.load_steps(self.trajectory_id, index, index + 1)
        image = None
        if step.delivered_image and step.screenshot is not None:
            image = await self._store.read_screenshot(step.screenshot)
        text = "\n".join(part for part in (step.error, step.observation_text) if part)
        return Reply(text or "Done.", image, is_error=step.error is not None)


async def repeat(call: Callable[[bool], Awaitable[T]]) -> T:
    """Make a call that may be made twice, until a server replies to it.

    Args:
        call: Makes it; it is told whether the call is a suspect.

    Raises:
        ServerLost: There is no server any more, or each one died before it replied.
    """
    losses = 0
    while True:
        try:
            return await call(losses >= _SUSPECT)
        except ConnectionLost as exc:
            losses += 1
            await _lose(exc, losses)


def _found_dead(reply: Reply) -> bool:
    """Whether a call was refused because the world had died before it, and is back now."""
    known = reply.meta.get("hud-mcp/error") == WorldDied.__name__
    return reply.is_error and known and NOTHING_DONE in reply.text


async def _lose(exc: ConnectionLost, losses: int) -> None:
    """Make a pause after a call that was lost; one that is lost again and again is given up."""
    if losses > _LOSSES:
        raise ServerLost(
            f"A call of this session was made {losses} times, and its servers died each time."
        ) from exc
    await anyio.sleep(_PAUSE_S)

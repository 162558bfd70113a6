"""The calls of one session of a job, each done once, whatever becomes of the server meanwhile.

After a lost reply, the record tells whether a step was performed: it is made again, or its reply is
read.
"""

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from hud_mcp.agents.agent import Reply, turns_meta
from hud_mcp.errors import HudMcpError
from hud_mcp.record.values import Receipt
from hud_mcp.rollout.link import (
    SUSPECT,
    ConnectionLost,
    ServerLost,
    give_up_on_deaths,
    repeat,
    settled,
    step_once,
)
from hud_mcp.rollout.server import AnyServer
from hud_mcp.server.tools import CORE
from hud_mcp.session.caller import CAUSE, CHOSEN_SESSION, ONLY, REASON
from hud_mcp.session.receipts import digest
from hud_mcp.store import Store
from hud_mcp.values.call import CANCEL_TASK, START_TASK, TASK_STATUS
from hud_mcp.values.grade import Cause
from hud_mcp.values.model_turn import ModelTurn

_AT_ONCE = 64
"""The number of ids that one commit plans."""


def draw_session_id() -> str:
    """Draw an id that nobody can guess."""
    return f"sess-{secrets.token_hex(16)}"


class SessionIds:
    """The ids of a job's sessions.

    The job's plan, if it has one, has each before its session begins.

    Planned ids whose sessions never begin count nowhere.
    """

    def __init__(self, store: Store, job_id: str | None, *, at_once: int = _AT_ONCE) -> None:
        self._store = store
        self._job_id = job_id
        self._at_once = max(1, at_once)
        self._ready: list[str] = []
        self._alone = anyio.Lock(fast_acquire=True)

    async def take(self) -> str:
        """Return an unused id for a run. Raise `StoreFailed` if the plan cannot be written."""
        if self._job_id is None:
            return draw_session_id()
        async with self._alone:
            if not self._ready:
                # One commit for many ids: a commit for each start would be most of a short run.
                drawn = [draw_session_id() for _ in range(self._at_once)]
                await self._store.plan_runs(self._job_id, [digest(each) for each in drawn])
                self._ready = drawn
            return self._ready.pop()


_PAUSE_S = 0.05
_MOST_TURNS = 100
"""The most model turns that go with one call."""


class AgentStopped(HudMcpError):
    """The agent has reached a bound. An answer that it has given counts."""


class Conversation:
    """The calls of one session. Each raises `ServerLost` once there is no server any more.

    Attributes:
        session: The session's id. It is drawn before the start, so that the start can be repeated.
        trajectory_id: The id of its record; None until it is known.
        is_over: Whether the server has said that the session has ended.
    """

    def __init__(
        self, server: AnyServer, store: Store, *, ids: SessionIds, max_steps: int | None = None
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
        self._steps: int | None = 0  # in the record; None if the server has to be asked
        # One step at a time: the number of steps before a call tells whether it was performed.
        self._turn = anyio.Lock(fast_acquire=True)

    @property
    def stopped(self) -> str | None:
        """The reason why the agent may not go on, or None."""
        return self._stopped

    def stop(self, reason: str) -> AgentStopped:
        """Stop the agent: it makes no other step. Return the error to raise.

        The reason reads as in `after 3 steps (--max-steps)`.
        """
        self._stopped = reason
        return AgentStopped(f"The agent was stopped {reason}.")

    async def start(self, task_id: str, *, seed: int | None) -> Reply:
        """Start the session, after the job's plan has its id.

        Raises:
            ServerLost: There is no server any more.
            StoreFailed: The plan cannot be written. Nothing was started.
        """
        # Drawn before: a start whose reply was lost is repeated.
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
        """Call a tool, as an agent does. The call can concern this session alone.

        Raises:
            AgentStopped: It would be a step too many, and was not made.
            ServerLost: There is no server any more, or this session ends each one.
        """
        tool, sent = CORE.get(name), {**(meta or {}), **self._only}
        # Such a call may be made twice, and needs no turn: a status is read while a step runs.
        if tool is not None and tool.idempotent and not tool.is_step:
            reply = await self._repeat(name, arguments, sent)
            self.is_over |= reply.structured.get("state") == "ended"
            if not tool.read_only:  # an answer is a step of the record, too
                self._steps = None
            return reply
        async with self._turn:
            return await self._step(name, arguments, sent)

    async def status(self) -> Reply:
        """Return the session's status."""
        return await self(TASK_STATUS, {"session": self.session})

    async def report(self, turns: Sequence[ModelTurn]) -> None:
        """Record model turns that no call has carried."""
        for start in range(0, len(turns), _MOST_TURNS):  # a call's metadata has a bound
            some = turns[start : start + _MOST_TURNS]
            meta = {**turns_meta(some), **self._only}
            await self._repeat(TASK_STATUS, {"session": self.session}, meta)

    async def cancel(self, *, reason: str | None = None, cause: Cause = Cause.AGENT) -> None:
        """End the session without a grade."""
        meta = {CAUSE: cause.value, **({REASON: reason} if reason else {})}
        await self._repeat(CANCEL_TASK, {"session": self.session}, meta)

    async def steps(self) -> int:
        """Return the number of the session's steps; 0 if the server does not say it."""
        return int((await self.status()).structured.get("steps", 0))

    async def find_receipt(self) -> Receipt | None:
        """Return the recorded end of the session; None if it has no end."""
        if not self.session:  # it never began
            return None
        # The reply that ended it had the receipt: the store is not read again.
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
        return await settled(lambda: self._server.call(name, arguments, meta, suspect=suspect))

    async def _step(self, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> Reply:
        before = await self.steps() if self._steps is None else self._steps
        if self._max_steps is not None and before >= self._max_steps:
            raise self.stop(f"after {before} step{'s' * (before != 1)} (--max-steps)")
        self._steps = None  # until the step is known to be done, and recorded
        send = partial(self._send, name, arguments, meta)
        before, reply = await step_once(before, send, self.steps)
        if not reply.is_error:
            self._steps = before + 1
        return reply

    async def _send(
        self, name: str, arguments: dict[str, Any], meta: dict[str, Any], before: int
    ) -> Reply:
        losses = 0
        while True:
            try:
                return await self._call(name, arguments, meta, suspect=losses >= SUSPECT)
            except ConnectionLost as exc:
                losses += 1
                give_up_on_deaths(exc, losses)
                await anyio.sleep(_PAUSE_S)
                status = await self.status()
                if status.is_error or self.is_over:  # no step can follow
                    return Reply(status.text, is_error=True)
                # It was done, and only its reply is lost.
                if int(status.structured.get("steps", 0)) != before:
                    return await self._recorded(before)

    async def _recorded(self, index: int) -> Reply:
        if self.trajectory_id is None:
            raise ServerLost("The session's record is not known.")
        (step,) = await self._store.load_steps(self.trajectory_id, index, index + 1)
        image = None
        if step.delivered_image and step.screenshot is not None:
            image = await self._store.read_screenshot(step.screenshot)
        return Reply("\n".join(step.texts) or "Done.", image, is_error=step.error is not None)

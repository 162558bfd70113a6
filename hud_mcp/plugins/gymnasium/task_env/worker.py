"""The process that runs the sessions of one `TaskEnv`: lines of JSON in, lines of JSON out.

Steps of a world that waits for nothing are recorded together; other calls come after them.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from hud_mcp.errors import ActionFailed, HudMcpError, SessionTaken, StoreFailed
from hud_mcp.loading.source import load_environments
from hud_mcp.server.local import LocalTools
from hud_mcp.server.results import error_result, step_result
from hud_mcp.server.stdio.descriptors import Input, Output, StdioStreams, claim_stdio
from hud_mcp.session.caller import Caller
from hud_mcp.session.draft import Draft, Stepped
from hud_mcp.session.life import Life
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.values.action import ActionEffect, CustomAction
from hud_mcp.values.observation import Look, Observation


@dataclass(frozen=True, slots=True)
class Performed:
    """The effect of one quick action, and the observation after it."""

    effect: ActionEffect
    seen: Observation


class QuickActions:
    """Quick actions of a session whose store writes late; it does nothing else before `end`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._draft: Draft | None = None
        self._life: Life | None = None

    async def perform(self, action: CustomAction, look: Look) -> Performed | Stepped:
        """Perform one action, and observe. If a replay would differ, it is a step of its own.

        A text is observed at the end alone, and no picture. It raises as `Session.step` does.
        """
        session = self.session
        if session.journal.is_complete and session.life.world.replays:
            run = partial(self._perform, action, look)
            performed = await session.in_turn(run, session.spec.limits.step_s)
            if performed is not None:
                return performed
        self.end()
        return await session.step((action,), look, deliver_image=False)

    def end(self) -> None:
        """Make the performed actions a step, which is written before or with the next one."""
        draft = self._ended()
        if draft is not None and self.session.life is self._life:
            self.session.journal.append(draft)

    async def record(self) -> None:
        """Write the performed actions.

        Raises:
            StoreFailed: The actions were not written. They are kept until the next step's write.
            SessionTaken: Another server runs the session.
        """
        self.end()
        await self.session.journal.flush()

    async def _perform(self, action: CustomAction, look: Look) -> Performed | None:
        """Perform one action in its turn; return None if it was refused and nothing was done."""
        session, world = self.session, self.session.life.world
        draft = self._begun(look)
        row = {"type": "custom", "action": action.action, "args": action.args}
        done: list[ActionEffect] = []
        try:
            await world.act((action,), done.append)
            over = done[0].terminated or done[0].truncated
            seen = await world.observe(
                look.model_copy(update={"text": True}) if over else look, deliver_image=False
            )
        except ActionFailed:
            return None
        except BaseException as exc:
            await self._record_failure(exc, row, look, done)
            raise
        draft.actions.append(row)
        draft.add(done[0])
        draft.observation = seen
        session.life.measuring.note_actions((row,))
        return Performed(done[0], seen)

    def _ended(self) -> Draft | None:
        draft, self._draft = self._draft, None
        return draft if draft is not None and draft.actions else None

    async def _record_failure(
        self, exc: BaseException, row: dict[str, Any], look: Look, done: list[ActionEffect]
    ) -> None:
        """Record a failed action, after those from which a dead world is built again."""
        life, journal = self.session.life, self.session.journal
        draft = self._ended()
        if draft is not None:
            await journal.keep(draft)
        failed = life.begin("step", [row], look)
        for effect in done:
            failed.add(effect)
        interrupted = not isinstance(exc, HudMcpError)
        life.fail(failed, exc, "in its turn", interrupted=interrupted)
        await journal.keep(failed)

    def _begun(self, look: Look) -> Draft:
        life = self.session.life
        most = self.session.spec.limits.actions_per_step
        if self._draft is not None and (self._life is not life or len(self._draft.actions) >= most):
            self.end()
        if self._draft is None:
            self._draft = Draft("step", [], scale=life.world.scale, look=look)
            self._life = life
        return self._draft


logger = logging.getLogger(__name__)

_LIMITS = Limits(idle_s=86_400, total_s=604_800, actions_per_step=500)
"""The limits of a user's own program: it has no neighbours, and learns between two steps."""
_MOST_BYTES = 64 * 1024 * 1024
_FLUSH_S = 1.5
_SWITCH_S = 0.0005
"""The loop and the writer take turns: by default, each may hold the other up for 5 ms."""
_RECORD_S = 0.25
"""The longest time that actions wait for their step of the record."""
_NOW = b""
"""The line that asks to record the waiting actions."""
_VALUES = Look(text=False, values=True)


class Worker:
    """The replies to the frames of one client; `call_record` has `record` called in turn."""

    def __init__(self, sessions: Sessions, call_record: Callable[[], None]) -> None:
        self._sessions = sessions
        self._call_record = call_record
        self._quick: QuickActions | None = None
        self._is_due = False
        self._caller = Caller(principal=None)
        self._tools = LocalTools(sessions)

    async def answer(self, frame: Mapping[str, Any]) -> Any:
        """Perform one frame, and return its reply. A refusal is a reply, as a tool's."""
        try:
            if "take" in frame:
                return await self._take(frame["session"], frame["take"])
            self.end_actions()
            if "manifest" in frame:
                return self._sessions.catalogue.find_environment(frame["manifest"]).manifest()
            if "tools" in frame:
                own = [each.listed() for each in self._tools.own.values()]
                how: Any = {"mode": "json", "by_alias": True, "exclude_none": True}
                return {"tools": [entry.model_dump(**how) for entry in own]}
            return await self._tools.call(
                frame["tool"], frame["arguments"], frame["meta"], caller=self._caller
            )
        except HudMcpError as exc:
            return error_result(str(exc), kind=type(exc).__name__)

    def end_actions(self) -> None:
        """Make the actions so far a step, before anything else is done with their session."""
        if self._quick is not None:
            self._quick.end()

    async def record(self) -> None:
        """Write the actions so far. If that fails, they are written with the next step."""
        self._is_due = False
        try:
            if self._quick is not None:
                await self._quick.record()
        except (StoreFailed, SessionTaken) as exc:
            logger.warning("%s", exc)

    async def _take(self, session_id: str, value: Any) -> dict[str, Any]:
        session = self._sessions.here(session_id, self._caller)
        if not isinstance(session, Session):
            action = {"type": "custom", "action": "step", "args": {"action": value}}
            arguments = {"actions": [action], "session": session_id}
            meta = {"hud-mcp/values": True}
            return await self._tools.call("step", arguments, meta, caller=self._caller)
        if self._quick is None or self._quick.session is not session:
            self.end_actions()
            self._quick = QuickActions(session)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_RECORD_S, self._call_record)
        action = CustomAction(action="step", args={"action": value})
        taken = await self._quick.perform(action, _VALUES)
        if not isinstance(taken, Performed):
            return step_result(taken, session)
        effect = taken.effect
        step = {
            "terminated": effect.terminated,
            "truncated": effect.truncated,
            "reward": effect.reward,
            "info": effect.info,
            "values": taken.seen.values,
        }
        return {"_meta": {"hud-mcp/step": step}}


async def _serve(streams: StdioStreams, source: str, store: str) -> None:
    scratch, _, place = store.partition(":")
    sessions = Sessions(
        load_environments([source]),
        store=Store(place, is_scratch=scratch == "scratch", writes_late=True),
        limits=_LIMITS,
        reward_policy="per_step",
        resumes=False,
    )
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    rest = bytearray()

    def take_in(data: bytes) -> None:
        rest.extend(data)
        while (end := rest.find(b"\n")) >= 0:
            lines.put_nowait(bytes(rest[:end]))
            del rest[: end + 1]

    def leave() -> None:
        lines.put_nowait(None)

    await sessions.prepare()
    output = Output(streams.stdout_fd, _MOST_BYTES, leave)
    source_of_lines = Input(streams.stdin_fd)
    worker = Worker(sessions, partial(lines.put_nowait, _NOW))
    source_of_lines.start(take_in, leave)
    try:
        while (line := await lines.get()) is not None:
            if line == _NOW:
                await worker.record()
                continue
            number, _, frame = line.partition(b" ")
            reply = await worker.answer(orjson.loads(frame))
            output.write(b"%b %b\n" % (number, orjson.dumps(reply, default=str)))
    finally:
        source_of_lines.close()
        await worker.record()
        await sessions.close()
        await sessions.store.close()
        await output.flush(_FLUSH_S)


def main() -> None:
    """Serve standard input until it ends. The arguments are the source and the store."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    sys.setswitchinterval(_SWITCH_S)
    with claim_stdio() as streams:
        asyncio.run(_serve(streams, *sys.argv[1:3]))


if __name__ == "__main__":
    main()

"""The process that runs the sessions of one `TaskEnv`: lines of JSON in, lines of JSON out.

Its one client waits for each reply. A step of a world that waits for nothing passes by the tools'
arguments and texts; anything else is a call of a tool, as an MCP client makes it.
"""

import asyncio
import logging
import sys
from collections.abc import Mapping
from typing import Any

import orjson

from hud_mcp.action import CustomAction
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.source import load_environments
from hud_mcp.observation import DEFAULT_FORMAT, Look
from hud_mcp.openenv.calls import Calls
from hud_mcp.server.results import error_result, step_result
from hud_mcp.server.stdio.claim import StdioStreams, claim_stdio
from hud_mcp.server.stdio.descriptors import Input, Output
from hud_mcp.session.caller import Caller
from hud_mcp.session.limits import Limits
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.stepped import Taken
from hud_mcp.store import Store

__all__ = ["main"]

_LIMITS = Limits(idle_s=86_400, total_s=604_800, actions_per_step=500)
"""What a program of the user's own may do: it has no neighbours, and learns between two steps."""
_MOST_BYTES = 64 * 1024 * 1024
_FLUSH_S = 1.5
_SWITCH_S = 0.0005
"""The loop and the writer take turns: by default, each may hold the other up for 5 ms."""
_VALUES = Look(text=False, values=True)


class Worker:
    """Answers the frames of one client.

    Args:
        sessions: What it drives.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._calls = Calls(sessions, DEFAULT_FORMAT)
        self._caller = Caller(principal=None)

    async def answer(self, frame: Mapping[str, Any]) -> Any:
        """Do what one frame asks for; what is refused is told as a tool tells it."""
        try:
            if "take" in frame:
                return await self._take(frame["session"], frame["take"])
            if "manifest" in frame:
                return self._sessions.find_environment(frame["manifest"]).manifest()
            return await self._calls.call(
                self._caller, frame["tool"], frame["arguments"], frame["meta"]
            )
        except HudMcpError as exc:
            return error_result(str(exc), kind=type(exc).__name__)

    async def _take(self, session_id: str, value: Any) -> dict[str, Any]:
        session = self._sessions.here(session_id, self._caller)
        if not isinstance(session, Session):
            action = {"type": "custom", "action": "step", "args": {"action": value}}
            arguments = {"actions": [action], "session": session_id}
            return await self._calls.call(self._caller, "step", arguments, {"hud-mcp/values": True})
        action = CustomAction(action="step", args={"action": value})
        taken = await session.take(action, _VALUES)
        if not isinstance(taken, Taken):
            return step_result(taken, session)
        effect = taken.effect
        step = {
            "terminated": effect.terminated,
            "truncated": effect.truncated,
            "reward": effect.reward if taken.rewards_shown else None,
            "info": effect.info if taken.rewards_shown else {},
            "values": taken.seen.values,
        }
        return {"_meta": {"hud-mcp/step": step}}


async def _serve(streams: StdioStreams, source: str, store: str, record: Any, reward: str) -> None:
    scratch, _, place = store.partition(":")
    sessions = Sessions(
        load_environments([source]),
        store=Store(place, is_scratch=scratch == "scratch"),
        limits=_LIMITS,
        reward_policy=reward,
        resumes=False,
        record=record,
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

    output = Output(streams.stdout_fd, _MOST_BYTES, leave)
    source_of_lines = Input(streams.stdin_fd)
    worker = Worker(sessions)
    source_of_lines.start(take_in, leave)
    try:
        while (line := await lines.get()) is not None:
            reply = await worker.answer(orjson.loads(line))
            output.write(orjson.dumps(reply, default=str) + b"\n")
    finally:
        source_of_lines.close()
        await sessions.close()
        await sessions.store.close()
        await output.flush(_FLUSH_S)


def main() -> None:
    """Serve standard input until it ends: source, store, record and reward are the arguments."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    sys.setswitchinterval(_SWITCH_S)
    with claim_stdio() as streams:
        asyncio.run(_serve(streams, *sys.argv[1:5]))


if __name__ == "__main__":
    main()

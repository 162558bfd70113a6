"""The world of a session with several servers, each of which is a world of its own."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import anyio
import orjson

from hud_mcp.environment.tool import Exchange
from hud_mcp.errors import ActionFailed, EnvironmentFailed, GraderFailed, SnapshotFailed, name_known
from hud_mcp.plugins.servers.calls import Calls, ServerCall
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.plugins.servers.world import Tools, ToolServerWorld
from hud_mcp.sandbox import Sandbox
from hud_mcp.values.observation import Look
from hud_mcp.values.reply import InputNeeded, ToolReply
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["ToolServersWorld"]


class _MemberCalls(Calls):
    """The calls of one server by its own names, which are calls of the session too."""

    def __init__(self, prefix: str, session: Calls) -> None:
        super().__init__()
        self._prefix, self._session = prefix, session

    def append(self, call: ServerCall, /) -> None:
        """Add a call, here and there."""
        super().append(call)
        self._session.append(replace(call, tool=f"{self._prefix}{call.tool}"))


class _SeveralTools(Tools):
    """The tools of second servers, each started with its first call, over one copy of the files."""

    def __init__(self, start: Callable[[str], Awaitable[tuple[str, Tools]]]) -> None:
        self._start = start

    async def call(self, tool: str, /, **arguments: Any) -> ToolReply:
        """Call a tool by the name that agents use; it raises as for one server."""
        name, tools = await self._start(tool)
        return await tools.call(name, **arguments)


class ToolServersWorld(ToolServerWorld):
    """The servers of one session, of which the `shared` ones are in one sandbox, the shell's."""

    def __init__(
        self,
        shell: ShellWorld | None,
        launch: Launch,
        members: Mapping[str, ToolServerWorld],
        shared: Sequence[str],
        *,
        log: Callable[[str], None],
    ) -> None:
        super().__init__(shell, launch, log=log)
        self._members, self._shared = dict(members), tuple(shared)
        self._apart = [name for name in members if name not in shared]
        self._parts: list[bytes | None] = []
        for name, member in self._members.items():
            member.calls = _MemberCalls(f"{name}_", self.calls)

    @property
    def died(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The reason why one of them can no longer be used; None while all can."""
        return next((died for each in self._members.values() if (died := each.died)), None)

    @property
    def left_out(self) -> Sequence[str]:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The parts that snapshots or restores lacked; those of a server apart have its name."""
        apart = [(name, self._members[name].left_out) for name in self._apart]
        return [*super().left_out, *(f"{name}: {each}" for name, parts in apart for each in parts)]

    def server(self, name: str) -> ToolServerWorld:
        """Return one of them."""
        if name not in self._members:
            known = name_known(name, self._members, what="It has")
            raise GraderFailed(f"This world has no server {name!r}.{known}")
        return self._members[name]

    async def ready(self) -> None:
        """Start all of them at once."""
        try:
            async with anyio.create_task_group() as group:
                for member in self._members.values():
                    group.start_soon(member.ready)
        except BaseExceptionGroup as exc:
            failed: BaseException | None = exc.subgroup(EnvironmentFailed)
            while isinstance(failed, BaseExceptionGroup):
                failed = cast("BaseExceptionGroup[BaseException]", failed).exceptions[0]
            raise failed or exc from None

    async def call(
        self, tool: ServerTool, arguments: Mapping[str, Any], exchange: Exchange | None = None
    ) -> ToolReply | InputNeeded:
        """Call a tool of one of them, while no call of another one waits for an answer."""
        for name, member in self._members.items():
            if name != tool.member and member._asks.held is not None:
                if not member._asks.is_expired:
                    member._asks.begin(tool.called, arguments, Exchange())  # which refuses it
                await member._give_up()
        return await self._members[tool.member].call(tool, arguments, exchange)

    async def ask(self, method: str, params: Mapping[str, Any], look: Look) -> Any:
        """Get a prompt of one of them, or read its resource, by the name before it."""
        key, mark = ("name", ".") if method == "prompts/get" else ("uri", "/")
        name, _, rest = str(params[key]).partition(mark)
        if name not in self._members:
            raise ActionFailed(f"{params[key]!r} begins with none of {', '.join(self._members)}.")
        asked = params if key == "name" else {**params, key: rest}
        return await self._members[name].ask(method, asked, look)

    @asynccontextmanager
    async def second(self) -> AsyncGenerator[Tools]:
        """Start other instances of them, each with its first call, over a copy of the files."""
        async with AsyncExitStack() as stack:
            copies, started = list[Sandbox](), dict[str, Tools]()

            async def start(tool: str) -> tuple[str, Tools]:
                name = next((n for n in self._members if tool.startswith(f"{n}_")), tool)
                member = self.server(name)
                if name not in started:
                    if name in self._shared and not copies:
                        copied = await stack.enter_async_context(self.shell.verifier(copy="."))
                        copies.append(copied.sandbox)
                    again = member._another(copies[0]) if name in self._shared else member.second()
                    started[name] = await stack.enter_async_context(again)
                return tool.removeprefix(f"{name}_"), started[name]

            yield _SeveralTools(start)

    async def snapshot(self) -> bytes | None:
        """Return the folders; processes and memory are not in them. It raises as one server."""
        is_held = any(each._asks.held is not None for each in self._members.values())
        if self._launch.is_replayable or (is_held and self._stored is not None):
            return self._stored
        parts = [await self._members[name].snapshot() for name in self._apart]
        if self._shell is not None:
            parts.append(await self._shell.snapshot())
        if parts != self._parts:
            if self._shell is not None and not self._launch.has_files:
                _entries, count = await self._shell.sandbox.files.entries(limit=1)
                self._is_empty = count == 0
            self._parts, self._stored = parts, parts[0]  # most have one folder, stored as it is
            if len(parts) > 1:
                self._stored = orjson.dumps([b64encode(part or b"").decode() for part in parts])
        if self._is_empty and any(self._members[name].calls for name in self._shared):
            raise SnapshotFailed(f"{self._launch.name}: no file is in the folder.")
        return self._stored

    async def restore(self, data: bytes) -> None:
        """Restore the folders, and start them again; it raises what a shell does."""
        await self._end()
        is_one = len(self._apart) + bool(self._shell) == 1
        parts = [data] if is_one else [b64decode(text) for text in orjson.loads(data)]
        for name in self._apart:
            await self._members[name].restore(parts.pop(0))
        if self._shell is not None:
            await self._shell.restore(parts[0])
        for name in self._shared:
            await self._members[name]._begin_again()

    async def resumed(self, steps: Sequence[Any]) -> None:
        """Take the calls of the recorded steps that stand, each to its server too."""
        await super().resumed(steps)
        calls = [step for step in steps if step.kind == "tool" and step.actions]
        for name, member in self._members.items():
            mine = [s for s in calls if str(s.actions[0]["tool"]).startswith(f"{name}_")]
            await member.resumed(mine)

    async def stop_agent(self) -> None:
        """Stop them as grading begins, until the agent goes on."""
        for member in self._members.values():
            await member.stop_agent()

    async def close(self) -> None:
        """End all of them, and remove every file. It may be called twice."""
        self._closed = True
        try:
            await self._end()
        finally:
            for member in self._members.values():
                await member.close()

    async def _end(self) -> None:
        await asyncio.gather(*(member._end() for member in self._members.values()))

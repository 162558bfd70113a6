"""The world of one session: a running server of its own over its own files, in a sandbox."""

import asyncio
import builtins
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.base.text import clip
from hud_mcp.environment.agent_data import note_agent_data
from hud_mcp.environment.tool import Exchange
from hud_mcp.environment.world import World
from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    EnvironmentFailed,
    GraderFailed,
    HudMcpError,
    SnapshotFailed,
)
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.asks import Asks, Running
from hud_mcp.plugins.servers.calls import Calls, ServerCall
from hud_mcp.plugins.servers.instance import Instance
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.listing import Change, Listing, Watch, list_server
from hud_mcp.plugins.servers.peer import Json, PeerEnded
from hud_mcp.plugins.servers.prompts import read_contents, read_prompt
from hud_mcp.plugins.servers.reply import NOTICE
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.record.values import utc_now
from hud_mcp.sandbox import Sandbox
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.session.history import DiedAgain
from hud_mcp.values.action import Action, ActionEffect, WaitAction
from hud_mcp.values.observation import Look, Observation
from hud_mcp.values.reply import InputNeeded, ToolReply
from hud_mcp.worlds.shell.verifier import VerifierResult
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["ToolServerWorld", "Tools"]

_ROOTS: list[Json] = [{"uri": f"file://{GUEST_ROOT}", "name": "files"}]
_ASK_S = 600.0
_COMPARE_S = 5.0
_LOG_LINES, _LOG_CHARS = 200, 1000
_TEXT_CHARS = 4000
_CHANGED = "hud-mcp/listing"
"""In the record of a reply: the numbers of tools that the server lists otherwise."""
_UNUSED = b"no call yet"
"""The snapshot of a server elsewhere before its first call."""
_AGAIN = (
    "The server was started anew over the files that it had left. Anything that it kept in memory "
    "alone is gone."
)
_GIVEN_UP = ToolReply(({"type": "text", "text": "The call was given up."},), is_error=True)


class Tools:
    """The tools of a second server, over a copy of the files. Made by `ToolServerWorld.second`."""

    def __init__(self, instance: Instance, asks: Asks) -> None:
        self._instance = instance
        self._asks = asks

    async def call(self, tool: str, /, **arguments: Any) -> ToolReply:
        """Call a tool; its error is in the reply.

        Raises:
            EnvironmentFailed: The server is gone.
        """
        running = self._asks.begin(tool, arguments, Exchange())
        reply = await self._asks.perform(running, self._instance)
        if isinstance(reply, InputNeeded):
            raise EnvironmentFailed(f"{tool} asks what nobody here answers.")
        note_agent_data(reply.text)
        return reply


class ToolServerWorld(World):
    """One session's server. Made by `ToolServer.open`.

    A template gets it by annotating a parameter with this class. Its server is started after the
    setup, and sees the files that the setup has written.

    Attributes:
        folder: The path of its files inside; empty if it runs elsewhere.
        calls: The agent's calls until now.
    """

    def __init__(
        self, shell: ShellWorld | None, launch: Launch, *, log: Callable[[str], None]
    ) -> None:
        self.folder = GUEST_ROOT if shell is not None else ""
        self.calls = Calls()
        self._shell = shell
        self._launch = launch
        self._log = log
        self._logged = 0
        self._asks = self._new_asks()
        self._stored: bytes | None = None
        self._instance: Instance | None = None
        self._starting = anyio.Lock()
        self._is_held = self._is_empty = False
        self._notice = ""
        self._watch: Watch | None = None
        self._change = Change()
        self._closed = False

    @property
    def died(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The reason why its server can no longer be used; None while it can."""
        if self._instance is not None and self._instance.died is not None:
            return self._instance.died
        return self._shell.died if self._shell is not None else None

    def server(self, name: str) -> "ToolServerWorld":
        """Return one of several servers, with its own calls; `GraderFailed` if there is none."""
        raise GraderFailed(f"This is one server, {self._launch.name}; it has no {name!r} in it.")

    @property
    def shell(self) -> ShellWorld:
        """The sandbox in which it runs, for the setup.

        Raises:
            GraderFailed: The server runs elsewhere.
        """
        if self._shell is None:
            raise GraderFailed(
                f"{self._launch.name} runs elsewhere, so it has no folder here. Grade its calls, "
                "the answer, or what second() tells."
            )
        return self._shell

    async def is_dead(self) -> bool:
        """Whether its server can no longer be used."""
        return self.died is not None

    @property
    def left_out(self) -> Sequence[str]:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The parts that the last snapshot lacked, or that the last restore did not bring back."""
        return self._shell.left_out if self._shell is not None else ()

    async def ready(self) -> None:
        """Start the server."""
        await self._running()

    async def list(self) -> Listing:
        """Ask the server for its lists."""
        instance = await self._running()
        era = instance.era
        return await list_server(
            instance, era=era.version, server=era.server, instructions=era.instructions
        )

    async def request(self, method: str, params: Json, *, timeout_s: float) -> Json:
        """Send the server any request, and return its raw result; raises as `Instance.call`."""
        return await (await self._running()).request(method, params, timeout_s)

    @property
    def banner(self) -> str:
        """The beginning of the text that the server wrote beside its messages."""
        return self._instance.banner if self._instance is not None else ""

    async def call(
        self, tool: ServerTool, arguments: Mapping[str, Any], exchange: Exchange | None = None
    ) -> ToolReply | InputNeeded:
        """Call a tool for the agent, and note the call; or return what the server asks first.

        Raises:
            ActionFailed: It did not answer in time.
            InvalidTask: Another call waits for answers, or none waits for these.
            EnvironmentFailed: The server is gone, or broke the protocol.
        """
        instance = await self._running()
        instance.schemas.setdefault(tool.called, tool.listed.get("inputSchema"))
        exchange = exchange or Exchange()
        if exchange.state is None and self._asks.is_expired:
            await self._give_up()
        running = self._asks.begin(tool.called, arguments, exchange)
        running.recorded = dict(tool.recorded(arguments))
        try:
            reply = await self._asks.perform(running, instance)
        except (ActionFailed, asyncio.CancelledError):
            self._add(running, _GIVEN_UP)  # its effects stay
            raise
        if isinstance(reply, InputNeeded):
            return reply
        self._add(running, reply)
        await self._compare(instance)
        if self._notice or self._change:
            counts = {_CHANGED: self._change.counts} if self._change else {}
            told = f"{self._notice} {self._change}".strip()
            block: Json = {"type": "text", "text": told, "_meta": {NOTICE: True}}
            reply = replace(reply, content=(*reply.content, block), meta={**reply.meta, **counts})
            self._notice, self._change = "", Change()
        return reply

    def _add(self, running: Running, reply: ToolReply) -> None:
        seconds = (utc_now() - running.began_at).total_seconds()
        text = clip(reply.text, _TEXT_CHARS)
        self.calls.append(ServerCall(running.tool, running.recorded, reply.is_error, text, seconds))

    async def _give_up(self) -> None:
        """End a call that waits for an answer. It counts as a call: it may have done something."""
        held = self._asks.held
        await self._asks.give_up()
        if held is not None:
            self._say(f"{held.tool}: its question was not answered, and the call was given up.")
            self._add(held, _GIVEN_UP)

    async def ask(self, method: str, params: Mapping[str, Any], look: Look) -> Any:
        """Get one of its prompts, or read a resource.

        Raises:
            ActionFailed: The server's own error, or it did not answer in time.
            EnvironmentFailed: The server is gone, or broke the protocol.
        """
        instance, masker = await self._running(), self._launch.masker
        asked = dict(params)
        if method == "prompts/get":
            asked["name"] = str(params["name"]).partition(".")[2]
        self._say(f"the agent asked for {method} {asked.get('uri', asked.get('name'))}")
        try:
            result = await instance.request(method, asked, _ASK_S)
        except TimeoutError:
            raise ActionFailed(f"{method} was not answered within {_ASK_S:g} s.") from None
        if method == "prompts/get":
            return await read_prompt(result, look, masker)
        return await read_contents(str(params["uri"]), result, look, masker)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        files: str | Path | None = None,
    ) -> VerifierResult:
        """Run a command in a verifier over a copy of the whole folder; `Verifier.run` says more.

        Raises:
            BrokenByAgent: The files cannot be copied.
            GraderFailed: The command cannot be run as it is written.
            EnvironmentFailed: The machine cannot make a sandbox, or the session's has ended.
        """
        variables = {**self._launch.quiet, **(env or {})}
        async with self.shell.verifier(files, copy=".") as clean:
            return await clean.run(
                command, timeout_s=timeout_s, stdin=stdin, cwd=cwd, env=variables
            )

    @asynccontextmanager
    async def second(self) -> AsyncGenerator[Tools]:
        """Start another instance of the server, over a copy of the files as they are now.

        A server that runs elsewhere gets another connection.

        Raises:
            BrokenByAgent: The files cannot be copied, or the server ends over them as it starts.
            EnvironmentFailed: The machine cannot make a sandbox, or the server does not start.
        """
        async with AsyncExitStack() as stack:
            sandbox = None
            if self._shell is not None:
                sandbox = (await stack.enter_async_context(self._shell.verifier(copy="."))).sandbox
            yield await stack.enter_async_context(self._another(sandbox))

    @asynccontextmanager
    async def _another(self, sandbox: Sandbox | None) -> AsyncGenerator[Tools]:
        instance = await self._start_over(sandbox, asks := self._new_asks(), BrokenByAgent)
        try:
            yield Tools(instance, asks)
        finally:
            with anyio.CancelScope(shield=True):
                await instance.close()

    async def act(self, action: Action) -> ActionEffect:
        """Wait; anything else is done by the server's tools."""
        if isinstance(action, WaitAction):
            await anyio.sleep(action.time / 1000)
            return ActionEffect()
        raise ActionFailed(
            f"There is nothing to {action.type!r} here: this is the MCP server "
            f"{self._launch.name}. Call its tools."
        )

    async def observe(self, look: Look) -> Observation:
        """Return nothing: what there is to see, the server's tools tell."""
        if (died := self.died) is not None:
            raise EnvironmentFailed(died)
        return Observation(text=self._notice if look.text and self._notice else None)

    async def snapshot(self) -> bytes | None:
        """Return the folder; processes and memory are not in it.

        Raises:
            SnapshotFailed: Something in the folder cannot be kept, or the state is not in it.
            LimitReached, EnvironmentFailed: As for a shell.
        """
        if self._launch.is_replayable:
            return None
        if self._shell is None:
            if self.calls:
                raise SnapshotFailed(f"{self._launch.name} runs elsewhere, with all that it keeps.")
            return _UNUSED
        if self._asks.held is not None and self._stored is not None:
            return self._stored  # half a call is not kept
        data = await self._shell.snapshot()
        if data is not self._stored and not self._launch.has_files:
            _entries, count = await self._shell.sandbox.files.entries(limit=1)
            self._is_empty = count == 0
        self._stored = data
        if self.calls and self._is_empty:
            raise SnapshotFailed(
                f"{self._launch.name} keeps nothing in its folder, so nothing of it can be stored."
            )
        return data

    async def restore(self, data: bytes) -> None:
        """Restore the folder, and start the server again over it; it raises what a shell does."""
        await self._end()
        if self._shell is not None:
            await self._shell.restore(data)
        await self._begin_again()

    async def _begin_again(self) -> None:
        if self._shell is not None:
            self._notice = _AGAIN
            self._instance = await self._start_over(self._shell.sandbox, self._asks, DiedAgain)
        await self._running()

    async def resumed(self, steps: Sequence[Any]) -> None:
        """Take the calls of the recorded steps that stand."""
        found: builtins.list[ServerCall] = []
        for step in steps:
            if step.kind == "tool" and step.actions:
                action = step.actions[0]
                is_error = step.error is not None
                text = clip(step.observation_text or "", _TEXT_CHARS)
                name = str(action["tool"])
                called = self._launch.names.get(name, name)
                found.append(ServerCall(called, action["args"], is_error, text, 0.0))
        self.calls[:] = found

    async def stop_agent(self) -> None:
        """Stop the server as grading begins, until the agent goes on."""
        await self._give_up()
        if self._shell is not None:
            self._is_held = True
            await self._shell.stop_agent()

    async def close(self) -> None:
        """End the server, and remove every file. It may be called twice."""
        self._closed = True
        try:
            await self._end()
        finally:
            if self._shell is not None:
                await self._shell.close()

    async def _running(self) -> Instance:
        """Return the running server, started if there is none; EnvironmentFailed if it is gone."""
        instance = self._instance
        if instance and self._watch and not (self._closed or self._is_held or instance.died):
            return instance
        async with self._starting:
            if self._closed:
                raise EnvironmentFailed("This server is closed. Start a new task.")
            if self._instance is None:
                sandbox = self._shell and self._shell.sandbox
                self._instance = await self._start(sandbox, self._asks)
            if self._instance.died is not None:
                raise EnvironmentFailed(self._instance.died)
            if self._is_held and self._shell is not None:
                await self._shell.sandbox.release()
                self._is_held = False
            if self._watch is None and self._launch.listed is not None:
                self._watch = Watch(self._launch.listed, self._launch.without)
                await self._compare(self._instance)
            return self._instance

    def _new_asks(self) -> Asks:
        roots = [] if self._shell is None else _ROOTS
        masker, sample = self._launch.masker, None
        if self._launch.samples:
            sample = libraries.sampling.Sampler(masker, self._say).answer
        return Asks(self._launch.name, roots, masker, self._log, sample)

    async def _start(self, sandbox: Sandbox | None, asks: Asks) -> Instance:
        return await Instance.start(
            self._launch, sandbox, on_request=asks.answer, on_notice=self._note
        )

    async def _start_over(
        self, sandbox: Sandbox | None, asks: Asks, ours: type[HudMcpError]
    ) -> Instance:
        """Start a server over the agent's files.

        It has started over those of the beginning, so if it ends twice, the agent is the cause.
        """
        for is_last in (False, True):
            try:
                return await self._start(sandbox, asks)
            except EnvironmentFailed as exc:
                if sandbox is None or not isinstance(exc.__cause__, PeerEnded):
                    raise
                if is_last:
                    raise ours(f"Over the files that the agent left: {exc}") from exc
        raise AssertionError

    async def _end(self) -> None:
        await self._asks.give_up(at_once=True)
        instance, self._instance, self._watch = self._instance, None, None
        if instance is not None:
            if self._is_held and self._shell is not None and self._shell.died is None:
                await self._shell.sandbox.release()
                self._is_held = False
            await instance.close()

    async def _compare(self, instance: Instance) -> None:
        """Note for the next reply what the server lists otherwise."""
        if self._watch is None or not self._watch.is_due:
            return
        # A server that does not list them now is met by the next call, if it is gone.
        with anyio.move_on_after(_COMPARE_S), suppress(EnvironmentFailed):
            if change := await self._watch.look(instance):
                self._change = change
                self._say(str(change))

    def _note(self, method: str, params: Json) -> None:
        """Keep the server's log messages in the session's log, and look when its tools change."""
        if method == "notifications/message":
            self._say(str(params.get("data")))
        elif method == "notifications/tools/list_changed" and self._watch is not None:
            self._watch.is_due = True
        # Not passed on: notifications/elicitation/complete. It is only a hint to retry, the newer
        # era has none, and by then its call may be over, whose stream would carry it.

    def _say(self, text: str) -> None:
        if self._logged < _LOG_LINES:
            self._logged += 1
            said = clip(text, _LOG_CHARS)
            self._log(self._launch.masker.text(f"{self._launch.name}: {said}"))

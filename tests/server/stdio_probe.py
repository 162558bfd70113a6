"""A server on stdio whose tools show what the transport does to them; a script that serves it."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from opentelemetry import trace

from hud_mcp.server.middleware import trace_where_seen
from hud_mcp.server.stdio.descriptors import claim_stdio
from hud_mcp.server.stdio.serve import serve_stdio

Json = dict[str, Any]
mark: ContextVar[str] = ContextVar("mark", default="none")


class Probe:
    """A server whose tools show what a transport does to them, and what they saw."""

    def __init__(self, *, slow_exit: bool = False, slow_start: bool = False) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.changed = anyio.Event()
        self.may_announce = anyio.Event()
        self.exited = False
        self.bus = InMemorySubscriptionBus()
        self._slow_exit = slow_exit
        self._slow_start = slow_start
        self.server = Server(
            "probe",
            version="1",
            lifespan=self._live,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        trace_where_seen(self.server)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what the tools saw meets the condition."""
        while not condition():
            self.changed = anyio.Event()
            await self.changed.wait()

    @asynccontextmanager
    async def _live(self, server: Server[Any]) -> AsyncIterator[None]:
        del server
        if self._slow_start:
            self.started.append("lifespan")
            self.changed.set()
            await anyio.sleep_forever()
        mark.set("lifespan")
        async with anyio.create_task_group() as tasks:  # a scope held across the yield
            yield
            tasks.cancel_scope.cancel()
        self.exited = True
        print("lifespan exited", file=sys.stderr)
        if self._slow_exit:
            await anyio.sleep_forever()

    async def _list(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del ctx, params
        names = [name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_")]
        return ListToolsResult(tools=[Tool(name=n, input_schema={"type": "object"}) for n in names])

    async def _call(
        self, ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        arguments = params.arguments or {}
        self.started.append(str(arguments.get("key", params.name)))
        self.changed.set()
        try:
            text = await getattr(self, f"_do_{params.name}")(ctx, arguments)
        except asyncio.CancelledError:
            self.cancelled.append(str(arguments.get("key", params.name)))
            self.changed.set()
            raise
        return CallToolResult(content=[TextContent(type="text", text=text)])

    async def _do_echo(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx
        return str(arguments["text"])

    async def _do_wait(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        await anyio.sleep_forever()
        return ""

    async def _do_stubborn(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        with anyio.CancelScope(shield=True):
            await anyio.sleep(30)
        return ""

    async def _do_swallow(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return "cancelled, but answering"
        return ""

    async def _do_block(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        print("blocking", file=sys.stderr, flush=True)
        while True:
            signal.pause()

    async def _do_big(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx
        return "x" * int(arguments["size"])

    async def _do_progress(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del arguments
        for step in range(3):
            await ctx.session.report_progress(step, 3, f"step {step}")
        return "done"

    async def _do_announce(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del arguments
        await ctx.session.send_tool_list_changed()
        await self.bus.publish(ToolsListChanged())
        return "announced"

    async def _do_announce_late(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del arguments
        with anyio.CancelScope(shield=True):
            await self.may_announce.wait()
            await ctx.session.send_tool_list_changed()
        self.started.append("announced")
        self.changed.set()
        return "announced"

    async def _do_ping(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del arguments
        await ctx.session.send_ping()
        return "pong"

    async def _do_crash(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        raise RuntimeError("a secret")

    async def _do_refuse(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        raise MCPError(-32042, "refused", {"why": "because"})

    async def _do_invalid(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        return TextContent.model_validate({"type": "text"}).text

    async def _do_context(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        before = mark.get()
        mark.set("handler")
        return f"{before} {trace.get_current_span().get_span_context().trace_id:x}"

    async def _do_print(self, ctx: ServerRequestContext[Any], arguments: Json) -> str:
        del ctx, arguments
        print("stray print")
        sys.__stdout__.write("stray original stdout\n")  # type: ignore[union-attr]
        os.write(1, b"stray write\n")
        ctypes.CDLL(None).printf(b"stray printf\n")
        os.system("echo stray child; cat")  # noqa: ASYNC221 - it is over at once
        return f"read {sys.stdin.read()!r}"


def main() -> None:
    """Serve a probe, and say on standard error how it ended."""
    probe = Probe()
    with claim_stdio() as streams:
        reason = anyio.run(serve_stdio, probe.server, streams)
    print(f"ended: {reason}", file=sys.stderr)
    if "--print-after" in sys.argv:
        print("after")


if __name__ == "__main__":
    main()

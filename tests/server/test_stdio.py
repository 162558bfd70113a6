"""The stdio transport, on real pipes, sockets, terminals, files and child processes.

Run as a script, this file is the server that its tests start as a child process.
"""

import asyncio
import ctypes
import json
import logging
import os
import pty
import random
import signal
import socket
import subprocess
import sys
import tty
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
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

import hud_mcp
from hud_mcp.server.stdio.claim import StdioStreams, claim_stdio
from hud_mcp.server.stdio.descriptors import ThreadedOutput
from hud_mcp.server.stdio.limits import StdioLimits
from hud_mcp.server.stdio.serve import StopReason, serve_stdio
from hud_mcp.server.tracing import trace_where_seen

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
mark: ContextVar[str] = ContextVar("mark", default="none")
MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


# ------------------------------------------------------------------------------- the server


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


# ------------------------------------------------------------------------------ the clients


class Wire:
    """The client's ends: frames out, frames in, and nothing that knows the protocol."""

    def __init__(self, to_server: int, from_server: int) -> None:
        self._to_server = to_server
        self._from_server = from_server
        self._buffer = b""
        os.set_blocking(to_server, False)
        os.set_blocking(from_server, False)

    async def send(self, *messages: Json | bytes) -> None:
        """Write messages, each as one line; bytes are written as they are."""
        data = b"".join(
            message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            for message in messages
        )
        while data:
            await anyio.wait_writable(self._to_server)
            data = data[os.write(self._to_server, data) :]

    async def receive(self) -> Json:
        """Read one message."""
        while b"\n" not in self._buffer:
            await anyio.wait_readable(self._from_server)
            chunk = os.read(self._from_server, 1 << 20)
            if not chunk:
                raise EOFError(self._buffer)
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def answers(self, count: int) -> dict[Any, Json]:
        """Read so many answers; by id, each of which comes once."""
        found: dict[Any, Json] = {}
        while len(found) < count:
            message = await self.receive()
            assert message["id"] not in found
            found[message["id"]] = message
        return found

    async def shake_hands(self) -> None:
        """Open a connection of the handshake era."""
        await self.send(request("init", "initialize", HELLO))
        assert (await self.receive())["result"]["protocolVersion"] == "2025-11-25"
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def hang_up(self) -> None:
        """Close the way to the server."""
        if self._to_server >= 0:
            os.close(self._to_server)
            self._to_server = -1

    def stop_reading(self) -> None:
        """Close the way from the server."""
        if self._from_server >= 0:
            os.close(self._from_server)
            self._from_server = -1


def request(request_id: int | str, method: str, params: Json | None = None) -> Json:
    """Make a request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def call(request_id: int | str, tool: str, *, meta: Json = MODERN, **arguments: Any) -> Json:
    """Make a tool call; `key` among the arguments is what the probe records it as."""
    return request(request_id, "tools/call", {"name": tool, "arguments": arguments, **meta})


def cancel(request_id: int | str) -> Json:
    """Make a cancellation."""
    params = {"requestId": request_id}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def code(message: Json) -> int:
    """Read an answer's error code."""
    return message["error"]["code"]


def text(message: Json) -> str:
    """Read a tool call's text."""
    return message["result"]["content"][0]["text"]


class Served:
    """A probe that is being served, and the client's ends of it."""

    def __init__(self, probe: Probe, wire: Wire) -> None:
        self.probe = probe
        self.wire = wire
        self.reason: StopReason | None = None
        self.ended = anyio.Event()

    async def run(self, streams: StdioStreams, limits: StdioLimits) -> None:
        """Serve to the end, and keep the reason."""
        try:
            self.reason = await serve_stdio(self.probe.server, streams, limits)
        finally:
            self.ended.set()


@asynccontextmanager
async def serving(
    probe: Probe | None = None, *, within_s: float = 30, **limits: Any
) -> AsyncIterator[Served]:
    """Serve a probe over two pipes, and hang up in the end."""
    server_in, client_out = os.pipe()
    client_in, server_out = os.pipe()
    served = Served(probe or Probe(), Wire(client_out, client_in))
    try:
        with anyio.fail_after(within_s):
            async with anyio.create_task_group() as tasks:
                streams = StdioStreams(server_in, server_out)
                tasks.start_soon(served.run, streams, StdioLimits(**limits))
                yield served
                served.wire.hang_up()
                await served.ended.wait()
    finally:
        served.wire.hang_up()
        served.wire.stop_reading()
        os.close(server_in)
        os.close(server_out)


def child_env() -> dict[str, str]:
    """What a child needs to import the package from where this process did."""
    return {"PYTHONPATH": str(Path(hud_mcp.__file__).parents[1])}


@asynccontextmanager
async def child(*arguments: str) -> AsyncIterator[tuple[subprocess.Popen[bytes], Wire]]:
    """Start this file as a server in a process of its own."""
    process = subprocess.Popen(  # noqa: ASYNC220 - its raw pipes are the point
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **child_env()},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    wire = Wire(os.dup(process.stdin.fileno()), process.stdout.fileno())
    process.stdin.close()
    process.stdin = None  # only the wire holds the way to the server
    try:
        with anyio.fail_after(60):
            yield process, wire
    finally:
        wire.hang_up()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


# -------------------------------------------------------------------------- the official client


async def drive(mode: str) -> None:
    """Put a child process through everything a client does."""
    parameters = StdioServerParameters(
        command=sys.executable, args=[__file__], env=child_env(), cwd=Path(__file__).parent
    )
    seen: list[tuple[float, float | None, str | None]] = []
    told: list[str] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async def on_message(message: Any) -> None:
        told.append(type(message).__name__)

    async with Client(stdio_client(parameters), mode=mode, message_handler=on_message) as client:
        assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
        for number in range(20):
            result = await client.call_tool("echo", {"text": f"hé {number}"})
            assert result.content == [TextContent(type="text", text=f"hé {number}")]
        await client.call_tool("progress", progress_callback=on_progress)
        assert seen == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]
        with anyio.move_on_after(0.1):
            await client.call_tool("wait")
        await check_errors(client)
        await check_server_to_client(client, told, modern=mode != "legacy")


async def check_errors(client: Client) -> None:
    """See each kind of failure as its error."""
    with pytest.raises(MCPError) as refused:
        await client.call_tool("refuse")
    assert (refused.value.code, refused.value.data) == (-32042, {"why": "because"})
    with pytest.raises(MCPError) as invalid:
        await client.call_tool("invalid")
    assert invalid.value.code == -32602
    with pytest.raises(MCPError, match=r"^Internal server error$") as crashed:
        await client.call_tool("crash")
    assert crashed.value.code == -32603


async def check_server_to_client(client: Client, told: list[str], *, modern: bool) -> None:
    """See what the server may send of its own accord in the era."""
    if not modern:
        assert (await client.call_tool("ping")).content == [TextContent(type="text", text="pong")]
        await client.call_tool("announce")
        assert "ToolListChangedNotification" in told
        return
    with pytest.raises(MCPError, match="back-channel"):
        await client.call_tool("ping")
    async with client.listen(tools_list_changed=True) as events:
        await client.call_tool("announce")
        async for event in events:
            assert isinstance(event, ToolsListChanged)
            break


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_is_served_in_either_era(mode: str) -> None:
    """Listing, calling, progress, cancelling, errors and what the server sends all work."""
    with anyio.fail_after(60):
        await drive(mode)


# ---------------------------------------------------------------------------------- the eras


async def test_a_handshake_connection_refuses_enveloped_requests() -> None:
    """The first request chose the era, and the other era's frames are named as such."""
    async with serving() as served:
        await served.wire.shake_hands()
        await served.wire.send(call(1, "echo", text="x"), call(2, "echo", meta={}, text="x"))
        answers = await served.wire.answers(2)
        assert code(answers[1]) == -32600
        assert text(answers[2]) == "x"


async def test_an_enveloped_connection_refuses_the_handshake() -> None:
    """`initialize` gets the versions that are served; a request without envelope what it lacks."""
    async with serving() as served:
        await served.wire.send(call(1, "echo", text="x"))
        assert text(await served.wire.receive()) == "x"
        await served.wire.send(request(2, "initialize", HELLO), call(3, "echo", meta={}, text="x"))
        answers = await served.wire.answers(2)
        assert code(answers[2]) == -32022
        assert answers[2]["error"]["data"]["requested"] == "2025-11-25"
        assert code(answers[3]) == -32602


async def test_initialize_is_handled_before_what_follows_it() -> None:
    """A client that pipelines the whole handshake is served as if it had waited."""
    async with serving() as served:
        await served.wire.send(
            request(1, "initialize", HELLO),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            call(2, "echo", meta={}, text="x"),
        )
        first, second = await served.wire.receive(), await served.wire.receive()
        assert (first["id"], second["id"]) == (1, 2)
        assert text(second) == "x"


async def test_a_request_before_initialize_is_refused_as_the_sdk_does() -> None:
    """Without a handshake a legacy connection serves nothing but ping and unknown methods."""
    async with serving() as served:
        await served.wire.send(
            call(1, "echo", meta={}, text="x"), request(2, "ping"), request(3, "no/such")
        )
        answers = await served.wire.answers(3)
        assert code(answers[1]) == -32602
        assert answers[2]["result"] == {}
        assert code(answers[3]) == -32601


async def test_notifications_before_the_first_request_are_not_lost() -> None:
    """A bare `initialized` opens a connection, as with the SDK."""
    async with serving() as served:
        await served.wire.send(
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            call(1, "echo", meta={}, text="x"),
        )
        assert text(await served.wire.receive()) == "x"


# -------------------------------------------------------------------------------- bad frames


async def test_what_is_no_message_is_answered_and_the_connection_lives_on() -> None:
    """Junk, batches, half requests, bad UTF-8 and depth each get their error."""
    junk = [b"hello", b"\xff\xfe", b"[" * 50_000, b"[]", b"7", b'{"jsonrpc":"2.0","id":5}']
    async with serving() as served:
        await served.wire.send(*(line + b"\n" for line in junk), b"\r\n\n")
        found = [await served.wire.receive() for _ in junk]
        assert [(m["id"], code(m)) for m in found] == [
            (None, -32700),
            (None, -32700),
            (None, -32700),
            (None, -32600),
            (None, -32600),
            (5, -32600),
        ]
        await served.wire.send(call(1, "echo", text="x"))
        assert text(await served.wire.receive()) == "x"


async def test_a_frame_over_the_limit_is_refused_with_its_id() -> None:
    """Its error says how large a message may be; the next request is served."""
    async with serving(max_frame_bytes=100_000) as served:
        await served.wire.send(call(1, "echo", text="x" * 300_000), call(2, "echo", text="y"))
        refused, answered = await served.wire.receive(), await served.wire.receive()
        assert (refused["id"], code(refused)) == (1, -32600)
        assert "100000" in refused["error"]["message"]
        assert text(answered) == "y"


async def test_a_second_request_with_an_id_in_flight_is_refused() -> None:
    """Either kind of id is compared as it is: 1 and "1" are two ids."""
    async with serving() as served:
        await served.wire.send(call(1, "wait"), call(1, "echo", text="a"))
        refused = await served.wire.receive()
        assert (refused["id"], code(refused)) == (1, -32600)
        await served.wire.send(call("1", "echo", text="b"))
        assert text(await served.wire.receive()) == "b"


async def test_a_failing_handler_shows_nothing_of_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The wire says "Internal server error" in both eras, and the log says what it was."""
    for shake, meta in ((False, MODERN), (True, {})):
        async with serving() as served:
            if shake:
                await served.wire.shake_hands()
            await served.wire.send(call(1, "crash", meta=meta))
            answer = await served.wire.receive()
            assert answer["error"] == {"code": -32603, "message": "Internal server error"}
    failures = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(failure) for failure in failures] == ["a secret"] * 2


async def test_a_handler_runs_in_the_lifespans_context_and_the_callers_trace() -> None:
    """Context variables do not leak between requests; a traceparent reaches the handler."""
    async with serving() as served:
        trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
        traceparent = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
        traced = {"_meta": {**MODERN["_meta"], **traceparent}}
        for meta, expected in ((MODERN, "0"), (traced, trace_id), (MODERN, "0")):
            await served.wire.send(call(1, "context", meta=meta))
            assert text(await served.wire.receive()) == f"lifespan {expected}"


async def test_noise_leaves_every_request_answered_once() -> None:
    """Mutated frames, junk and wrong cancellations cost no request its answer."""
    noise = random.Random(20)
    async with serving() as served:
        await served.wire.send(call("first", "echo", text="x"))
        await served.wire.receive()
        for n in range(400):
            frame = bytearray(json.dumps(call(f"noise-{n}", "echo", text="x")).encode())
            for _ in range(noise.randrange(1, 4)):
                frame[noise.randrange(len(frame))] = noise.randrange(256)
            junk = noise.randbytes(noise.randrange(60)).replace(b"\n", b"")
            await served.wire.send(bytes(frame) + b"\n", junk + b"\n", cancel(f"no-{n}"))
            await served.wire.send(call(n, "echo", text=str(n)))
        await served.wire.send(call("last", "echo", text="x"))
        found: dict[Any, list[Json]] = {}
        while len([key for key in found if isinstance(key, int)]) < 400 or "last" not in found:
            message = await served.wire.receive()
            found.setdefault(message["id"], []).append(message)
        assert all([text(answer) for answer in found[n]] == [str(n)] for n in range(400))


# ------------------------------------------------------------------------- cancelling, limits


async def test_a_cancelled_request_is_never_answered() -> None:
    """The right handler is cancelled; the others, and wrong ids, are left alone."""
    async with serving() as served:
        await served.wire.send(call(1, "wait", key="a"), call(2, "swallow"), call(3, "wait"))
        await served.probe.until(lambda: len(served.probe.started) == 3)
        await served.wire.send(cancel("1"), cancel(2), cancel(77), cancel("no"))
        await served.probe.until(lambda: "a" in served.probe.cancelled)
        await served.wire.send(call(4, "echo", text="x"), call(1, "echo", text="y"))
        answers = await served.wire.answers(2)
        assert {key: text(answer) for key, answer in answers.items()} == {4: "x", 1: "y"}
        assert served.probe.cancelled == ["a"]


async def test_requests_over_the_limit_wait_and_cancellations_do_not() -> None:
    """A full server starts nothing, still cancels, and then goes on in order."""
    async with serving(max_in_flight=2) as served:
        keys = "abcde"
        await served.wire.send(*(call(key, "wait", key=key) for key in keys), cancel("c"))
        await served.probe.until(lambda: len(served.probe.started) == 2)
        await served.wire.send(cancel("b"))
        await served.probe.until(lambda: len(served.probe.started) == 3)
        assert served.probe.started == ["a", "b", "d"]
        await served.wire.send(cancel("a"))
        await served.probe.until(lambda: len(served.probe.started) == 4)
        assert served.probe.started == ["a", "b", "d", "e"]


async def test_open_subscriptions_leave_room_for_requests() -> None:
    """Streams that never end do not use up the slots; one too many is refused."""
    async with serving(max_in_flight=2) as served:
        listen = {"notifications": {"toolsListChanged": True}, **MODERN}
        for key in "abc":
            await served.wire.send(request(key, "subscriptions/listen", listen))
        found = [await served.wire.receive() for _ in range(3)]
        assert [m.get("method") for m in found[:2]] == [
            "notifications/subscriptions/acknowledged"
        ] * 2
        assert (found[2]["id"], code(found[2])) == ("c", -32603)
        await served.wire.send(call(1, "echo", text="x"))
        assert text(await served.wire.receive()) == "x"


async def test_many_requests_at_once_are_each_answered_once() -> None:
    """Ten times the limit goes through."""
    async with serving(within_s=30) as served:
        async with anyio.create_task_group() as tasks:
            frames = [call(n, "echo", text=str(n)) for n in range(2560)]
            tasks.start_soon(served.wire.send, *frames)
            answers = await served.wire.answers(2560)
        assert all(text(answers[n]) == str(n) for n in range(2560))


async def test_a_slow_reader_stops_new_requests_and_loses_nothing() -> None:
    """While the output waits, only so many handlers have started, and the loop runs on."""
    async with serving(max_outgoing_bytes=1 << 20, max_in_flight=4, within_s=10) as served:
        frames = [call(n, "big", key=str(n), size=1 << 18) for n in range(64)]
        await served.wire.send(*frames)
        await served.probe.until(lambda: len(served.probe.started) >= 5)
        for _ in range(100):  # as many turns of the loop as would start them all
            await anyio.lowlevel.checkpoint()
        assert len(served.probe.started) < 16
        answers = await served.wire.answers(64)
        assert all(len(text(answer)) == 1 << 18 for answer in answers.values())


async def test_a_client_that_writes_much_before_it_reads_is_served() -> None:
    """Five thousand requests in one breath do not lock the two sides up."""
    async with serving(within_s=30) as served:
        await served.wire.send(*(call(n, "echo", text="x" * 100) for n in range(5000)))
        assert len(await served.wire.answers(5000)) == 5000


# -------------------------------------------------------------------------------- descriptors


@pytest.mark.parametrize("kind", ["socket", "terminal"])
async def test_one_descriptor_for_both_directions_is_served(kind: str) -> None:
    """A socket and a terminal work, and keep their blocking mode for whoever shares them."""
    if kind == "socket":
        server_end, client_end = (side.detach() for side in socket.socketpair())
    else:
        client_end, server_end = pty.openpty()
        tty.setraw(server_end)
    served = Served(Probe(), Wire(client_end, os.dup(client_end)))
    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                streams = StdioStreams(server_end, server_end)
                tasks.start_soon(served.run, streams, StdioLimits())
                await served.wire.send(call(1, "big", size=300_000))
                assert len(text(await served.wire.receive())) == 300_000
                served.wire.stop_reading()
                served.wire.hang_up()
                await served.ended.wait()
        assert served.reason is StopReason.EOF
        assert os.get_blocking(server_end)
    finally:
        os.close(server_end)


async def test_regular_files_are_served_to_their_end(tmp_path: Path) -> None:
    """Requests from a file are answered into a file, although neither can be watched."""
    frames = [json.dumps(call(n, "echo", text=str(n))) for n in range(500)]
    (tmp_path / "in").write_text("\n".join(frames))
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        with anyio.fail_after(30):
            reason = await serve_stdio(
                Probe().server,
                StdioStreams(source.fileno(), target.fileno()),
                StdioLimits(finish_s=5),
            )
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert reason is StopReason.EOF
    assert sorted(answer["id"] for answer in answers) == list(range(500))


async def test_a_thread_writes_where_a_descriptor_cannot_be_watched() -> None:
    """The fallback keeps the order, says when there is room, and ends quietly with its reader."""
    client_in, server_out = os.pipe()
    broken = anyio.Event()
    output = ThreadedOutput(server_out, 100_000, broken.set)
    try:
        with anyio.fail_after(30):
            for n in range(30):
                output.write(bytes([65 + n]) * 9_999 + b"\n")
            assert output.full
            data = b""
            while len(data) < 300_000:
                data += await anyio.to_thread.run_sync(os.read, client_in, 1 << 20)
            await output.drain()
            assert await output.flush(5)
            assert [line[0] for line in data.splitlines()] == list(range(65, 95))
            os.close(client_in)
            output.write(b"nobody reads this\n")
            await broken.wait()
    finally:
        output.close()
        os.close(server_out)


async def test_nothing_but_the_protocol_reaches_standard_output() -> None:
    """Prints, C libraries and child processes go to standard error and read nothing."""
    async with child("--print-after") as (process, wire):
        await wire.send(call(1, "print"))
        assert text(await wire.receive()) == "read ''"
        wire.hang_up()
        out, err = await anyio.to_thread.run_sync(process.communicate)
        assert out == b"after\n"
        for what in (b"print", b"original stdout", b"write", b"printf", b"child"):
            assert b"stray " + what + b"\n" in err


def test_standard_input_and_output_are_claimed_once() -> None:
    """A second claim is an error, and the first one is given back."""
    program = (
        "from hud_mcp.server.stdio.claim import claim_stdio\n"
        "with claim_stdio():\n"
        "    try:\n"
        "        claim_stdio().__enter__()\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
        "with claim_stdio():\n"
        "    print('again')\n"
        "print(input())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=b"back\n",
        capture_output=True,
        check=True,
        timeout=15,
        env={**os.environ, **child_env()},
    )
    assert ran.stdout == b"back\n"
    assert ran.stderr.decode().splitlines() == [
        "standard input and output are claimed already in this process",
        "again",
    ]


# ------------------------------------------------------------------------------------ endings


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", ["eof", "sigint", "sigterm"])
async def test_every_ending_is_in_order(ending: str) -> None:
    """Within two seconds handlers are cancelled and answered, the lifespan exits, no traceback."""
    async with child() as (process, wire):
        await wire.send(call(1, "wait"), call(2, "echo", text="x"))
        assert text(await wire.receive()) == "x"
        with anyio.fail_after(2):
            if ending == "eof":
                wire.hang_up()
            else:
                process.send_signal(getattr(signal, ending.upper()))
            closed = await wire.receive()
            _, err = await anyio.to_thread.run_sync(process.communicate)
        assert (closed["id"], closed["error"]) == (
            1,
            {"code": -32000, "message": "Connection closed"},
        )
        assert err.decode().splitlines() == ["lifespan exited", f"ended: {ending}"]
        assert process.returncode == 0


async def test_a_second_signal_ends_a_blocked_process_at_once() -> None:
    """A handler that blocks the loop delays the first signal, not the second."""
    async with child() as (process, wire):
        await wire.send(call(1, "block"))
        assert process.stderr is not None
        assert await anyio.to_thread.run_sync(process.stderr.readline) == b"blocking\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(1):
            assert await anyio.to_thread.run_sync(process.wait) in (130, 143)


async def test_requests_may_finish_after_the_input_has_ended() -> None:
    """What was accepted before the end is answered, not cut off."""
    async with serving() as served:
        await served.wire.send(*(call(n, "echo", text="x") for n in range(600)))
        served.wire.hang_up()
        answers = await served.wire.answers(600)
        assert all(text(answer) == "x" for answer in answers.values())
        await served.ended.wait()
        assert served.reason is StopReason.EOF


async def test_waiting_requests_are_answered_when_the_input_ends() -> None:
    """A request that never got a slot is told so, too."""
    async with serving(max_in_flight=1, finish_s=0.01) as served:
        await served.wire.send(call(1, "wait"), call(2, "echo", text="x"))
        served.wire.hang_up()
        answers = await served.wire.answers(2)
        assert [code(answers[n]) for n in (1, 2)] == [-32000, -32000]


async def test_what_does_not_stop_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that ignores cancellation and a lifespan that hangs take two seconds, not more."""
    caplog.set_level(logging.WARNING)
    async with serving(Probe(slow_exit=True), within_s=2.5) as served:
        await served.wire.send(call(1, "stubborn"))
        await served.probe.until(lambda: served.probe.started == ["stubborn"])
        served.wire.hang_up()
        assert code(await served.wire.receive()) == -32000
        await served.ended.wait()
        assert served.reason is StopReason.EOF
        assert served.probe.exited
    assert "did not stop" in caplog.text
    assert "did not exit" in caplog.text


async def test_what_is_left_behind_writes_to_no_descriptor(tmp_path: Path) -> None:
    """A notification after the end goes nowhere, not into a file that has the freed number."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving())
        await served.wire.shake_hands()
        await served.wire.send(call(1, "announce_late", meta={}))
        await served.probe.until(lambda: served.probe.started == ["announce_late"])
        served.wire.hang_up()
        await served.ended.wait()
        files = [stack.enter_context((tmp_path / str(n)).open("wb")) for n in range(8)]
        served.probe.may_announce.set()
        await served.probe.until(lambda: "announced" in served.probe.started)
        assert [os.fstat(file.fileno()).st_size for file in files] == [0] * 8
        assert code(await served.wire.receive()) == -32000


async def test_a_client_may_leave_before_the_lifespan_has_started() -> None:
    """The start is cancelled and what waited for it is answered."""
    async with serving(Probe(slow_start=True)) as served:
        await served.wire.send(call(1, "echo", text="x"))
        await served.probe.until(lambda: served.probe.started == ["lifespan"])
        served.wire.hang_up()
        assert code(await served.wire.receive()) == -32000
        await served.ended.wait()
        assert served.reason is StopReason.EOF


async def test_a_lifespan_that_fails_to_start_is_the_callers_error() -> None:
    """Its exception comes out of the call, and nothing is left running."""

    @asynccontextmanager
    async def fail(server: Server[Any]) -> AsyncIterator[None]:
        del server
        raise LookupError("no world")
        yield

    probe = Probe()
    probe.server.lifespan = fail
    with pytest.RaisesGroup(pytest.RaisesExc(LookupError, match="no world")):
        async with serving(probe) as served:
            await served.ended.wait()


async def test_a_lifespan_that_ends_by_itself_is_named_as_the_cause() -> None:
    """A lifespan that is cancelled from within ends the server with an error that says so."""

    @asynccontextmanager
    async def leave(server: Server[Any]) -> AsyncIterator[None]:
        del server
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        yield

    probe = Probe()
    probe.server.lifespan = leave
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="lifespan ended")):
        async with serving(probe) as served:
            await served.ended.wait()


async def test_a_client_that_stops_reading_ends_it_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broken pipe is a reason to end, not an error."""
    async with serving() as served:
        await served.wire.send(call(1, "echo", text="x"))
        await served.wire.receive()
        served.wire.stop_reading()
        await served.wire.send(call(2, "echo", text="x"))
        await served.ended.wait()
        assert served.reason is StopReason.STDOUT_CLOSED
    assert caplog.text == ""


async def test_cancelling_the_server_ends_it_in_order() -> None:
    """The lifespan has exited and the requests are answered when the cancellation is through."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving())
        await served.wire.send(call(1, "wait"))
        await served.probe.until(lambda: served.probe.started == ["wait"])
        current = asyncio.all_tasks()
        server = next(task for task in current if "Served.run" in repr(task))
        server.cancel()
        assert code(await served.wire.receive()) == -32000
        await served.ended.wait()
        assert served.probe.exited


if __name__ == "__main__":
    main()

"""A server process that takes a job's calls as lines on a pipe, without MCP."""

import asyncio
import itertools
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import orjson

from hud_mcp.agents.agent import Reply
from hud_mcp.base.lines import LineBuffer, dump_line
from hud_mcp.errors import EnvironmentFailed, HudMcpError
from hud_mcp.record.trajectory import Receipt
from hud_mcp.rollout.link import (
    CALL_S,
    START_S,
    Link,
    ServerCommand,
)
from hud_mcp.session.caller import ONLY

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, ByteSendStream
    from mcp.client.client import Client

__all__ = ["pipe_link"]

T = TypeVar("T")

_GIVE_UP_S = 1.0
"""The time to tell a server that nobody waits for a reply any more."""


class _Pipe:
    def __init__(self, stdin: "ByteSendStream", stdout: "ByteReceiveStream") -> None:
        self._stdin = stdin
        self._stdout = stdout
        # The server is this program's own: its lines need no bound.
        self._lines = LineBuffer(sys.maxsize)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ended: dict[str, Receipt] = {}

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None
    ) -> Reply:
        number = next(self._numbers)
        told = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            call = {"call": number, "name": name, "arguments": arguments, "meta": meta or {}}
            await self._stdin.send(dump_line(call))
            with anyio.move_on_after(CALL_S):
                return self._read(await told, meta)
        finally:
            del self._waiting[number]
            # The server goes on with a call that nobody waits for, unless it hears so.
            if not told.done() or told.cancelled():
                await self._give_up(number)
        return Reply(f"{name} has not replied within {CALL_S:g} s.", is_error=True)

    async def _give_up(self, number: int) -> None:
        broken = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
        with suppress(*broken), anyio.move_on_after(_GIVE_UP_S, shield=True):
            await self._stdin.send(dump_line({"call": number}))

    def _read(self, told: Mapping[str, Any], meta: Mapping[str, Any] | None) -> Reply:
        if (receipt := told.get("receipt")) is not None:
            self._ended[(meta or {})[ONLY]] = Receipt.model_validate(receipt)
        return Reply.of_wire(told["reply"])

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        del request
        raise HudMcpError("This job's server answers only calls; it has no lists.")

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        receipt = self._ended.pop(session, None)
        return None if receipt is None else (receipt.trajectory, receipt)

    async def receive(self) -> None:
        while (line := await self._line()) is not None:
            told = orjson.loads(line)
            waiting = self._waiting.get(told["call"])
            if waiting is not None and not waiting.done():
                waiting.set_result(told)

    async def is_ready(self) -> bool:
        return await self._line() is not None

    async def _line(self) -> Any:
        while (line := self._lines.take()) is None:
            try:
                self._lines.feed(await self._stdout.receive())
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return None
        return line


@asynccontextmanager
async def pipe_link(command: ServerCommand) -> AsyncGenerator[Link]:
    """Start a server that takes calls on a pipe, and stop it at the end.

    Raises:
        EnvironmentFailed: It does not answer; the text has the end of its log.
    """
    server = command.child("--without-mcp")
    async with server.running() as process, anyio.create_task_group() as group:
        if process.stdin is None or process.stdout is None:
            raise EnvironmentFailed("The server was started without a pipe to call it.")
        pipe = _Pipe(process.stdin, process.stdout)
        ready = False
        with anyio.move_on_after(START_S):
            ready = await pipe.is_ready()
        if not ready:
            raise server.did_not_start()
        link = Link(pipe, dies_with_connection=True)
        group.start_soon(_receive, pipe, link)
        try:
            yield link
        finally:
            group.cancel_scope.cancel()


async def _receive(pipe: _Pipe, link: Link) -> None:
    await pipe.receive()
    link.die()

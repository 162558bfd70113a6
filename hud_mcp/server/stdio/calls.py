"""The calls of a job's program on standard input and output: a line of JSON each, without MCP.

The program is this project's own, and starts the server for its agents. Each of its lines is a
call, `{"call": 1, "name": …, "arguments": …, "meta": …}`, or gives one up: `{"call": 1}`. The
server's first line is `{}`, once it takes calls. Its other lines are replies: `{"call": 1, "reply":
…}`, with a `receipt` if the session has ended.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import orjson

from hud_mcp.base.lines import LineBuffer, Overlong, dump_line
from hud_mcp.base.process import stop_signals
from hud_mcp.server.local import LocalTools
from hud_mcp.server.stdio.descriptors import Input, Output, StdioStreams, open_output
from hud_mcp.session.caller import ONLY

__all__ = ["serve_calls"]

logger = logging.getLogger(__name__)

_FINISH_S: Final = 0.15
"""The time for calls to finish after the end of the input."""
_FLUSH_S: Final = 0.5
_WAITING_BYTES: Final = 8 * 1024 * 1024
"""The output that may wait for the program before the input waits too."""


class _Calls:
    """The calls in progress: each starts as its line comes, and writes its reply."""

    def __init__(self, tools: LocalTools, source: Input, output: Output) -> None:
        self._tools = tools
        self._input = source
        self._output = output
        self._lines = LineBuffer(sys.maxsize)
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        output.tell_room(lambda: source.pause(paused=False))

    def receive(self, data: bytes) -> None:
        """Read a chunk of the input."""
        self._lines.feed(data)
        while (line := self._lines.take()) is not None:
            if not isinstance(line, Overlong):
                self._take(orjson.loads(line))
        if self._output.full:
            self._input.pause(paused=True)

    def _take(self, given: dict[str, Any]) -> None:
        number = given["call"]
        if "name" not in given:
            if (scope := self._scopes.get(number)) is not None:
                scope.cancel()
            return
        self._scopes[number] = anyio.CancelScope()
        task = asyncio.get_running_loop().create_task(self._perform(number, given))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _perform(self, number: int, given: Mapping[str, Any]) -> None:
        with self._scopes[number]:
            reply = await self._tools.call(given["name"], given["arguments"], given["meta"])
            told: dict[str, Any] = {"call": number, "reply": reply}
            shown: dict[str, Any] = reply.get("structuredContent") or {}
            if shown.get("state") == "ended":
                ended = self._tools.find_ended(given["meta"].get(ONLY, ""))
                told["receipt"] = None if ended is None else ended[1].model_dump(mode="json")
            self._output.write(dump_line(told))
        del self._scopes[number]

    async def close(self, within_s: float) -> None:
        """Let calls finish for a moment, and cancel those that do not."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        for scope in self._scopes.values():
            scope.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FINISH_S)


async def serve_calls(
    tools: LocalTools, streams: StdioStreams, *, on_stop: Callable[[int], None]
) -> int:
    """Perform a program's calls until it leaves, or the process is told to stop.

    Args:
        tools: The tools.
        streams: The streams of `claim_stdio`.
        on_stop: Called once, as soon as the end is known, with the process's status.

    Returns:
        The exit status for the process.
    """
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(status: int) -> None:
        if not stopped.done():
            stopped.set_result(status)
            on_stop(status)

    output = open_output(streams.stdout_fd, _WAITING_BYTES, lambda: stop(0))
    source = Input(streams.stdin_fd)
    calls = _Calls(tools, source, output)
    with stop_signals(lambda number: stop(128 + number), patience=1):
        output.write(dump_line({}))
        source.start(calls.receive, lambda: stop(0))
        try:
            return await stopped
        finally:
            source.close()
            with anyio.CancelScope(shield=True):
                left = stopped.done() and stopped.result() == 0
                await calls.close(_FINISH_S if left else 0)
                await output.flush(_FLUSH_S)
                output.close()

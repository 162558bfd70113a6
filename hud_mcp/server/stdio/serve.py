"""Serving one client on standard input and output, from its first byte to an orderly end."""

import asyncio
import logging
import signal
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import anyio
from mcp.server.lowlevel import Server

from hud_mcp.base.process import stop_signals
from hud_mcp.server.stdio.descriptors import Input, StdioStreams, open_output
from hud_mcp.server.stdio.dispatcher import Dispatcher, StdioLimits

__all__ = ["StopReason", "serve_stdio"]

logger = logging.getLogger(__name__)

_CANCEL_S: Final = 0.15
_FLUSH_S: Final = 1.5
_MIN_FLUSH_S: Final = 0.05
_DEFAULT_LIMITS: Final = StdioLimits()


class StopReason(StrEnum):
    """The reason why `serve_stdio` returned."""

    EOF = "eof"
    SIGINT = "sigint"
    SIGTERM = "sigterm"
    STDOUT_CLOSED = "stdout_closed"


_REASONS: Final = {signal.SIGINT: StopReason.SIGINT, signal.SIGTERM: StopReason.SIGTERM}


async def serve_stdio(
    server: Server[Any],
    streams: StdioStreams,
    limits: StdioLimits = _DEFAULT_LIMITS,
    *,
    on_stop: Callable[[StopReason], None] = lambda _reason: None,
) -> StopReason:
    """Serve one client until it leaves or the process is told to stop.

    Enters the server's lifespan, in a task of its own, and reads at once; what arrives before the
    lifespan is ready waits for it. The client's first request chooses the protocol era. While it
    runs, SIGINT and SIGTERM are its own (from the main thread only), and a second one ends the
    process at once with status 128 plus its number.

    At the end of the input, requests in flight have `limits.finish_s` to finish; then, or at once
    for any other reason, their handlers are cancelled and each is answered with "Connection
    closed" (-32000). The lifespan exits, the output is flushed, and with the default limits all
    of it takes less than two seconds: a handler or lifespan that does not stop is left behind,
    with a warning. Cancelling this function ends the same way.

    Args:
        server: The server, which stays unchanged.
        streams: The streams of `claim_stdio`. The descriptors stay open.
        limits: The bounds of the client.
        on_stop: Called once, as soon as the end is known, with the reason.

    Returns:
        The reason of the end. The process's exit status is the caller's business.

    Raises:
        RuntimeError: The lifespan ended by itself.
        Exception: An exception of the lifespan; everything has ended in order all the same.
    """
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[StopReason] = loop.create_future()

    def stop(reason: StopReason) -> None:
        if not stopped.done():
            stopped.set_result(reason)
            on_stop(reason)

    def end() -> None:
        dispatcher.end()
        stop(StopReason.EOF)

    output = open_output(
        streams.stdout_fd, limits.max_outgoing_bytes, lambda: stop(StopReason.STDOUT_CLOSED)
    )
    source = Input(streams.stdin_fd)
    dispatcher = Dispatcher(server, source, output, limits)
    with stop_signals(lambda number: stop(_REASONS[number]), patience=1):
        # A scope of ours around the lifespan's exit alone would not nest with the scopes that it
        # may hold across its yield, so it has a task of its own, which is bounded from outside.
        leave = asyncio.Event()
        lifespan = asyncio.create_task(_live(server, dispatcher, leave), name="lifespan")
        source.start(dispatcher.receive, end)
        try:
            await asyncio.wait((stopped, lifespan), return_when=asyncio.FIRST_COMPLETED)
        finally:
            source.close()
            reason = stopped.result() if stopped.done() else None
            with anyio.CancelScope(shield=True):
                begun = loop.time()
                await _end_messages(dispatcher, limits, reason)
                leave.set()
                await _end_lifespan(lifespan, limits, is_open=dispatcher.is_open)
                await output.flush(max(_MIN_FLUSH_S, begun + _FLUSH_S - loop.time()))
                output.close()
    if lifespan.done() and not lifespan.cancelled():
        lifespan.result()  # or raises the lifespan's exception
    if reason is None:
        raise RuntimeError("the server's lifespan ended while it was being served")
    return reason


async def _live(server: Server[Any], dispatcher: Dispatcher, leave: asyncio.Event) -> None:
    async with server.lifespan(server) as state:
        dispatcher.open(state)
        await leave.wait()


async def _end_messages(
    dispatcher: Dispatcher, limits: StdioLimits, reason: StopReason | None
) -> None:
    if reason is StopReason.EOF:
        with anyio.move_on_after(limits.finish_s):
            await dispatcher.finish()
    await dispatcher.close(_CANCEL_S)


async def _end_lifespan(
    lifespan: asyncio.Task[None], limits: StdioLimits, *, is_open: bool
) -> None:
    """Wait for a lifespan that may leave, or cancel an unfinished start."""
    if not is_open:
        lifespan.cancel()
    await asyncio.wait({lifespan}, timeout=limits.lifespan_exit_s)
    if not lifespan.done():
        logger.warning("the server's lifespan did not exit within %.1f s", limits.lifespan_exit_s)
        lifespan.cancel()
        await asyncio.wait({lifespan}, timeout=_MIN_FLUSH_S)

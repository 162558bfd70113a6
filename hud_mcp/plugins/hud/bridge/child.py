"""A process that may outlive us for a while, to come to its own end.

asyncio's own kills what still runs when it is closed; this one never does.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["Child"]

_LINE_BYTES = 4096
_LOOK_S = 0.02

_left: list[subprocess.Popen[bytes]] = []
"""Those that still ran when they were left; Python would complain of what it collects."""


class Child:
    """A process of ours, in a session of its own. Made by `start`.

    Its standard input is its sign of our life: it ends in order once that is closed.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._readers: list[asyncio.ReadTransport] = []
        self._pumps: list[asyncio.Task[None]] = []

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        folder: Path,
        on_line: Callable[[str], None],
        on_silence: Callable[[], None],
    ) -> "Child":
        """Start it.

        Args:
            command: What is run.
            folder: Where.
            on_line: Called with each line that it writes, on either stream.
            on_silence: Called once it writes to its standard output no more.

        Raises:
            OSError: It cannot be run.
        """
        child = cls(
            subprocess.Popen(  # noqa: ASYNC220, S603  # it starts at once, and is the caller's
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                # What our own tokens open is none of its business.
                env={k: v for k, v in os.environ.items() if not k.startswith("HUD_MCP_")},
            )
        )
        loop = asyncio.get_running_loop()
        streams = (child._popen.stdout, on_silence), (child._popen.stderr, lambda: None)
        for stream, at_end in streams:
            reader = asyncio.StreamReader()
            transport, _protocol = await loop.connect_read_pipe(
                lambda reader=reader: asyncio.StreamReaderProtocol(reader), stream
            )
            child._readers.append(transport)
            child._pumps.append(asyncio.create_task(_pump(reader, on_line, at_end)))
        return child

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    async def leave(self, within_s: float) -> bool:
        """Ask it to end, wait a while, and read its last words; return whether it has ended.

        What it has started ends with it: here where it has ended, else by itself.
        """
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.is_running:  # noqa: ASYNC110  # it tells nobody
                    await asyncio.sleep(_LOOK_S)
        has_ended = not self.is_running
        if has_ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            await asyncio.wait(self._pumps, timeout=within_s)
        else:
            _left.append(self._popen)
        for pump in self._pumps:
            pump.cancel()
        for transport in self._readers:
            transport.close()
        return has_ended


async def _pump(
    reader: asyncio.StreamReader, on_line: Callable[[str], None], at_end: Callable[[], None]
) -> None:
    rest = b""
    try:
        while chunk := await reader.read(_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LINE_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                on_line(line.decode("utf-8", "replace").rstrip())
    finally:
        at_end()

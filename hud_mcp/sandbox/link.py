"""The host's end of the socket to a sandbox's first process.

The inside is not trusted, so frames and waits are bounded.
"""

import asyncio
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from hud_mcp.errors import EnvironmentFailed

_LENGTH = struct.Struct("!I")
_MAX_FRAME = 16 * 1024 * 1024
_MOST_FDS = 64
_ANSWER_S = 20.0

Reply = dict[str, Any]


class Link:
    """Requests and their replies, and events, which the other side sends without a request.

    `on_end` is called once, when the other side is gone.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        on_event: Callable[[Reply], None],
        on_end: Callable[[], None],
    ) -> None:
        self._sock = sock
        sock.setblocking(False)
        self._on_event = on_event
        self._on_end = on_end
        self._buffer = bytearray()
        self._received: deque[int] = deque()
        self._waiting: dict[int, asyncio.Future[tuple[Reply, list[int]]]] = {}
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self._count = 0
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self._loop.add_reader(sock, self._on_readable)

    async def ask(
        self, op: str, *, send: Sequence[int] = (), **fields: Any
    ) -> tuple[Reply, list[int]]:
        """Send one request, and return its reply and the descriptors that came with it.

        The descriptors in `send` stay open here, and may be closed at once.

        Raises:
            OSError: The other side replied with an error, of this number and text.
            EnvironmentFailed: The other side is gone, or does not answer.
        """
        if self.ended.is_set():
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")
        number = self._count = self._count + 1
        future = self._waiting[number] = self._loop.create_future()
        frame = {"op": op, "id": number, "fds": len(send), **fields}
        timer = self._loop.call_later(_ANSWER_S, self.close, "does not answer")
        try:
            # Copies: a cancelled caller closes its own, and their numbers are used again.
            self._send(json.dumps(frame).encode(), [os.dup(fd) for fd in send])
            reply, fds = await future
        finally:
            timer.cancel()
            # A late reply may still come; without an entry here its descriptors are closed.
            self._waiting.pop(number, None)
        if "error" in reply:
            for fd in fds:
                os.close(fd)
            raise OSError(int(reply["error"]), str(reply.get("text", "")))
        return reply, fds

    def close(self, why: str = "has ended") -> None:
        """Hang up, and so end everything inside. A second call does nothing."""
        if self.ended.is_set():
            return
        self.ended.set()
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(EnvironmentFailed(f"The sandbox {why}. Start a new task."))
                future.exception()  # else asyncio logs the errors that nobody awaits
        self._received.extend(fd for _data, fds in self._unsent for fd in fds)
        self._unsent.clear()
        while self._received:
            os.close(self._received.popleft())
        self._on_end()

    def _send(self, body: bytes, fds: list[int]) -> None:
        """Send a frame with descriptors after those that wait, and close them."""
        self._unsent.append((memoryview(_LENGTH.pack(len(body)) + body), fds))
        if len(self._unsent) == 1:
            self._write()

    def _write(self) -> None:
        """Send what the socket takes now, and the rest once it takes more."""
        try:
            while self._unsent:
                data, fds = self._unsent[0]
                sent = socket.send_fds(self._sock, [data], fds) if fds else self._sock.send(data)
                self._unsent[0] = (data[sent:], [])
                for fd in fds:
                    os.close(fd)
                if sent == len(data):
                    self._unsent.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._sock, self._write_on)
        except OSError:
            self.close()

    def _write_on(self) -> None:
        self._loop.remove_writer(self._sock)
        self._write()

    def _on_readable(self) -> None:
        try:
            data, ancillary, flags, _address = self._sock.recvmsg(
                1 << 18, socket.CMSG_SPACE(_MOST_FDS * 4), socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                count = len(payload) // 4
                # Taken at once: those that no frame claims are closed at the end.
                self._received.extend(struct.unpack(f"{count}i", payload[: count * 4]))
        # With descriptors lost, the later ones would belong to other replies.
        if not data or flags & socket.MSG_CTRUNC:
            self.close()
            return
        self._buffer += data
        try:
            self._take_frames()
        except (ValueError, KeyError, TypeError):  # what no first process of ours sends
            self.close()

    def _take_frames(self) -> None:
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            # The inside could otherwise fill this process's memory.
            if length > _MAX_FRAME:
                self.close()
                return
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            self._take(json.loads(body))

    def _take(self, frame: Reply) -> None:
        if "event" in frame:
            self._on_event(frame)
            return
        fds = [self._received.popleft() for _ in range(frame.pop("fds", 0)) if self._received]
        future = self._waiting.get(frame.pop("id"))
        if future is None or future.done():
            for fd in fds:
                os.close(fd)
            return
        future.set_result((frame, fds))

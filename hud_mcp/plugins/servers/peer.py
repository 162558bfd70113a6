"""Our end of JSON-RPC with a server that may lie: raw objects, so that nothing of it is lost."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hud_mcp.base.text import clip
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.plugins.servers.wires import Wire

logger = logging.getLogger(__name__)

__all__ = [
    "AnswerRequest",
    "Json",
    "OnProgress",
    "Peer",
    "PeerEnded",
    "RemoteError",
    "as_list",
    "as_object",
    "refuse",
]

Json = dict[str, Any]
AnswerRequest = Callable[[str, Json], Awaitable[Json]]
"""The answer to a request of the server, by its method and parameters; or a `RemoteError`."""
OnProgress = Callable[[Json], Awaitable[None]]

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

_JUNK_BYTES = 64 * 1024
"""The text beside messages that is forgiven: many programs greet."""
_SHOWN_CHARS = 200
_ERROR_CHARS = 4000
_OPEN_REQUESTS = 16
_NOTICES = 2000
"""The notifications of one call that are read; the others are counted."""
_FLOOD_S, _FLOOD_MESSAGES, _FLOOD_BYTES = 10.0, 10_000, 64 * 1024 * 1024
"""The messages that a server may send unasked in one stretch of time, and the bytes in one call."""
_PROGRESS_S = 0.1
_HUNG_S = 5.0
"""The shortest wait for a reply that counts as a hang; an agent may leave sooner."""
_HANGS = 2


class RemoteError(ActionFailed):
    """A request's error, from the server itself or from us to it; `code` is that of JSON-RPC."""

    def __init__(self, code: int, text: str, data: Any = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data


class PeerEnded(EnvironmentFailed):
    """The server is gone, or breaks the protocol; the text is the end of a sentence about it."""


def as_object(value: Any) -> Json:
    """Return a JSON object; an empty one in place of anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a JSON array; an empty one in place of anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


async def refuse(method: str, params: Json) -> Json:
    """Answer a request of the server as the protocol has it if a client declares nothing."""
    del params
    raise RemoteError(METHOD_NOT_FOUND, f"This client has no {clip(method, _SHOWN_CHARS)}.")


@dataclass(eq=False, slots=True)
class _Call:
    reply: "asyncio.Future[Json]"
    on_progress: OnProgress | None
    received: int
    since_s: float = field(default_factory=time.monotonic)
    told_s: float = 0.0


class Peer:
    """One end of JSON-RPC over a wire. Its requests have numbers; replies come in any order.

    Args:
        wire: The way to the server; the peer closes it.
        on_request: The answer to the server's requests but `ping`, by default a refusal.
        on_notice: A function for its notifications but progress.

    Attributes:
        died: The end of a sentence on the server's end, or None: `closed its standard output`.
        banner: The beginning of the text that the server wrote beside its messages.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        on_request: AnswerRequest = refuse,
        on_notice: Callable[[str, Json], None] = lambda _method, _params: None,
    ) -> None:
        self.died: str | None = None
        self.banner = ""
        self._wire = wire
        self._on_request = on_request
        self._on_notice = on_notice
        self._last = 0
        self._calls: dict[int, _Call] = {}
        self._answering: dict[asyncio.Task[None], Any] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._received = self._hangs = self._junk = self._notices = 0
        self._flood, self._flood_bytes = (0.0, 0), 0
        wire.start(self)

    @property
    def open_calls(self) -> int:
        """The number of requests without a reply."""
        return len(self._calls)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Json:
        """Send a request, and return its result.

        Raises:
            RemoteError: The server's error, or its result is no object.
            TimeoutError: There is no reply after `timeout_s`. The server is told to stop.
            PeerEnded: The server is gone, or broke the protocol.
            ValueError: The parameters are not representable as JSON.

        If this call is cancelled, the server is told to stop, and can be used further.
        """
        if self.died is not None:
            raise PeerEnded(self.died)
        self._last += 1
        number = self._last
        reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._calls[number] = call = _Call(reply, on_progress, self._received)
        self._notices = self._flood_bytes = 0
        if on_progress is not None:
            meta = {**params.get("_meta", {}), "progressToken": number}
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            async with asyncio.timeout(timeout_s):
                await self._wire.send(message)
                return await reply
        except (TimeoutError, asyncio.CancelledError):
            self._give_up(number, call)
            raise
        finally:
            self._calls.pop(number, None)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification; after the server's end this does nothing."""
        told = {"params": params} if params else {}
        await self._wire.send({"jsonrpc": "2.0", "method": method, **told})

    def close_input(self) -> None:
        """Tell the server that nothing more comes."""
        self._wire.close_input()

    async def wait_closed(self) -> None:
        """Wait after `close` until the wire is released, within a bound."""
        await self._wire.wait_closed()

    def close(self, why: str = "was ended") -> None:
        """End it; every open request raises `PeerEnded`. It may be called twice."""
        self._wire.close()
        self.ended(why)
        for task in (*self._answering, *self._telling):
            task.cancel()

    # The server's messages.

    def received(self, message: Json, size_bytes: int) -> None:
        """Take a message of the server."""
        self._received += 1
        self._hangs = 0
        if "method" not in message:
            self._take_reply(message, size_bytes)
            return
        method, params = message["method"], as_object(message.get("params"))
        if not isinstance(method, str) or self._is_flood(size_bytes):
            return
        if message.get("id") is not None:
            self._begin_answer(message["id"], method, params)
        else:
            self._take_notice(method, params)

    def received_junk(self, line: bytes) -> None:
        """Forgive a line that is no message, up to a bound."""
        self._junk += len(line) + 1
        text = line[: 4 * _SHOWN_CHARS].decode("utf-8", "replace")
        self.banner = self.banner or clip(text, _SHOWN_CHARS)
        if self._junk > _JUNK_BYTES:
            self._break(
                f"wrote more than {_JUNK_BYTES} bytes to its standard output that are no messages, "
                f"such as {self.banner!r}"
            )

    def ended(self, why: str) -> None:
        """Note the end; every open request raises it."""
        self.died = self.died or why
        for call in self._calls.values():
            if not call.reply.done():
                call.reply.set_exception(PeerEnded(self.died))

    def _take_reply(self, message: Json, size_bytes: int) -> None:
        number = message.get("id")
        if type(number) is not int and number is not None:  # True is 1, and "1" is not ours
            self._take_stray(number)
            return
        call = next(iter(self._calls.values()), None) if number is None else None
        if number is not None:
            call = self._calls.get(number)
            if call is None and not 0 < number <= self._last:
                self._take_stray(number)
                return
        if call is None or call.reply.done():  # of a request that was given up, or once more
            self._is_flood(size_bytes)
            return
        error, result = message.get("error"), message.get("result")
        if error is not None:
            call.reply.set_exception(_remote_error(error))
        elif isinstance(result, dict):
            call.reply.set_result(cast("Json", result))
        else:
            text = "The server answered with neither a result nor an error."
            call.reply.set_exception(RemoteError(INTERNAL_ERROR, text))

    def _take_stray(self, number: Any) -> None:
        """End a server that answers what nobody asked: its replies cannot be told apart."""
        self._break(f"answered with the id {clip(repr(number), _SHOWN_CHARS)}, which no call has")

    def _begin_answer(self, number: Any, method: str, params: Json) -> None:
        if len(self._answering) >= _OPEN_REQUESTS:
            self._break(f"had more than {_OPEN_REQUESTS} requests open at once")
            return
        task = asyncio.get_running_loop().create_task(self._answer(number, method, params))
        self._answering[task] = number
        task.add_done_callback(lambda done: self._answering.pop(done, None))

    async def _answer(self, number: Any, method: str, params: Json) -> None:
        reply: Json
        try:
            result = {} if method == "ping" else await self._on_request(method, params)
            reply = {"result": result}
        except RemoteError as exc:
            data = {} if exc.data is None else {"data": exc.data}
            reply = {"error": {"code": exc.code, "message": str(exc), **data}}
        except Exception as exc:  # noqa: BLE001  # the server waits for an answer in any case
            reply = {"error": {"code": INTERNAL_ERROR, "message": type(exc).__name__}}
        with contextlib.suppress(ValueError):
            await self._wire.send({"jsonrpc": "2.0", "id": number, **reply})

    def _take_notice(self, method: str, params: Json) -> None:
        self._notices += 1
        if self._notices > _NOTICES:
            return
        if method == "notifications/progress":
            self._take_progress(params)
        elif method == "notifications/cancelled":
            number = params.get("requestId")
            for task, open_number in list(self._answering.items()):
                if open_number == number:
                    task.cancel()
        else:
            self._on_notice(method, params)

    def _take_progress(self, params: Json) -> None:
        token = params.get("progressToken")
        call = self._calls.get(token) if type(token) is int else None
        now = time.monotonic()
        if call is None or call.on_progress is None or now - call.told_s < _PROGRESS_S:
            return
        call.told_s = now
        task = asyncio.ensure_future(_tell(call.on_progress, params))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _is_flood(self, size_bytes: int) -> bool:
        """Count a message that nobody asked for; end a server that sends too many."""
        began_s, messages = self._flood
        now = time.monotonic()
        if now - began_s > _FLOOD_S:
            began_s, messages = now, 0
        self._flood = (began_s, messages + 1)
        self._flood_bytes += size_bytes
        if messages < _FLOOD_MESSAGES and self._flood_bytes <= _FLOOD_BYTES:
            return False
        self._break(f"sent {messages + 1} messages that nobody asked for")
        return True

    def _give_up(self, number: int, call: _Call) -> None:
        """Tell the server that a reply is not wanted any more, and count a hang."""
        if self.died is not None:
            return
        params = {"requestId": number, "reason": "The caller does not wait any longer."}
        task = asyncio.ensure_future(self.notify("notifications/cancelled", params))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
        is_silent = call.received == self._received
        if is_silent and time.monotonic() - call.since_s >= _HUNG_S:
            self._hangs += 1
            if self._hangs >= _HANGS:
                self._break(f"did not answer {_HANGS} calls in a row")

    def _break(self, why: str) -> None:
        self._wire.close()
        self.ended(why)


async def _tell(on_progress: OnProgress, params: Json) -> None:
    try:
        await on_progress(params)
    except Exception as exc:  # noqa: BLE001  # a client that is gone hears nothing, and nobody fails
        logger.debug("progress is not told: %s", exc)


def _remote_error(error: Any) -> RemoteError:
    given = as_object(error)
    code, text = given.get("code"), given.get("message")
    said = text if isinstance(text, str) and text else "The server gives no reason."
    number = code if type(code) is int else INTERNAL_ERROR
    return RemoteError(number, clip(said, _ERROR_CHARS), given.get("data"))

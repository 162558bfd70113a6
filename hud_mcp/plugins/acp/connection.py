"""One end of JSON-RPC with a program over its standard input and output."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import orjson
from anyio.abc import ByteReceiveStream, ByteSendStream, Process, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import BaseModel, ValidationError

from hud_mcp.agents.command import CommandDied, last_said, shown_status
from hud_mcp.base.process import ended_in_order
from hud_mcp.base.reaper import reaped
from hud_mcp.base.text import clip
from hud_mcp.errors import HudMcpError, sole_cause
from hud_mcp.sandbox.commands import Output

__all__ = ["Connection", "Json", "RequestRefused", "connected"]

Json = dict[str, Any]
ModelT = TypeVar("ModelT", bound=BaseModel)
OnRequest = Callable[[str, Json], Awaitable[Json]]
"""Answers a request of the program, by its method and parameters; or raises `RequestRefused`."""
OnNotice = Callable[[str, Json], Awaitable[None]]

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

_LINE_BYTES = 16 * 1024 * 1024
"""The longest message: a call's result may have a picture."""
_JUNK_BYTES = 64 * 1024
"""The text beside messages that is forgiven: many programs greet."""
_MESSAGES, _BYTES = 200_000, 1024 * 1024 * 1024
"""The messages of one program, and their bytes: text comes in parts of a word."""
_OPEN_REQUESTS = 16
_ANSWER_S = 120.0
"""A package manager may have to fetch the program first."""
_SEND_S = 30.0
"""The time in which a program has to read a message."""
_CANCEL_S = _EXIT_S = 5.0
"""The time between the end of a program's output and its own end."""
_END_S = 10.0
_KEPT_BYTES = 256 * 1024
_ERROR_CHARS = 1_000


class RequestRefused(HudMcpError):
    """The error of a request, from the program or to it; `code` is that of JSON-RPC."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Call:
    def __init__(self) -> None:
        self.over = anyio.Event()
        self.reply: Json = {}


class Connection:
    """Our end of a program's standard input and output, with its standard error for its last words.

    Attributes:
        has_ended: Whether the program's output has ended, or is not read any more.
        reading: The scope of `serve`; a program that is asked to stop still gets answers.
    """

    def __init__(self, process: Process, *, title: str, errors: Output) -> None:
        self.has_ended = False
        self.reading = anyio.CancelScope(shield=True)
        self._process = process
        self._title = title
        self._errors = errors
        self._why = ""
        self._last = 0
        self._calls: dict[int, _Call] = {}
        self._answers = 0
        self._sending = anyio.Lock()

    async def ask(
        self, method: str, params: Json, answer: type[ModelT], *, cancel: str = ""
    ) -> ModelT:
        """Send a request of the protocol, and return its answer.

        Raises:
            RequestRefused: The program's error.
            CommandDied: It has ended, does not answer in time, or answers something else.

        With a method that cancels it, a request has no bound. A cancelled call sends that one.
        """
        reply = await self.request(method, params, cancel=cancel)
        try:
            return answer.model_validate(reply)
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            raise self.died(
                f"answered {method} with something else", said=f"{first['loc']}: {first['msg']}"
            ) from None

    async def request(self, method: str, params: Json, *, cancel: str = "") -> Json:
        """Send a request, and return its result; it raises what `ask` raises."""
        self._check()
        self._last += 1
        number = self._last
        self._calls[number] = call = _Call()
        try:
            with anyio.fail_after(None if cancel else _ANSWER_S):
                await self._send({"id": number, "method": method, "params": params})
                await call.over.wait()
        except TimeoutError:
            raise self.died(f"did not answer {method} within {_ANSWER_S:g} s") from None
        except anyio.get_cancelled_exc_class():
            if cancel:
                with anyio.move_on_after(_CANCEL_S, shield=True):
                    await self.notify(cancel, {"sessionId": params["sessionId"]})
                    await call.over.wait()
            raise
        finally:
            del self._calls[number]
        if "error" in call.reply:
            raise _refusal(call.reply["error"])
        if not call.reply:
            self._check()
        result = call.reply.get("result")
        return cast("Json", result) if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification; after the program's end this does nothing."""
        if not self.has_ended:
            await self._send({"method": method, "params": params})

    async def serve(self, on_request: OnRequest, on_notice: OnNotice) -> None:
        """Read the program's messages until its output ends; then every open request fails."""
        try:
            with self.reading:
                async with anyio.create_task_group() as group:
                    await self._read(group, on_request, on_notice)
                    group.cancel_scope.cancel()
        except BaseExceptionGroup as found:
            raise sole_cause(found) from None
        finally:
            self.has_ended = True
            for call in self._calls.values():
                call.over.set()

    async def _read(self, group: TaskGroup, on_request: OnRequest, on_notice: OnNotice) -> None:
        lines = BufferedByteReceiveStream(cast("ByteReceiveStream", self._process.stdout))
        junk = messages = size_bytes = 0
        while not self._why:
            try:
                line = await lines.receive_until(b"\n", _LINE_BYTES)
            except anyio.DelimiterNotFound:
                self._why = f"wrote a message of more than {_LINE_BYTES} bytes"
                return
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
                with anyio.move_on_after(_EXIT_S):
                    await self._process.wait()
                return
            if (message := _message(line)) is None:
                junk += len(line)
            else:
                messages += 1
                size_bytes += len(line)
                await self._take(message, group, on_request, on_notice)
            if junk > _JUNK_BYTES:
                shown = clip(line.decode(errors="replace"), 100)
                self._why = f"wrote too much that is no message, such as {shown!r}"
            elif messages > _MESSAGES or size_bytes > _BYTES:
                self._why = f"sent {messages} messages, and more were to come"

    def died(self, why: str = "", *, said: str = "") -> CommandDied:
        """Return the error of a program that works no more, with the reason that it said itself.

        Without one, its last words stand there.
        """
        if said:
            return CommandDied(f"Its {self._title} {why}: {said}")
        self._errors.drain()
        status = shown_status(self._process.returncode)
        ended = "closed its output" if self._process.returncode is None else f"ended with {status}"
        return CommandDied(f"Its {self._title} {why or ended}{last_said(self._errors.taken())}")

    def _check(self) -> None:
        if self.has_ended:
            raise self.died(self._why)

    async def _take(
        self, message: Json, group: TaskGroup, on_request: OnRequest, on_notice: OnNotice
    ) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            call = self._calls.get(number) if type(number) is int else None
            if call is not None and not call.reply:
                call.reply = message
                call.over.set()
            return
        given = message.get("params")
        params = cast("Json", given) if isinstance(given, dict) else {}
        if number is None:
            await on_notice(method, params)
        elif self._answers >= _OPEN_REQUESTS:
            self._why = f"had more than {_OPEN_REQUESTS} requests open at once"
        else:
            self._answers += 1
            group.start_soon(self._answer, number, method, params, on_request)

    async def _answer(self, number: Any, method: str, params: Json, on_request: OnRequest) -> None:
        try:
            reply: Json = {"result": await on_request(method, params)}
        except RequestRefused as exc:
            reply = {"error": {"code": exc.code, "message": str(exc)}}
        finally:
            self._answers -= 1
        await self._send({"id": number, **reply})

    async def _send(self, message: Mapping[str, Any]) -> None:
        stdin = cast("ByteSendStream", self._process.stdin)
        line = orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n"
        try:
            async with self._sending:
                with anyio.fail_after(_SEND_S):
                    await stdin.send(line)
        except TimeoutError:
            # Half a message may be written: nothing else can follow it.
            self._why = self._why or f"read no message for {_SEND_S:g} s"
            self._process.terminate()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            return  # its end is found by the reader


def _message(line: bytes) -> Json | None:
    """Read a message; None for other text."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast("Json", found) if isinstance(found, dict) and "jsonrpc" in found else None


def _refusal(error: Any) -> RequestRefused:
    given = cast("Json", error) if isinstance(error, dict) else {}
    code, text, data = given.get("code"), given.get("message"), given.get("data")
    said = text if isinstance(text, str) and text else "It gives no reason."
    if isinstance(data, dict):
        # Many programs answer "Internal error", and say the cause here.
        known = cast("Json", data)
        data = known.get("details") or known.get("message")
    if isinstance(data, str) and data not in said:
        said = f"{said}: {data}"
    said = clip(" ".join(said.split()), _ERROR_CHARS)
    return RequestRefused(code if type(code) is int else INTERNAL_ERROR, said)


@asynccontextmanager
async def connected(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: Path,
    title: str,
    on_request: OnRequest,
    on_notice: OnNotice,
    log: Callable[[str, bytes], None],
) -> AsyncGenerator[Connection]:
    """Run a program in its folder, with all its variables, and talk to it while the block runs.

    It ends with the block, also if that is cancelled, and so does everything that it started. Its
    exit status and its standard error are logged then; errors name it by its title.
    """
    read_end, write_end = os.pipe()
    errors = Output(
        read_end, kept_bytes=_KEPT_BYTES, most_bytes=sys.maxsize, on_overflow=lambda: None
    )
    status = "did not start"
    try:
        try:
            process = await anyio.open_process(
                reaped(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write_end,
                cwd=folder, env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(write_end)
        status = "ended with its run"
        async with ended_in_order(process, within_s=_END_S):
            connection = Connection(process, title=title, errors=errors)
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(connection.serve, on_request, on_notice)
                    try:
                        yield connection
                    finally:
                        connection.reading.cancel()
            finally:
                if process.returncode is not None:
                    status = shown_status(process.returncode)
    except BaseExceptionGroup as found:
        raise sole_cause(found) from None
    finally:
        errors.drain()
        errors.close()
        log(status, errors.taken())

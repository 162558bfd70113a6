"""One running copy of a server: started in a sandbox, watched, asked, and ended in order."""

import asyncio
import builtins
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

import anyio

from hud_mcp.base.text import clip
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.servers.eras import Era, negotiate
from hud_mcp.plugins.servers.http import HttpWire, inside
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.peer import (
    AnswerRequest,
    Json,
    OnProgress,
    Peer,
    PeerEnded,
    RemoteError,
    as_list,
    refuse,
)
from hud_mcp.plugins.servers.wires import PipeWire, Wire
from hud_mcp.sandbox import Sandbox
from hud_mcp.sandbox.commands import Excerpt, Process, shell_status

__all__ = ["LIST_METHODS", "Instance", "ListKind"]

ListKind = Literal["tools", "prompts", "resources", "resourceTemplates"]

LIST_METHODS: dict[ListKind, str] = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
_PAGES, _ENTRIES = 20, 500
_ERRORS_KEPT, _ERRORS_SHOWN = 16 * 1024, 800
_ERRORS_BYTES_S = 4 * 1024 * 1024
"""The bytes of standard error that are read in a second; a server that writes more waits."""
_CHUNK_BYTES = 1 << 16
_END_S = 1.0
_TERM_S = 1.0
_NOT_FOUND = 127
_LIST_S = 30.0


class _Errors:
    """The reader of a server's standard error: for ever, its beginning and its end, and slowly."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kept = Excerpt(_ERRORS_KEPT)
        self._loop = asyncio.get_running_loop()
        self._read_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        self._go_on()

    @property
    def text(self) -> str:
        """The end of the text until now."""
        if self._fd >= 0:
            self._read()
        text = self._kept.taken().decode("utf-8", "replace").strip()
        return text if len(text) <= _ERRORS_SHOWN else f"…{text[-_ERRORS_SHOWN:]}"

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._timer, self._read_bytes = None, 0
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        data = b""
        try:
            data = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            pass
        if not data:
            self.close()
            return
        self._kept.add(data)
        self._read_bytes += len(data)
        # Else one server that only complains would take this process's whole time.
        if self._read_bytes > _ERRORS_BYTES_S and self._timer is None:
            self._loop.remove_reader(self._fd)
            self._timer = self._loop.call_later(1.0, self._go_on)


class Instance:
    """A running server. Made by `start`.

    Attributes:
        era: The terms of the connection.
        died: The sentence on its end; None while it can be asked.
        schemas: The schemas of its tools by name, as far as they are known.
    """

    def __init__(self, launch: Launch, peer: Peer, started: "_Started | None") -> None:
        self._launch = launch
        self._name, self._masker = launch.name, launch.masker
        self._peer = peer
        self._sandbox, self._process, self._errors = started or (None, None, None)
        self._running, self._closed = "", False
        self.era = Era("")
        self.died: str | None = None
        self.schemas: dict[str, Any] = {}
        self._watching: asyncio.Task[None] | None = None
        if self._process is not None:
            self._watching = asyncio.create_task(self._watch(self._process))

    @classmethod
    async def start(
        cls,
        launch: Launch,
        sandbox: Sandbox | None,
        *,
        on_request: AnswerRequest = refuse,
        on_notice: Callable[[str, Json], None] = lambda _method, _params: None,
    ) -> "Instance":
        """Start a server in a sandbox, or connect to one elsewhere, and agree with it on an era.

        With a port, it speaks HTTP there, and its standard output is read as its errors are.

        Raises:
            EnvironmentFailed: It does not start, cannot be reached, or breaks the protocol. The
                text has the end of its standard error.

        If this fails or is cancelled, nothing of it runs on.
        """
        schemas = {str(each.get("name")): each.get("inputSchema") for each in launch.listed or ()}
        http = partial(HttpWire, headers=launch.headers, sse=launch.sse, schemas=schemas)
        started, wire = None, cast("Wire", http(launch.url or ""))
        if sandbox is not None:
            wire, started = await _spawn(launch, sandbox, http)
        peer = Peer(wire, on_request=on_request, on_notice=on_notice)
        instance = cls(launch, peer, started)
        instance.schemas = schemas
        try:
            await instance._begin()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await instance.close(in_order_s=0)
            raise
        return instance

    @property
    def banner(self) -> str:
        """The beginning of the text that it wrote beside its messages."""
        return self._masker.text(self._peer.banner)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        extra: Mapping[str, Any] | None = None,
        capabilities: Json | None = None,
    ) -> Json:
        """Call a tool, and return the raw result. `extra` goes beside the arguments.

        The `capabilities` are those of the client on whose behalf it is called.

        Raises:
            RemoteError: The server's own error.
            TimeoutError: It did not answer in time.
            EnvironmentFailed: It is gone, or broke the protocol.
        """
        params = {"name": tool, "arguments": arguments, **(extra or {})}
        self._running = f" while {tool} ran"
        try:
            return await self.request("tools/call", params, timeout_s, on_progress, capabilities)
        finally:
            self._running = ""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        capabilities: Json | None = None,
    ) -> Json:
        """Send any request; raises as `call` does."""
        params = self.era.params(params, capabilities)
        try:
            return await self._peer.request(
                method, params, timeout_s=timeout_s, on_progress=on_progress
            )
        except PeerEnded as exc:
            raise EnvironmentFailed(await self._why_ended(str(exc))) from exc
        except RemoteError as exc:
            text, data = self._masker.text(str(exc)), self._masker.value(exc.data)
            raise RemoteError(exc.code, text, data) from None

    async def list(self, kind: ListKind, *, timeout_s: float = _LIST_S) -> list[Json]:
        """Return the entries of a kind; none if the server has no such kind.

        Raises:
            EnvironmentFailed: It is gone, or does not list them.
        """
        found: builtins.list[Json] = []
        cursor: Json = {}
        for _page in range(_PAGES):
            try:
                page = await self.request(LIST_METHODS[kind], cursor, timeout_s)
            except (RemoteError, TimeoutError) as exc:
                if isinstance(exc, RemoteError) and kind != "tools":
                    return found
                why = exc if isinstance(exc, RemoteError) else f"no answer in {timeout_s:g} s"
                raise EnvironmentFailed(f"{self._name} does not list its {kind}: {why}") from exc
            found += [each for each in as_list(page.get(kind)) if isinstance(each, dict)]
            next_cursor = page.get("nextCursor")
            if not isinstance(next_cursor, str) or len(found) >= _ENTRIES:
                break
            cursor = {"cursor": next_cursor}
        return cast("list[Json]", self._masker.value(found[:_ENTRIES]))

    async def close(self, *, in_order_s: float = 2.0) -> None:
        """End it: close its input, wait, then stop and kill it. It may be called twice."""
        if self._closed:
            return
        self._closed = True
        self.died = self.died or f"{self._name} was ended."
        self._peer.close_input()
        sandbox = self._sandbox
        with contextlib.suppress(EnvironmentFailed, OSError):
            await self._wait(in_order_s)
            process = self._process
            if process is not None and process.code is None and sandbox and sandbox.alive:
                await sandbox.signal(process, signal.SIGTERM)
                await self._wait(min(in_order_s, _TERM_S))
                await sandbox.kill(process, "it was ended")
        if self._watching is not None:
            self._watching.cancel()
        self._peer.close()
        if self._errors is not None:
            self._errors.close()
        await self._peer.wait_closed()

    async def _begin(self) -> None:
        launch, timeout_s = self._launch, self._launch.start_s
        more: Json = {"sampling": {}} if launch.samples else {}
        try:
            async with asyncio.timeout(timeout_s):
                self.era = await negotiate(self._peer, launch.era, more, timeout_s=timeout_s)
        except TimeoutError as exc:
            said = self._said()
            raise EnvironmentFailed(
                f"{self._name} did not answer within {timeout_s:g} s of its start.{said}"
            ) from exc
        except PeerEnded as exc:
            raise EnvironmentFailed(await self._why_ended(str(exc))) from exc
        except EnvironmentFailed as exc:
            text = self._masker.text(f"{exc}{self._said()}")
            raise EnvironmentFailed(f"{self._name} cannot be used. {text}") from exc

    async def _watch(self, process: Process) -> None:
        """Note an end that no closed pipe tells: a child may hold it open."""
        await process.wait()
        await asyncio.sleep(_END_S / 4)  # its last messages may still lie in the pipe
        self._peer.close("ended")
        await self._why_ended("ended")

    async def _why_ended(self, why: str) -> str:
        """Return the sentence on its end, and kill what is left of it."""
        if self.died is not None:
            return self.died
        await self._wait(_END_S)
        if self.died is not None:  # another caller waited too
            return self.died
        process = self._process
        code, reason = (process.code, process.reason) if process else (None, None)
        if reason is not None:
            how = f"was stopped, because {reason},"
        elif code is None:
            how = why
        elif code == _NOT_FOUND:
            how = "was not found in its sandbox"
        else:
            how = f"ended with status {shell_status(code)}"
        if code is not None and not why.startswith(("ended", "closed", "was ended")):
            how = f"{why}, and {how}"
        text = f"{self._name} {how}{self._running}.{self._said()}"
        self.died = self._masker.text(text)
        if process is not None and code is None and self._sandbox and self._sandbox.alive:
            with contextlib.suppress(EnvironmentFailed):
                await self._sandbox.kill(process, "it broke the protocol")
        return self.died

    def _said(self) -> str:
        """The end of its standard error, and text that it wrote beside its messages."""
        errors, banner = self._errors.text if self._errors else "", self._peer.banner
        beside = f" Its output began with {clip(banner, 80)!r}." if banner else ""
        return f"{beside} Its errors: {errors}" if errors else beside

    async def _wait(self, seconds: float) -> None:
        if self._process is not None:
            with anyio.move_on_after(seconds):
                await self._process.wait()


_Started = tuple[Sandbox, Process, _Errors]


async def _spawn(
    launch: Launch, sandbox: Sandbox, http: Callable[..., HttpWire]
) -> tuple[Wire, _Started]:
    """Start a server's process, and return the way to it."""
    ours, theirs = _pipes()
    port = launch.port
    stdio = theirs if port is None else [theirs[0], theirs[2], theirs[2]]
    try:
        process = await sandbox.spawn(launch.argv, stdio=stdio, env=launch.env)
    except BaseException as exc:
        _close(ours)
        if isinstance(exc, OSError):
            why = f"{launch.name} does not start: {exc.strerror or exc}."
            raise EnvironmentFailed(why) from exc
        raise
    finally:
        _close(theirs)
    wire: Wire = PipeWire(ours[1], ours[0])
    if port is not None:
        tunnel = partial(inside, sandbox, port, timeout_s=launch.start_s)
        url = f"http://127.0.0.1:{port}/mcp"
        wire = http(url, tunnel=tunnel, close_input=wire.close)
    return wire, (sandbox, process, _Errors(ours[2]))


def _pipes() -> tuple[list[int], list[int]]:
    """Return our ends of its standard input, output and error, and its own."""
    (stdin, to), (out, stdout), (errors, stderr) = (os.pipe() for _ in range(3))
    return [to, out, errors], [stdin, stdout, stderr]


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)

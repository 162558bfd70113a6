"""The server's side of a template in its own process.

For its driver it is a generator. It yields and raises the same as the template, and an exception
that the driver throws arrives in the template. A cancellation is passed on; a process that does not
end then is killed.
"""

import asyncio
import contextvars
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hud_mcp import errors
from hud_mcp.environment.prompt import Answer
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.template import Template
from hud_mcp.errors import EnvironmentFailed, HudMcpError
from hud_mcp.plugins.hud.workspace import frames
from hud_mcp.plugins.hud.workspace.frames import Place
from hud_mcp.session.log import pass_on
from hud_mcp.session.session_end import RaisedApart, SessionOver
from hud_mcp.values.grade import Grade

logger = logging.getLogger(__name__)

_CANCEL_S = 0.7
"""Seconds that a cancelled template has for its cleanup; a driver waits one second."""
_END_S = 2.0
_STATUS_S = 1.0
_LINE_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024


_KEY = "the launcher of templates"
_LAUNCHER_S = 2.0
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hud_mcp.plugins.hud.workspace.runner import main; main()"
)


class Launched:
    """A template's process that was started. Its owner closes it.

    `life` has the exit status after the end. Closing it kills the process and everything that the
    process started.
    """

    def __init__(self) -> None:
        self.control, self._their_control = socket.socketpair()
        self.life, self._their_life = socket.socketpair()
        self.output, self._their_output = os.pipe()

    @property
    def theirs(self) -> list[int]:
        """The descriptors of the process."""
        return [self._their_control.fileno(), self._their_output, self._their_life.fileno()]

    def close_theirs(self) -> None:
        """Close this process's copies of them."""
        self._their_control.close()
        self._their_life.close()
        os.close(self._their_output)

    def close(self) -> None:
        """End the process; the user of `control` closes that."""
        self.life.close()
        os.close(self.output)


class Launcher:
    """Starts templates' processes, which all need the modules of `preload`. Made by `of`."""

    def __init__(self, preload: Sequence[str]) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter
                [sys.executable, "-P", "-c", _START, json.dumps(sys.path), json.dumps(preload)],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    @classmethod
    async def of(cls, shared: Shared, preload: Sequence[str]) -> "Launcher":
        """Return the launcher of this process; replace one that has ended."""

        async def open_one() -> Launcher:
            return cls(preload)

        found = await shared.get(_KEY, open_one)
        if found._process.poll() is not None:  # noqa: SLF001  # its own class
            logger.error("the launcher of templates has ended; another one is started")
            shared.forget(_KEY, found)
            await found.close()
            found = await shared.get(_KEY, open_one)
        return found

    def launch(self, plan: Mapping[str, Any], namespaces: Sequence[int]) -> Launched:
        """Start a process for a plan, in namespaces whose descriptors the caller keeps.

        EnvironmentFailed says that it cannot be started.
        """
        plan_fd = os.memfd_create("hud-mcp")
        launched = Launched()
        try:
            here = {"environ": dict(os.environ), "cwd": str(Path.cwd()), "path": sys.path}
            whole = {**plan, **here}
            with open(plan_fd, "wb", closefd=False) as file:
                file.write(json.dumps(whole).encode())
            os.lseek(plan_fd, 0, os.SEEK_SET)
            socket.send_fds(self._ours, [b"1"], [plan_fd, *launched.theirs, *namespaces])
        except OSError as exc:
            launched.close()
            launched.control.close()
            raise EnvironmentFailed(
                f"A template's process could not be started: {exc.strerror}. Start a new task."
            ) from exc
        finally:
            os.close(plan_fd)
            launched.close_theirs()
        return launched

    async def close(self) -> None:
        """Start no more processes; running ones go on. It may be called twice."""
        self._ours.close()
        if self._process.poll() is None:
            try:
                await asyncio.wait_for(asyncio.to_thread(self._process.wait), _LAUNCHER_S)
            except TimeoutError:
                self._process.kill()
        self._process.wait()


class TemplateProcess(AsyncGenerator[Any, Any]):
    """One template in its process. Nothing runs before its first step."""

    def __init__(
        self,
        template: Template,
        *,
        source: Path,
        args: Mapping[str, Any],
        context: Mapping[str, Any],
        place: Place,
    ) -> None:
        self._template = template
        self._source = source
        self._args = args
        self._given_context = context
        self._place = place
        self._launched: Launched | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._outcome: asyncio.Future[dict[str, Any]] | None = None
        self._early: dict[str, Any] | None = None
        self._over: dict[str, Any] | None = None
        self._owner: asyncio.Task[Any] | None = None
        self._graded = False
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._printed = b""
        self._made: list[str] = []
        self._closed = False
        self._ended = asyncio.Event()

    # The methods of a generator.

    async def __anext__(self) -> Any:
        """Go on to the next yield."""
        return await self.asend(None)

    async def asend(self, value: Any, /) -> Any:
        """Begin, or hand over the answer, or go on after the grade."""
        if self._launched is None:
            await self._start()
            return await self._next(None)
        if self._graded:
            return await self._next({"op": "finish"})
        raw = value.raw if isinstance(value, Answer) else value
        return await self._next({"op": "answer", "raw": raw})

    async def athrow(
        self,
        typ: type[BaseException] | BaseException,
        *_rest: Any,
    ) -> Any:
        """Tell the template that its session is over, or go on after it was cut off by itself."""
        if isinstance(typ, SessionOver):
            return await self._next({"op": "over", "text": str(typ)})
        if isinstance(typ, asyncio.CancelledError):
            return await self._next({"op": "go_on"})
        raise typ

    async def aclose(self) -> None:
        """End the process and everything that it started. It may be called twice."""
        if self._closed or self._launched is None:
            self._closed = True
            return
        self._closed = True
        for call in self._calls.values():
            call.cancel()
        try:
            if self._over is not None and not self._ended.is_set():
                await self._status(_END_S)  # it has a moment for what it does at its exit
        finally:
            await self._kill()

    # The process.

    async def _start(self) -> None:
        if frames.is_inside():
            raise EnvironmentFailed(
                f"{self._source} starts sessions while it loads. Put that code under "
                "`if __name__ == '__main__':`."
            )
        if not self._source.is_file():
            raise EnvironmentFailed(
                f"Environment {self._template.env!r} is in no file, but a template with a "
                "workspace runs in another process, which loads it. Put it into a file, or "
                "give the template a parameter annotated with ShellWorld."
            )
        place = self._place
        launcher = await Launcher.of(place.shared, [place.stand_in.partition(":")[0]])
        namespaces = list(place.namespaces()) if place.namespaces is not None else []
        try:
            self._launched = launcher.launch(
                {
                    "source": str(self._source),
                    "environment": self._template.env,
                    "template": self._template.id,
                    "where": self._template.where,
                    "args": dict(self._args),
                    "context": dict(self._given_context),
                    "root": str(place.root),
                    "places": [str(each) for each in place.places],
                    "owner": place.owner,
                    "follow_links": place.follow_links,
                    "stand_in": place.stand_in,
                },
                namespaces,
            )
        finally:
            for fd in namespaces:
                os.close(fd)
        self._owner = asyncio.current_task()
        reader, self._writer = await asyncio.open_connection(sock=self._launched.control)
        loop = asyncio.get_running_loop()
        os.set_blocking(self._launched.output, False)
        context = contextvars.copy_context()
        loop.add_reader(self._launched.output, context.run, self._read_output)
        self._listening = loop.create_task(self._listen(reader))

    async def _next(self, frame: Mapping[str, Any] | None) -> Any:
        """Send a frame to the process, and return the next value that its template yields.

        If this call is cancelled, so is the template; a process that does not end then is killed.
        """
        self._outcome = asyncio.get_running_loop().create_future()
        early, self._early = self._early or self._over, None
        if early is not None:
            self._outcome.set_result(early)
        elif frame is not None:
            self._write(frame)
        try:
            outcome = await self._outcome
        except asyncio.CancelledError:
            await self._cancel()
            raise
        finally:
            self._outcome = None
        return self._read(outcome)

    def _read(self, outcome: Mapping[str, Any]) -> Any:
        if outcome["op"] == "prompt":
            return frames.PROMPT.validate_python(outcome["prompt"])
        if outcome["op"] == "grade":
            self._graded = True
            return outcome["grade"] and Grade.model_validate(outcome["grade"])
        if outcome["op"] == "ended":
            raise StopAsyncIteration
        if outcome["op"] == "over":
            raise SessionOver
        if outcome["op"] == "cancelled":
            raise asyncio.CancelledError
        raised = RaisedApart(outcome["kind"], outcome["described"])
        kind = getattr(errors, outcome["kind"], None) if outcome["known"] else None
        if isinstance(kind, type) and issubclass(kind, HudMcpError):
            raise kind(outcome["text"]) from raised
        raise raised

    async def _cancel(self) -> None:
        """Cancel the template, and kill its process if that does not end it."""
        ended = self._outcome = asyncio.get_running_loop().create_future()
        self._write({"op": "cancel"})
        for call in self._calls.values():
            call.cancel()
        try:
            await asyncio.wait({ended}, timeout=_CANCEL_S)
        finally:
            self._outcome = None
            if not ended.done():
                logger.warning("a template that does not listen is killed")
                await self._kill()

    async def _kill(self) -> None:
        self._over = self._over or self._lost(None)
        launched = self._launched
        if launched is None:
            return
        if not self._ended.is_set():
            self._read_output()
            self._ended.set()
            asyncio.get_running_loop().remove_reader(launched.output)
            if self._writer is not None:
                self._writer.transport.abort()
            launched.close()
        if self._listening is not None:
            self._listening.cancel()
        while self._made:
            await asyncio.to_thread(shutil.rmtree, self._made.pop(), ignore_errors=True)

    def _write(self, frame: Mapping[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frames.pack(frame))

    # Its frames.

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while (frame := await frames.read(reader)) is not None:
            op = frame["op"]
            if op == "call":
                call = asyncio.create_task(self._call(frame))
                self._calls[frame["id"]] = call
                call.add_done_callback(lambda _, number=frame["id"]: self._calls.pop(number, None))
            elif op == "uncall":
                if (call := self._calls.get(frame["id"])) is not None:
                    call.cancel()
            elif op == "made":
                self._made.append(frame["path"])
            elif op == "cut_off":
                self._cut_off()
            else:
                self._come_out(frame)
        if self._over is None:
            self._come_out(self._lost(await self._status(_STATUS_S)))

    def _cut_off(self) -> None:
        """Tell the driver that the template ended its wait by itself, and waits for no answer."""
        if self._outcome is None and self._over is None and self._owner is not None:
            self._owner.cancel()

    def _come_out(self, outcome: dict[str, Any]) -> None:
        self._read_output()
        if outcome["op"] not in ("prompt", "grade"):
            self._over = outcome
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(outcome)
        else:
            self._early = outcome  # for the driver's next step

    async def _call(self, frame: Mapping[str, Any]) -> None:
        reply: dict[str, Any] = {"op": "result", "id": frame["id"]}
        try:
            reply["value"] = await self._place.calls[frame["name"]](**frame["arguments"])
        except HudMcpError as exc:
            reply["error"] = {"kind": frames.kind_of(exc), "text": str(exc)}
        except (KeyError, TypeError) as exc:
            reply["error"] = {"kind": "ActionFailed", "text": f"It cannot be called so: {exc}."}
        self._write(reply)

    async def _status(self, within_s: float) -> int | None:
        """Wait for its end, and return its exit status; None if it is unknown."""
        if self._launched is None or self._ended.is_set():
            return None
        life = self._launched.life
        life.setblocking(False)
        try:
            async with asyncio.timeout(within_s):
                said = await asyncio.get_running_loop().sock_recv(life, 1024)
        except (TimeoutError, OSError):
            return None
        return int(json.loads(said)["code"]) if said else None

    def _lost(self, code: int | None) -> dict[str, Any]:
        how = "" if code is None else f" with exit code {code}"
        if code is not None and code < 0:
            how = f", killed by signal {-code}"
        text = f"the template's process ended{how}"
        described = f"{self._template.where}: {text}"
        return {"op": "raised", "kind": "ProcessEnded", "described": described, "known": False}

    # Its prints.

    def _read_output(self) -> None:
        """Log whole lines; the rest waits for the end of its line, or of the process."""
        if self._launched is None:
            return
        while True:
            try:
                data = os.read(self._launched.output, _CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                if not self._ended.is_set():
                    asyncio.get_running_loop().remove_reader(self._launched.output)
                lines, self._printed = [self._printed], b""
                self._log(lines if lines[0] else [])
                return
            *lines, self._printed = (self._printed + data).split(b"\n")
            self._log(lines)
            if len(self._printed) > _LINE_BYTES:
                self._log([self._printed])
                self._printed = b""

    def _log(self, lines: list[bytes]) -> None:
        for line in lines:
            pass_on(line.decode("utf-8", "replace"))

"""The program of a template's process: it loads the author's file, and runs one template.

The server decides the times: it sends the answer, the end or the cancellation. The task that owns
the generator owns nothing else, as in the server's process.
"""

import asyncio
import atexit
import contextlib
import contextvars
import importlib
import itertools
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hud_mcp import errors
from hud_mcp.environment.agent_data import begin_grading, blame
from hud_mcp.environment.prompt import read_prompt
from hud_mcp.environment.template import Template
from hud_mcp.environment.world import current_world
from hud_mcp.errors import (
    BrokenByAgent,
    EnvironmentFailed,
    HudMcpError,
    InvalidTemplate,
    broken_world,
    failed_by,
)
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.workspace import frames
from hud_mcp.plugins.hud.workspace.forks import Mounts, serve_forks
from hud_mcp.plugins.hud.workspace.frames import OpenedFiles
from hud_mcp.session.session_end import SessionOver, describe_failure
from hud_mcp.values.grade import read_grade

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.workspace.spec import Workspace


logger = logging.getLogger(__name__)


def main() -> None:
    """Fork for templates; the program of `Launcher`."""
    serve_forks(run)


def run(plan: Mapping[str, Any], control: socket.socket, mounts: Mounts | None) -> int:
    """Run a template to its end, and return the process's exit code.

    `mounts` has the allowed changes of the view; None allows none.
    """
    frames.note_inside()
    _show_lines()
    try:
        template, root, made = _load(plan, mounts)
    except BaseException as exc:  # noqa: BLE001  # every error of an author's file is reported
        frames.send_now(control, _failure(exc, plan["where"]))
        return 1
    if made is not None:
        frames.send_now(control, {"op": "made", "path": str(made)})
    asyncio.run(_Runner(plan, template, root, mounts).serve(control))
    # An author's own, such as what stops a program that the file has started.
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]  # the process ends without them
    return 0


def _failure(exc: BaseException, where: str, broken: BrokenByAgent | None = None) -> dict[str, Any]:
    """Return the frame of an exception, or of the agent's fault that caused it."""
    shown = broken or broken_world(exc) or exc
    is_known = isinstance(shown, HudMcpError)
    return {
        "op": "raised",
        "kind": frames.kind_of(shown) if is_known else type(shown).__name__,
        "text": str(shown),
        "known": is_known,
        "described": describe_failure(exc, where),
    }


class _Runner:
    """Runs one template, with the folder `root` by its name in this process's file."""

    def __init__(
        self, plan: Mapping[str, Any], template: Template, root: Path, mounts: Mounts | None
    ) -> None:
        self._plan = plan
        self._template = template
        self._root = root
        self._mounts = mounts
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        self._writer: asyncio.StreamWriter
        self._world: Any
        self._driver: asyncio.Task[None] | None = None
        self._stopped = False
        self._opened: OpenedFiles | None = None

    async def serve(self, control: socket.socket) -> None:
        reader, self._writer = await asyncio.open_connection(sock=control)
        self._writer.transport.set_write_buffer_limits(0)
        context = contextvars.Context()
        self._world = self._stand_in()
        context.run(current_world.set, self._world)
        loop = asyncio.get_running_loop()
        self._driver = loop.create_task(self._drive(), context=context)
        listening = loop.create_task(self._listen(reader))
        await asyncio.wait({self._driver, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not self._driver.done():
            self._driver.cancel()
            await asyncio.wait({self._driver})
        listening.cancel()
        self._writer.close()

    def _stand_in(self) -> Any:
        module, _, name = str(self._plan["stand_in"]).partition(":")
        named = [(str(self._root), str(self._plan["root"]))] if self._is_elsewhere else []
        return getattr(importlib.import_module(module), name)(self._call, named)

    @property
    def _is_elsewhere(self) -> bool:
        return str(self._root) not in self._plan["places"]

    # The server's words.

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while (frame := await frames.read(reader)) is not None:
            if frame["op"] == "result":
                self._finish_call(frame)
            elif frame["op"] == "cancel":
                self._stopped = True
                if self._driver is not None:
                    self._driver.cancel()
            else:
                self._inbox.put_nowait(frame)

    async def _tell(self, frame: Mapping[str, Any]) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what was printed before is logged before
        self._writer.write(frames.pack(frame))
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        number = next(self._numbers)
        answer = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            await self._tell({"op": "call", "id": number, "name": name, "arguments": arguments})
            return await answer
        except asyncio.CancelledError:
            await self._tell({"op": "uncall", "id": number})
            raise
        finally:
            del self._calls[number]

    def _finish_call(self, frame: Mapping[str, Any]) -> None:
        answer = self._calls.get(frame["id"])
        if answer is None or answer.done():
            return
        if "error" in frame:
            kind = getattr(errors, frame["error"]["kind"], EnvironmentFailed)
            answer.set_exception(kind(frame["error"]["text"]))
        else:
            answer.set_result(frame["value"])

    # The template.

    async def _drive(self) -> None:
        """Own the generator, from before its first statement to after its last."""
        where, noun = self._template.where, self._template.noun
        try:
            generator = self._template.run(self._plan["args"], None, self._plan["context"])
            try:
                value = await anext(generator)
            except StopAsyncIteration:
                raise InvalidTemplate(f"{where}: {noun} ended without yielding a prompt.") from None
            prompt = read_prompt(value, where=where)
            self._hand_over()
        except (Exception, SystemExit, BaseExceptionGroup, asyncio.CancelledError) as exc:  # noqa: BLE001  # told to the server, which attributes it
            await self._fail(exc)
            return
        await self._tell({"op": "prompt", "prompt": frames.PROMPT.dump_python(prompt, mode="json")})
        try:
            message = await self._inbox.get()
        except asyncio.CancelledError as exc:
            if self._stopped:
                return
            # A timeout or a task group that the template holds across its yield has fired.
            cancelled = exc
            await self._tell({"op": "cut_off"})
            message = await self._let_go()
            if message is None:
                return
        else:
            cancelled = None
        if message["op"] == "over":
            over = SessionOver(message["text"])
            await self._resume(lambda: generator.athrow(over), must_end=True)
            return
        begin_grading("" if cancelled is not None else message["raw"])
        if cancelled is not None:
            graded = await self._resume(lambda: generator.athrow(cancelled))
        else:
            answer = self._template.read_answer(message["raw"])
            graded = await self._resume(lambda: generator.asend(answer))
        if graded and (await self._inbox.get())["op"] == "finish":
            await self._resume(lambda: anext(generator), must_end=True)

    async def _let_go(self) -> dict[str, Any] | None:
        """Wait for the server's next frame after the template was cut off; None at the end."""
        while not self._stopped:
            with contextlib.suppress(asyncio.CancelledError):
                return await self._inbox.get()
        return None

    async def _resume(
        self, resume: Callable[[], Awaitable[Any]], *, must_end: bool = False
    ) -> bool:
        """Let the template go on, report its next yield, and return whether it yielded.

        If `must_end` is set, the template must end instead of yielding a grade.
        """
        try:
            value = await resume()
            grade = None if must_end else read_grade(value, where=self._template.where)
        except StopAsyncIteration:
            await self._tell({"op": "ended"})
        except (Exception, SystemExit, BaseExceptionGroup, asyncio.CancelledError) as exc:  # noqa: BLE001  # the same
            await self._fail(exc)
        else:
            await self._tell({"op": "grade", "grade": grade and grade.model_dump(fallback=str)})
            return True
        return False

    async def _fail(self, exc: BaseException) -> None:
        if isinstance(exc, asyncio.CancelledError):
            await self._tell({"op": "cancelled", "stopped": self._stopped})
        elif isinstance(exc, SessionOver):
            await self._tell({"op": "over"})
        else:
            await self._tell(_failure(exc, self._template.where, self._broken(exc)))

    def _broken(self, exc: BaseException) -> BrokenByAgent | None:
        """Return the agent's fault in an error that the template met while it read the folder."""
        if self._opened is None:
            return None
        isolated = self._mounts is not None
        broken = self._world.broken_by_agent(
            failed_by(exc), self._places, str(self._plan["root"]), isolated=isolated
        )
        if broken is not None:
            return broken
        found = blame(exc, self._opened.contents())
        return found if isinstance(found, BrokenByAgent) else None

    @property
    def _places(self) -> list[Path]:
        return [*(Path(place) for place in self._plan["places"]), self._root]

    def _hand_over(self) -> None:
        """Leave the folder to the agent, and trust nothing in it from now on."""
        inside = self._places
        if (owner := self._plan["owner"]) is not None:
            _give(inside[0], owner)
        sys.path[:] = _outside(sys.path, inside)
        for module in list(sys.modules.values()):
            if isinstance(places_of := getattr(module, "__path__", None), list):
                module.__path__ = _outside(cast("list[str]", places_of), inside)
        self._opened = OpenedFiles(inside)
        if self._mounts is None:
            return
        follow = self._plan["follow_links"]
        if follow is None:
            follow = _has_links(inside[0])
        if not follow and not self._mounts.follow_no_links(inside):
            logger.warning("links in the folder are followed: this kernel cannot refuse to")
        self._mounts.finish()


def _load(plan: Mapping[str, Any], mounts: Mounts | None) -> tuple[Template, Path, Path | None]:
    """Load the author's file, and show the folder at the path that it names.

    It returns the template, the folder, and the temporary folder that the file made for it, if it
    makes a new one each time it is loaded.

    Raises:
        EnvironmentFailed: The file lacks the environment, or its folder cannot be shown.
        HudMcpError: The file cannot be loaded.
    """
    scratch = Path(tempfile.gettempdir())
    before = set(os.listdir(scratch))  # noqa: PTH208  # names, not paths
    found = [e for e in load_environments([plan["source"]]) if e.name == plan["environment"]]
    if not found:
        raise EnvironmentFailed(
            f"{plan['source']} has no environment {plan['environment']!r} when it is loaded in a "
            "template's process. Declare it at the top level of the file."
        )
    environment = found[0]
    template = environment.find_template(plan["template"])
    root = cast("Workspace", environment.world).root
    made = None
    if str(root) not in plan["places"]:
        if mounts is None:
            raise EnvironmentFailed(
                f"{plan['source']} names another folder at each load, but without namespaces "
                "there is only one. Give env.workspace(…) a fixed path."
            )
        made = _made_since(before, scratch, root)
        mounts.show(Path(plan["places"][0]), root)
    return template, root, made


def _made_since(before: set[str], scratch: Path, root: Path) -> Path | None:
    """Return the temporary folder that this process made for a root, or None."""
    if not root.is_relative_to(scratch) or root == scratch:
        return None
    first = root.relative_to(scratch).parts[0]
    return None if first in before else scratch / first


def _give(folder: Path, owner: int) -> None:
    """Give this user's files in a folder to another user, without following links."""
    mine = os.geteuid()
    for _path, folders, names, fd in os.fwalk(folder):
        for name in (".", *folders, *names):
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if found.st_uid == mine:
                    os.chown(name, owner, owner, dir_fd=fd, follow_symlinks=False)


def _has_links(folder: Path) -> bool:
    for _path, folders, names, fd in os.fwalk(folder):
        for name in (*folders, *names):
            if _is_link(name, fd):
                return True
    return False


def _is_link(name: str, fd: int) -> bool:
    try:
        os.readlink(name, dir_fd=fd)
    except OSError:
        return False
    return True


def _outside(places: list[str], folders: list[Path]) -> list[str]:
    def lies_in(place: str) -> bool:
        path = Path(place or ".").resolve()
        return any(path.is_relative_to(folder) for folder in folders)

    return [place for place in places if not lies_in(place)]


def _show_lines() -> None:
    """Write prints by lines, and logs in the form of the server's log."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = open(number, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115  # a descriptor, for as long as the process runs
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Line())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger().setLevel("INFO")


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()} {record.name}: {record.getMessage()}"

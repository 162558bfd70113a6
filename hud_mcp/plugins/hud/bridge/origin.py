"""The server of a HUD environment: at an address, or in a process of ours."""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment, SourceNotFound
from hud_mcp.plugins.hud.wire.streams import Place, read_place

logger = logging.getLogger(__name__)

ANNOUNCEMENT = "HUD_SERVE_PORT="
"""The start of the line on which a HUD server announces its port."""

_ANNOUNCE_S = 90.0
_END_S = 1.0
"""Seconds to wait for its end. Hosts wait no longer for us; the server then ends alone."""

_SUPERVISED = Path(__file__).with_name("supervised.py")


class Address:
    """A HUD server that runs elsewhere, at `tcp://[token@]host:port`."""

    digest = ""

    def __init__(self, url: str) -> None:
        self._place = read_place(url)

    def __str__(self) -> str:
        return str(self._place)

    async def rows(self) -> list[dict[str, Any]] | str:
        """Return an empty list: a server tells only its templates."""
        return []

    async def place(self, *, anew: bool = True) -> Place:  # noqa: ARG002  # it is not ours to start
        """Return its address, which never changes."""
        return self._place

    async def close(self) -> None:
        """Do nothing, because it belongs to others."""


class Spawned:
    """A HUD server in a process of ours. It ends with this process, even if this process is killed.

    Args:
        source: A Python file or a folder; `env.py:name` if the file declares several environments.
        python: The interpreter that has `hud`; by default the one of `hud` on the PATH.

    Raises:
        SourceNotFound: The file or the interpreter does not exist.
    """

    def __init__(self, source: str, python: str | None = None) -> None:
        self._path, self._name = _split(source)
        self._python = _find_python(python)
        self._child: Child | None = None
        self._place: Place | None = None
        self._lock = asyncio.Lock()
        self._last: deque[str] = deque(maxlen=20)
        self._closed = False

    def __str__(self) -> str:
        return f"hud:{self._path}"

    @property
    def digest(self) -> str:
        """The SHA-256 of the file, or of the Python files of the folder."""
        whole = hashlib.sha256()
        files = sorted(self._path.rglob("*.py")) if self._path.is_dir() else [self._path]
        for file in files:
            whole.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
        return whole.hexdigest()

    async def rows(self) -> list[dict[str, Any]] | str:
        """Return the tasks in the file, as HUD's own command finds them."""
        return await read_rows(self._python, self._path, self._folder)

    async def place(self, *, anew: bool = True) -> Place:
        """Return its address, and start it if it does not run; `anew` also if it has ended.

        EnvironmentFailed says that it does not start, or has ended.
        """
        async with self._lock:
            if self._place is not None and self._runs:
                return self._place
            if self._closed or (self._place is not None and not anew):
                raise EnvironmentFailed("The HUD server has ended. Start a new task.")
            self._place = await self._start()
            return self._place

    async def close(self) -> None:
        """Ask the process to end, with everything that it started. It may be called twice.

        If its shutdown hooks take longer than a host waits, it ends alone.
        """
        self._closed = True
        async with self._lock:
            await self._end()

    @property
    def _folder(self) -> Path:
        return self._path if self._path.is_dir() else self._path.parent

    @property
    def _runs(self) -> bool:
        return self._child is not None and self._child.is_running

    async def _start(self) -> Place:
        await self._end()
        self._last.clear()
        named = ["--env", self._name] if self._name else []
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def read(line: str) -> None:
            port_text = line.removeprefix(ANNOUNCEMENT).strip()
            if not port.done() and port_text != line and port_text.isdigit():
                port.set_result(int(port_text))
                return
            self._last.append(line)
            logger.debug("hud: %s", line)

        def give_up() -> None:
            if not port.done():
                port.set_exception(EOFError())

        command = [self._python, "-c", _SUPERVISED.read_text(), str(self._path), *named]
        try:
            self._child = await Child.start(
                command, folder=self._folder, on_line=read, on_silence=give_up
            )
        except OSError as exc:
            raise EnvironmentFailed(f"{self._python} cannot be run: {exc.strerror}.") from exc
        try:
            async with asyncio.timeout(_ANNOUNCE_S):
                return Place("127.0.0.1", await port)
        except TimeoutError:
            await self._end()
            raise EnvironmentFailed(
                f"{self} announced no port within {_ANNOUNCE_S:g} s. {self._said()}"
            ) from None
        except EOFError:
            await self._end()
            raise EnvironmentFailed(f"{self} did not start. {self._said()}") from None
        except BaseException:
            port.cancel()
            await self._end()
            raise

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None and not await child.leave(_END_S):
            logger.info("the HUD server still runs its shutdown hooks, and ends by itself")

    def _said(self) -> str:
        last = next((line for line in reversed(self._last) if line.strip()), "")
        if "No module named 'hud" in last:
            return (
                f"{self._python} has no `hud`; name an interpreter that has it with --python, "
                "such as the one of a virtual environment in which `pip install hud` was "
                "run."
            )
        return f"It said: {last[:500]}" if last else "It said nothing."


Origin = Address | Spawned
"""The server of a HUD environment."""


def read_origin(source: str, python: str | None = None) -> Origin:
    """Read `tcp://host:port` or `hud:path/to/env.py`, or raise ChannelFailed or SourceNotFound."""
    if source.startswith("hud:"):
        return Spawned(source.removeprefix("hud:"), python)
    return Address(source)


def _split(source: str) -> tuple[Path, str | None]:
    path, name = Path(source), None
    if not path.exists() and ":" in source:
        place, _, name = source.rpartition(":")
        path = Path(place)
    if not path.exists():
        raise SourceNotFound(
            f"There is no HUD environment at {source!r}. Name a Python file, such as "
            "hud:path/to/env.py."
        )
    return path.resolve(), name


def _find_python(python: str | None) -> str:
    if python is not None:
        found = shutil.which(python)
        if found is None:
            raise SourceNotFound(f"--python {python}: there is no such program.")
        return str(Path(found).absolute())  # not resolved: a link is what makes it that venv's
    command = shutil.which("hud")
    beside = Path(command).resolve().parent / "python" if command else None
    if beside is None or not beside.exists():
        raise InvalidEnvironment(
            "hud:… needs an interpreter that has `hud`. HUD's SDK needs another version of mcp, "
            "so give it its own virtual environment. Name its interpreter with --python "
            "path/to/venv/bin/python."
        )
    return str(beside)


_LINE_BYTES = 4096
_LOOK_S = 0.02

_left: list[subprocess.Popen[bytes]] = []
"""Processes that still ran when they were left; Python would warn if it collected them."""


class Child:
    """A process of ours in a new session. Made by `start`.

    Its standard input tells it that we live: when that closes, it ends in order.
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
        """Start the process.

        `on_line` gets each line of both outputs; `on_silence` is called at the end.
        """
        child = cls(
            subprocess.Popen(  # noqa: ASYNC220, S603  # it starts at once, and is the caller's
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Signals of this terminal pass it by: it ends when its standard input closes.
                start_new_session=True,
                # It needs no token of ours.
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
        """Ask it to end, wait a while, read its last lines, and return whether it has ended.

        Everything that it started ends with it: here if it has ended, else by itself.
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


# HUD's server tells only templates. The interpreter that has `hud` reads the file again for the
# tasks beside them, such as `tasks = [count(word="x")]`.
_ROWS_S = 90.0
_ROWS_BYTES = 16 * 1024 * 1024
_ROWS_MARK = "HUD_MCP_ROWS="
_READER = f"""
import json, os, sys
told = os.dup(1)
os.dup2(2, 1)
from hud.eval import Taskset
rows = [
    {{"slug": slug, "env": row.env, "id": row.id, "args": row.args, "columns": row.columns,
     "verified": row.verifier is not None}}
    for slug, row in Taskset.from_file(sys.argv[1]).items()
]
with os.fdopen(told, "w") as out:
    out.write("{_ROWS_MARK}" + json.dumps(rows, default=str))
sys.stderr.flush()
os._exit(0)  # whatever the file has begun
"""


async def read_rows(python: str, path: Path, folder: Path) -> list[dict[str, Any]] | str:
    """Return the rows of a file or folder as HUD reads them, or the reason why this fails."""
    process = await asyncio.create_subprocess_exec(
        python,
        "-c",
        _READER,
        str(path),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if not k.startswith("HUD_MCP_")},
    )
    try:
        async with asyncio.timeout(_ROWS_S):
            told, said = await process.communicate()
    except TimeoutError:
        return f"reading them took longer than {_ROWS_S:g} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    text = told[:_ROWS_BYTES].decode("utf-8", "replace")
    if process.returncode or not text.startswith(_ROWS_MARK):
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        logger.debug("the rows of %s: %s", path, said)
        return lines[-1][:300] if lines else "its interpreter said nothing"
    try:
        return cast("list[dict[str, Any]]", json.loads(text.removeprefix(_ROWS_MARK)))
    except ValueError as exc:
        return f"they are no JSON: {exc}"

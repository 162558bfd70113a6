"""The processes of this program: its command, its servers as children, and the signals that end it.

A child gets no token in its environment, which other processes of this user read in `/proc` while
it runs. Its own token goes over its standard input.
"""

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import FrameType
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from hud_mcp.base.secrets import hidden_for_children
from hud_mcp.errors import EnvironmentFailed

logger = logging.getLogger(__name__)


_SECRETS = ("OPERATOR_TOKEN", "TOKEN", "CHANNEL_TOKEN", "METRICS_TOKEN", "REPLICA_SECRET",
            "OAUTH_PASSCODE", "VIEW_TOKEN")  # fmt: skip
TOKENS = frozenset(f"HUD_MCP_{each}" for each in _SECRETS)
"""Variables of this process that no child of it is given."""

STOP_S = 10.0
"""The time that a server has to end in order, before it is killed."""

_LOG_CHARS = 2000


def child_environment() -> dict[str, str]:
    """Return the environment of a child: this process's without tokens, with the hidden paths."""
    return {k: v for k, v in os.environ.items() if k not in TOKENS} | hidden_for_children()


def make_secret_file(path: Path, secret: str) -> Path:
    """Write a file that nobody but this user may read, and return its path."""
    path.touch(mode=0o600)
    path.write_text(secret)
    return path


@dataclass(frozen=True)
class OwnServer:
    """The start of `hud-mcp`, or of a module, as a child process.

    Attributes:
        arguments: The arguments of `hud-mcp`, or of `module`.
        log: The open file that takes its standard error; None for this process's own.
        variables: Variables beside those of `child_environment`.
        module: The module that the child runs.
    """

    arguments: Sequence[str]
    log: IO[Any] | None
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    module: str = "hud_mcp"

    @property
    def command(self) -> list[str]:
        """The program and its arguments. `-P` keeps the folder at hand out of its imports."""
        return [sys.executable, "-P", "-m", self.module, *self.arguments]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the child, whole."""
        return child_environment() | dict(self.variables)

    def log_end(self) -> str:
        """Return the end of its log, for an error; empty if the log cannot be read."""
        if self.log is None:
            return ""
        with suppress(OSError, ValueError):
            self.log.flush()
        try:
            return Path(self.log.name).read_text(errors="replace")[-_LOG_CHARS:].strip()
        except (OSError, TypeError):
            return ""

    def popen(
        self,
        *,
        stdin: int,
        stdout: int | IO[Any],
        bufsize: int = -1,
        pass_fds: Sequence[int] = (),
        leads_session: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start the server for a program that waits; it may lead a session, away from Ctrl-C."""
        return subprocess.Popen(  # noqa: S603  # this program
            self.command,
            stdin=stdin,
            stdout=stdout,
            stderr=self.log,
            env=self.environment,
            bufsize=bufsize,
            pass_fds=pass_fds,
            start_new_session=leads_session,
        )

    @asynccontextmanager
    async def running(
        self, *, token: str | None = None, stop_s: float = STOP_S
    ) -> AsyncGenerator[Process]:
        """Start the server, and end it in order when the block ends, or kill it after `stop_s`.

        Its standard input, whose first line is its token, closes when this process dies, so that
        the server ends too. It leads a session of its own: Ctrl-C is for this process, which then
        ends it.
        """
        process = await anyio.open_process(
            self.command,
            stdin=subprocess.PIPE,
            stderr=self.log,
            env=self.environment,
            start_new_session=True,
        )
        async with ended_in_order(process, within_s=stop_s):
            if token is not None and process.stdin is not None:
                # A server that has died already is found out by who reads from it.
                with suppress(anyio.BrokenResourceError, BrokenPipeError):
                    await process.stdin.send(f"{token}\n".encode())
            yield process

    async def read_announced(self, process: Process, prefix: str, *, within_s: float) -> str:
        """Return the rest of the first line of output with a prefix; `drain` takes what follows.

        Raises:
            EnvironmentFailed: No such line came in time; the text has the end of the log.
        """
        if process.stdout is not None:
            text = ""
            with anyio.move_on_after(within_s):
                async for chunk in TextReceiveStream(process.stdout):
                    text += chunk
                    for line in text.splitlines(keepends=True):
                        if line.startswith(prefix) and line.endswith("\n"):
                            return line.removeprefix(prefix).strip()
        raise self.did_not_start()

    def did_not_start(self, reason: object = "") -> EnvironmentFailed:
        """Return the error of a server that did not start, with the end of its log."""
        said = f": {reason}" if reason else ""
        return EnvironmentFailed(f"The server did not start{said}.\n{self.log_end()}")


async def drain(process: Process) -> None:
    """Read and drop the rest of a process's output: a full pipe would stop it."""
    if process.stdout is not None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for _ in process.stdout:
                pass


@asynccontextmanager
async def ended_in_order(process: Process, *, within_s: float = STOP_S) -> AsyncGenerator[None]:
    """End a process when the block ends: asked first, and killed if it does not end in time.

    The process has ended afterwards, also if the block is cancelled.
    """
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
                with anyio.move_on_after(within_s):
                    await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()


def own_command() -> list[str]:
    """Return the command of this installation, with an absolute path.

    In a temporary environment of `uvx`, that is `uvx` with the same package. The environment is in
    a cache, which may be emptied.
    """
    package = distribution("hud-mcp")
    uvx = shutil.which("uvx")
    if uvx is not None and _is_in_a_cache(Path(sys.prefix)):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return [uvx, "--python", version, "--from", _origin(package), "hud-mcp"]
    name = "hud-mcp.exe" if sys.platform == "win32" else "hud-mcp"
    started = Path(sys.argv[0])
    if started.name == name and started.is_file():
        return [str(started.absolute())]
    script = Path(sysconfig.get_path("scripts"), name)
    return [str(script)] if script.is_file() else [sys.executable, "-m", "hud_mcp"]


def shown_command(*arguments: str) -> str:
    """Return the shortest command for people."""
    program, *first = own_command()
    found = shutil.which("hud-mcp")
    is_named = not first and found is not None and Path(found).samefile(program)
    return " ".join([*(["hud-mcp"] if is_named else [program, *first]), *arguments])


def _is_in_a_cache(prefix: Path) -> bool:
    """Whether an environment lies in a cache; source: bford.info/cachedir."""
    return any((each / "CACHEDIR.TAG").is_file() for each in prefix.parents)


def _origin(package: Distribution) -> str:
    """Return the origin of this package in the form for installers; source: PEP 610."""
    text = package.read_text("direct_url.json")
    if text is None:
        return f"hud-mcp=={package.version}"
    said: dict[str, Any] = json.loads(text)
    url = str(said["url"])
    if "vcs_info" in said:
        return f"{said['vcs_info']['vcs']}+{url}@{said['vcs_info']['commit_id']}"
    return url2pathname(urlsplit(url).path) if url.startswith("file:") else url


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a process to end in order."""


@contextmanager
def stop_signals(
    on_signal: Callable[[signal.Signals], None], *, patience: int | None = None
) -> Generator[None]:
    """Take SIGINT and SIGTERM while the body runs, in an event loop.

    On another thread it takes no signal: the owner of the main thread gets them, and ends the body.
    After `patience` signals, the next one ends the process at once, even if the loop is blocked.
    The status is 128 plus its number.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    count = 0

    # Not loop.add_signal_handler: its callbacks wait for a loop that may be blocked.
    def receive(number: int, frame: FrameType | None) -> None:
        del frame
        nonlocal count
        count += 1
        if patience is not None and count > patience:
            os._exit(128 + number)
        loop.call_soon_threadsafe(on_signal, signal.Signals(number))

    before = {number: signal.signal(number, receive) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def interruptible() -> Generator[None]:
    """Let SIGINT raise `KeyboardInterrupt` in the body, which gives the event loop no turn.

    On another thread than the main one it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


_WITHIN_S = 1.85
"""The longest end; the rest of two seconds is for the system to clean up."""
_LAST_S = 0.1
"""The time for the last lines and the end of other processes."""
_TIDY_S = 0.4
"""The time after which the machine counts as busy, and the interpreter may not tidy up either."""


class Deadline:
    """The end of a process: in order if that is quick enough, else at once.

    The records until then stand: the store writes whole steps. A session whose end is not recorded
    goes on in the next server, as after a kill. `kill` ends the child processes, on another thread.
    """

    def __init__(self, kill: Callable[[], None], *, within_s: float = _WITHIN_S) -> None:
        self._kill = kill
        self._within_s = within_s
        self._began_s: float | None = None
        self._code = 0

    def begin(self, code: int) -> None:
        """Set the deadline and the exit status once; a second call changes nothing."""
        if self._began_s is not None:
            return
        self._began_s, self._code = time.monotonic(), code
        timer = threading.Timer(self._within_s, self._expire)
        timer.name, timer.daemon = "end of the process", True
        timer.start()

    def finish(self) -> None:
        """Note that everything is closed. If little time is left, the process ends here."""
        if self._began_s is not None and time.monotonic() - self._began_s > _TIDY_S:
            self._leave()

    def _expire(self) -> None:
        # Writing may wait for a lock of a thread that gets no processor.
        threading.Timer(_LAST_S, self._leave).start()
        logger.warning("the process ends after %.2f s, although not all is closed", self._within_s)
        try:
            self._kill()
        finally:
            self._leave()

    def _leave(self) -> None:
        sys.stderr.flush()
        os._exit(self._code)

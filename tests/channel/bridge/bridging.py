"""Real HUD servers in processes of their own, ways to them that break, and their bridges."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from waiting import PATIENCE_S, until, wait_until

from hud_mcp.plugins.hud.bridge import bridge
from hud_mcp.plugins.hud.bridge.environment import BridgedEnvironment
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.session.session import Session
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser.chromium import find_chromium

HERE = Path(__file__).resolve().parent
QUESTIONS = HERE / "environments" / "questions.py"
WORKBENCH = HERE / "environments" / "workbench.py"
PAGES = HERE / "environments" / "pages.py"
DESKTOP = HERE / "environments" / "desktop.py"
ROBOTS = HERE / "environments" / "robots.py"
SILENT = HERE / "environments" / "silent.py"
ME = Caller(connection="test")


# ------------------------------------------------------------------------------ HUD's servers


@dataclass
class HudServer:
    """HUD's own server in a process of its own.

    Attributes:
        notes: A folder in which its templates leave word.
    """

    process: subprocess.Popen[bytes]
    port: int
    notes: Path

    @property
    def url(self) -> str:
        """Where it is."""
        return f"tcp://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait(PATIENCE_S)


def hud_environment(notes: Path) -> dict[str, str]:
    """HUD's SDK without an account, and with nothing of ours on its path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    kept["CHROMIUM"] = find_chromium() or "chromium"
    kept["CHROMIUM_HEADFUL"] = shutil.which("chromium") or "chromium"
    return {**kept, "HUD_TELEMETRY_ENABLED": "false", "CI": "1", "NOTES": str(notes)}


@contextmanager
def hud_server(python: Path, source: Path, folder: Path, port: int = 0) -> Iterator[HudServer]:
    """Serve an environment as HUD does, and kill it at the end if it still runs."""
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    with (folder / "hud.log").open("ab") as errors:
        process = subprocess.Popen(
            [str(python), "-m", "hud.environment.server", str(source), "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=hud_environment(notes),
        )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"HUD_SERVE_PORT="):
                yield HudServer(process, int(line.partition(b"=")[2]), notes)
                break
        else:
            raise AssertionError((folder / "hud.log").read_text())
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class Relay:
    """A way to a server that can break: what goes through it is dropped, or held up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self.port = 0
        self.count = 0

    @property
    def url(self) -> str:
        """Its own address."""
        return f"tcp://127.0.0.1:{self.port}"

    def drop(self) -> None:
        """Break every connection."""
        for writer in self._open:
            writer.transport.abort()

    def freeze(self) -> None:
        """Say nothing any more, and break nothing."""
        self._flows.clear()

    def thaw(self) -> None:
        """Say what was held up, and go on."""
        self._flows.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        self.count += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, far_writer}
        pair = [
            asyncio.ensure_future(self._pipe(reader, far_writer)),
            asyncio.ensure_future(self._pipe(far_reader, writer)),
        ]
        self._tasks.update(pair)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(pair)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                await self._flows.wait()
                writer.write(chunk)
        writer.close()

    def end(self) -> None:
        """Let go of everything."""
        self.drop()
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def relay(port: int) -> AsyncIterator[Relay]:
    """Put a relay before a port."""
    found = Relay(port)
    server = await asyncio.start_server(found.carry, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        found.end()


# ------------------------------------------------------------------------------------ bridges


@dataclass
class Bridged:
    """A bridge and the sessions that run over it."""

    environment: BridgedEnvironment
    sessions: Sessions
    store: Path
    held: list[Session] = field(default_factory=list)

    async def start(self, template: str, /, **arguments: Any) -> Session:
        """Start a session."""
        task = self.sessions.catalogue.mint(template, arguments)
        with anyio.fail_after(PATIENCE_S):
            return await self.sessions.start(task, caller=ME)

    async def find(self, session_id: str) -> Session | Receipt:
        """A session by its id, also one that another process began."""
        with anyio.fail_after(PATIENCE_S):
            return await self.sessions.find(session_id, ME)

    async def use(self, session: Session, tool: str, /, **arguments: Any) -> str:
        """Call a tool, and return what it says."""
        with anyio.fail_after(PATIENCE_S):
            found = self.environment.tools[tool]
            stepped = await session.call_tool(found, arguments, Look(text=False))
        return stepped.result.observation.text or ""

    async def record(self, session: Session) -> Trajectory:
        """What the store has of a session."""
        return await self.sessions.store.load_trajectory(session.trajectory_id)


async def graded(session: Session, answer: str) -> Receipt:
    """Answer, and return the receipt of whatever comes of it."""
    with anyio.fail_after(PATIENCE_S):
        receipt = await session.respond(answer)
    assert receipt is not None
    return receipt


async def ending(session: Session) -> Receipt:
    """Wait for the end of a session, and return its receipt."""
    with anyio.fail_after(PATIENCE_S):
        await session.closed()
    assert session.receipt is not None
    return session.receipt


@asynccontextmanager
async def bridged(url: str, store: Path, **limits: Any) -> AsyncIterator[Bridged]:
    """Bridge a HUD server in this process."""
    with anyio.fail_after(PATIENCE_S):
        environment = await bridge(url)
    sessions = Sessions([environment], store=Store(store), limits=Limits(**limits))
    try:
        yield Bridged(environment, sessions, store)
    finally:
        with anyio.CancelScope(shield=True):
            await sessions.close()
            await environment.close()


async def written(path: Path) -> str:
    """Wait for a file that another process writes, and return what it says."""
    return await until(lambda: path.exists() and path.read_text())


def wait_gone(pid: int) -> None:
    """Wait until a process has ended."""
    wait_until(lambda: _has_ended(pid), said=lambda: f"{pid} is alive")


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

"""Programs in sandboxes of their own, and a home that only its owner reads."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from running_servers import WritePublishing
from waiting import PATIENCE_S

from hud_mcp.plugins.servers import copies
from hud_mcp.plugins.servers.program import Program
from hud_mcp.sandbox import Finished, Sandbox, SandboxOptions

Run = Callable[..., Awaitable[Finished]]
FILE = """
from hud_mcp import Capability, Environment

env = Environment("notes", capabilities=[
    Capability.mcp(name="Notes", url={url!r}, auth_token={token!r}, transport={transport!r}),
])


@env.template(description="Add a note")
async def add_note(note: str = "tea"):
    answer = yield f"Add the note {{note!r}}, and say how many there are."
    yield float(answer == "1")


tasks = [add_note()]
"""


@pytest.fixture(scope="session")
def stage() -> Iterator[Path]:
    """The folder of root's copies, which other users can enter; the interpreter is copied once."""
    folder = Path(tempfile.mkdtemp(prefix="hud-mcp-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(tmp_path: Path, stage: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of mode 0700 with something private, and a cache of its own."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / "private.txt").write_text("only its owner reads this")
    monkeypatch.setattr(copies, "STAGE", stage)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    return folder


@pytest.fixture
async def start(machine: None) -> Run:
    """Run a program, or a command beside it, in a sandbox that has its places alone."""

    async def start_it(
        program: Program, command: list[str] | None = None, *, stdin: bytes = b""
    ) -> Finished:
        with anyio.fail_after(PATIENCE_S):
            sandbox = await Sandbox.open(SandboxOptions(readonly=program.mounts))
            try:
                return await sandbox.run(command or list(program.argv), stdin=stdin, timeout_s=50)
            finally:
                await sandbox.close()

    return start_it


@pytest.fixture
def write_publishing(tmp_path: Path) -> WritePublishing:
    """Write an environment that publishes a server at an address."""

    def write_it(url: str, token: str | None = None, transport: str | None = None) -> str:
        path = tmp_path / "env.py"
        path.write_text(FILE.format(url=url, token=token, transport=transport))
        return str(path)

    return write_it

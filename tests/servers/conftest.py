"""Programs in sandboxes of their own, and a home that only its owner reads."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.plugins.servers import copies
from hud_mcp.plugins.servers.program import Program
from hud_mcp.sandbox import Finished, Sandbox, SandboxOptions

Run = Callable[..., Awaitable[Finished]]


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

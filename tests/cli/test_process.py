"""What commands do to their process: how many files it may have open."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from skips import ELSEWHERE

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason=ELSEWHERE + "limits of another process"
)

ROOT = Path(__file__).resolve().parents[2]
FEW, MOST = 256, 65_536
LIMITED = (
    "import os, resource, sys\n"
    "soft, hard = (int(n) for n in sys.argv[1:3])\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[3:]])\n"
)


def hard_limit() -> int:
    """How many files a child may be allowed here."""
    _, hard = psutil.Process().rlimit(psutil.RLIMIT_NOFILE)
    return MOST if hard == psutil.RLIM_INFINITY else hard


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("command", "announced"),
    [
        (("hud_mcp", "serve", "letter_count", "--http", "127.0.0.1:0"), "HUD_MCP_URL="),
        (("hud_mcp", "channel", "serve", "letter_count"), "HUD_SERVE_PORT="),
        (("hud_mcp.channel", "letter_count"), "HUD_SERVE_PORT="),
        (("hud_mcp", "view", "--port", "0"), "http://127.0.0.1:"),
    ],
    ids=["serve", "channel serve", "the channel's module", "view"],
)
@pytest.mark.parametrize("least", [None, FEW + 1], ids=["usual limits", "a low hard limit"])
def test_a_server_may_have_as_many_files_open_as_the_system_allows(
    command: tuple[str, ...], announced: str, least: int | None, tmp_path: Path
) -> None:
    """Its soft limit becomes the hard one, which stays as it is."""
    hard = least or hard_limit()
    server = subprocess.Popen(
        [sys.executable, "-c", LIMITED, str(FEW), str(hard), "-m", *command],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(ROOT), "HUD_MCP_STORE": str(tmp_path / "store.sqlite3")},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        assert server.stdout.readline().decode().startswith(announced)
        limits = psutil.Process(server.pid).rlimit(psutil.RLIMIT_NOFILE)
        assert limits == (min(hard, MOST), hard)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()

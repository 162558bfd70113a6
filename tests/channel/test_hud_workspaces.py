"""Workspaces of HUD authors' files on our channel, driven by HUD's own client."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wire import ROOT, process

import hud_mcp.graders

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.sandbox,
    pytest.mark.usefixtures("machine"),
    pytest.mark.peers,
]

DRIVER = Path(__file__).resolve().parent / "agents" / "hud_repairs.py"
AUTHORED = ROOT / "tests" / "plugins" / "hud" / "template_process" / "authored"
BOUND_S = 150

Drive = Callable[..., Any]


@pytest.fixture
def drive(hud_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drive:
    """Serves an author's file, and returns what HUD's client saw of it."""
    root = tmp_path / "work"
    for name in ("ROOMS_ROOT", "REPAIR_ROOT"):
        monkeypatch.setenv(name, str(root))
    monkeypatch.setenv("ROOMS_STARTED", str(tmp_path / "started"))

    def run(what: str, source: str) -> Any:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
        quiet = {"HUD_TELEMETRY_ENABLED": "false", "HUD_TELEMETRY_LOCAL_DIR": str(tmp_path)}
        with process(tmp_path / "store.sqlite3", source=AUTHORED / source) as server:
            done = subprocess.run(
                [str(hud_python), str(DRIVER), what, str(server.port)],
                capture_output=True, text=True, timeout=BOUND_S, check=False, cwd=tmp_path,
                env={**kept, **quiet, "HOME": str(tmp_path), "CI": "1"},
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-4000:] + server.log.read_text()[-4000:]
        assert not list(root.iterdir()), "the root itself is never written"
        return json.loads((tmp_path / "seen.json").read_text())

    return run


def test_eight_agents_of_hud_are_graded_by_what_lies_at_the_root(drive: Drive) -> None:
    """At once, over its `ssh/2` client: each template reads its own agent's file."""
    seen = drive("work", "rooms.py")
    assert seen["rewards"].pop("coffee") == 0.0
    assert seen["names"].pop("coffee") == ["sub"]
    assert set(seen["rewards"].values()) == {1.0}
    assert len(seen["rewards"]) == 7
    assert set(map(tuple, seen["names"].values())) == {("out.txt", "sub")}


@pytest.mark.skipif(
    not hasattr(hud_mcp.graders, "BashGrader"), reason="BashGrader comes with another change"
)
def test_the_repair_of_a_hud_author_is_graded_for_huds_client(drive: Drive) -> None:
    """Repaired over `ssh/2`, it is worth 1."""
    assert drive("repair", "repairs.py")["rewards"] == [1.0]


def test_the_changes_of_files_are_followed_by_huds_client(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Setup, agent and last changes, each once; no secret, no link, and nothing of no interest."""
    monkeypatch.setenv("HUD_FILE_TRACKING_ENABLED", "true")
    seen = drive("follow", "rooms.py")
    assert seen["binding"] == ["filetracking/1", True]
    (given,) = seen["setup"]["patches"]
    assert (given["path"], given["status"]) == ("sub/given.txt", "added")
    assert given["patch"].splitlines()[-1] == "+given to tea"
    assert [f["path"] for f in seen["snapshot"]["files"]] == ["sub/given.txt"]
    assert len(seen["snapshot"]["files"][0]["content_hash"]) == 64

    changes = {p["path"]: p for p in seen["diff"]["patches"]}
    assert set(changes) == {"out.txt", "sub/given.txt", ".env"}
    assert changes["sub/given.txt"]["status"] == "modified"
    assert "-given to tea\n+changed" in changes["sub/given.txt"]["patch"]
    assert "KEY" not in json.dumps(seen["diff"])
    assert changes[".env"]["content_hash_after"].startswith("redacted:")

    last = {p["path"]: p for p in seen["flush"]["diff"]["patches"]}
    assert set(last) == {"sub/given.txt", "page.html", "big.bin", "b.dat"}
    assert last["sub/given.txt"]["status"] == "deleted"
    assert last["sub/given.txt"]["content_hash_after"] is None
    assert "Too large" in last["big.bin"]["patch"]
    assert "binary" in last["b.dat"]["patch"]
    (page,) = seen["flush"]["capture"]["files"]
    assert (page["path"], page["status"], page["size"]) == ("page.html", "added", 8)
    assert page["file"]["media_type"] == "text/html"
    assert seen["flush"]["capture"]["files_eligible"] == 1
    assert seen["again"]["patches"] == []
    assert seen["advance"] == {"advanced": True}
    assert "unknown method: 'nonsense'" in seen["nonsense"]
    assert seen["over"] in ("RuntimeError", "ConnectionError")

"""A client of the SDK's first generation, which most hosts of today are built on."""

import json
import sys
from pathlib import Path

import anyio
import pytest
from other_python import OtherPython
from peers import BOARD, ROOT, HttpServer, child_environment, serve_arguments
from waiting import PATIENCE_S

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

DRIVER = Path(__file__).resolve().parent / "agents" / "sdk1.py"
OLD = OtherPython(
    name=".venv-mcp1",
    requirements=("mcp<2",),
    check="import importlib.metadata as m; print(m.version('mcp'))",
    version="1.",
    what="a client of mcp<2",
    install_s=180,
)


@pytest.fixture(scope="session")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with `mcp<2`, made once and kept."""
    return OLD.find(tmp_path_factory)


@pytest.mark.parametrize("transport", [pytest.param("stdio", marks=pytest.mark.sample), "http"])
async def test_a_client_of_the_first_sdk_goes_through_a_task(
    transport: str, old_python: Path, server: HttpServer, tmp_path: Path
) -> None:
    """It lists, starts, acts, sees a picture, is told of an error, answers and is graded."""
    if transport == "stdio":
        arguments = serve_arguments((BOARD,), tmp_path / "store.sqlite3")
        # The old SDK passes on only a few variables: the package's place goes by its own one.
        target = ["env", f"PYTHONPATH={ROOT}", sys.executable, *arguments]
    else:
        target = [server.url]
    environment = child_environment()
    del environment["PYTHONPATH"]
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [str(old_python), str(DRIVER), transport, *target], check=False, env=environment
        )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen["sdk"].startswith("1.")
    assert seen["protocol"] == "2025-11-25"
    assert {"start_task", "step", "act", "response", "add_note"} <= set(seen["tools"])
    assert "collect" in seen["prompts"]
    assert seen["step"] == ["text", "image"]
    assert seen["text"] == "marker=old clicks=[] notes=['tea'] typed=''"
    assert seen["error"][0] is True
    assert "Did you mean 'click'?" in seen["error"][1]
    assert seen["prompt"] == "What is 4 + 5?"
    assert seen["reward"] == 1.0
    assert seen["steps"] == 2

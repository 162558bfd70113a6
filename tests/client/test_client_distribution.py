"""The client installs where this project cannot, and brings nothing but what it names."""

import ast
import json
import subprocess
from pathlib import Path

import pytest
from other_python import ROOT, OtherPython
from peers import HttpServer, child_environment
from tables import each_of
from waiting import PATIENCE_S

SOURCES = sorted((ROOT / "client" / "hud_mcp_client").glob("*.py"))
BESIDE = OtherPython(
    name=".venv-client",
    requirements=(str(ROOT / "client"), "mcp<2"),
    check="import hud_mcp_client, importlib.metadata as m; print(m.version('mcp'))",
    version="1.",
    what="the client beside mcp<2",
    install_s=240,
)
PROGRAM = """
import json, sys
from importlib.metadata import requires, version
from hud_mcp_client.sync import connect

with connect(sys.argv[1]) as server, server.start(template="say") as task:
    step = task.step({"type": "custom", "action": "put", "args": {"word": "a"}})
    reward = task.answer("lamp")
try:
    import hud_mcp
except ImportError:
    hud_mcp = None
print(json.dumps({
    "reward": reward, "text": step.observation.text, "mcp": version("mcp"),
    "needs": sorted(requires("hud-mcp-client")), "alone": hud_mcp is None,
}))
"""


@each_of("source", SOURCES, ids=lambda path: path.name)
def test_every_module_is_of_python_3_10(source: Path) -> None:
    """Its syntax is, and it imports nothing of this project."""
    tree = ast.parse(source.read_text(), feature_version=(3, 10))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & {"hud_mcp", "mcp", "mcp_types", "playwright"}


@pytest.mark.peers
def test_it_works_beside_an_sdk_that_this_project_cannot_stand_beside(
    bench: HttpServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A task is stepped and graded from an environment with `mcp<2`."""
    python = BESIDE.find(tmp_path_factory)
    environment = child_environment()
    del environment["PYTHONPATH"]
    done = subprocess.run(
        [str(python), "-c", PROGRAM, bench.url],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=environment,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["mcp"].startswith("1.")
    assert told["needs"] == [
        "anyio>=4.5",
        "httpx>=0.27",
        "pydantic>=2.7",
        "typing-extensions>=4.12",
    ]
    assert told["alone"]
    assert (told["reward"], told["text"]) == (1.0, "words: start a; clicks: []")

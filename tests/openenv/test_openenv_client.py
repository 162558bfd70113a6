"""OpenEnv's own client, unchanged, in an environment of its own."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from other_python import ROOT, OtherPython
from peers import HttpServer, child_environment, http_server
from waiting import PATIENCE_S

pytestmark = pytest.mark.peers

OPENENV = OtherPython(
    name=".venv-openenv",
    requirements=("openenv==0.10.0",),
    check="import openenv, importlib.metadata as m; print(m.version('openenv'))",
    version="0.10.0",
    what="OpenEnv's client",
    install_s=600,
)
MANY = Path(__file__).parent / "agents" / "many.py"


@pytest.fixture(scope="session")
def openenv_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with OpenEnv 0.10.0."""
    return OPENENV.find(tmp_path_factory)


def run(python: Path, program: Path, *arguments: str) -> str:
    """Run a program to its end, away from this project; return what it prints."""
    environment = child_environment()
    del environment["PYTHONPATH"]
    done = subprocess.run(
        [str(python), str(program), *arguments],
        capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S, env=environment,
        cwd=program.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sixteen_of_its_clients_are_graded_at_once(openenv_python: Path, room: HttpServer) -> None:
    """Each is told its own reward, and a call without an episode says to reset."""
    told = json.loads(run(openenv_python, MANY, room.url.removesuffix("/mcp")))
    assert told["version"] == "0.10.0"
    expected = [[None, 1.0 if n % 2 else 0.25, True, True, "light"] for n in range(16)]
    assert told["episodes"] == expected
    assert "Call reset" in told["refused"]


def test_the_program_of_its_page_works(openenv_python: Path, tmp_path: Path) -> None:
    """What docs/openenv.md shows is run with the package that it needs."""
    page = (ROOT / "docs" / "openenv.md").read_text()
    found = re.search(r"```python\n# openenv_episode.py\n(.*?)```", page, re.DOTALL)
    assert found is not None
    with http_server(tmp_path / "server", ["letter_count"], "--openenv") as server:
        program = tmp_path / "openenv_episode.py"
        place = server.url.removesuffix("/mcp")
        program.write_text(found[1].replace("http://127.0.0.1:8000", place))
        printed = run(openenv_python, program)
    assert printed.splitlines() == [
        "How many times does the letter 'r' occur in 'strawberry'?",
        "1.0 True",
    ]

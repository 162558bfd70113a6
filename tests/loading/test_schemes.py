"""A distribution adds a scheme of sources, a public set and a function by an entry point."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

PLUGIN = '''
from hud_mcp import Answer, Environment, Task
from hud_mcp.loading.source import Scheme
from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "lamps",
    sources={"lamp": "lamps:SCHEME"},
    sets={"Lamps": "lamps:SET"},
    functions={"is_bright": "lamps:is_bright"},
)

def load(source):
    env = Environment(source.removeprefix("lamp:"))

    @env.template
    async def ask():
        answer: Answer[str] = yield "Is it bright?"
        yield 1.0

    env.loaded(text=source)
    return [env]

SCHEME = Scheme(load=load, named=lambda name: f"lamp:{name}" if name == "desk" else None)

def is_bright(answer, least: int = 1):
    """1.0 if the answer says bright often enough."""
    return float((answer or "").count("bright") >= least)

class Lamps:
    title, about, page, licence, is_fetched = "Lamps", "lamps", "a shelf", "MIT", False

    def load(self, choice, **_options):
        call = {"function": "is_bright", "args": [2]}
        row = {"id": "one", "gym": "desk", "prompt": "?", "evaluate": call}
        return [Task.model_validate(row)], ()

SET = Lamps()
'''


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of packages with a distribution that adds them."""
    (tmp_path / "lamps.py").write_text(PLUGIN)
    about = tmp_path / "lamps-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lamps\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[hud_mcp]\nlamps = lamps:PLUGIN\n")
    return tmp_path


def command(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `hud-mcp` where that distribution is installed."""
    return subprocess.run(
        [sys.executable, "-m", "hud_mcp", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        cwd=place,
        env={
            **os.environ,
            "PYTHONPATH": str(place),
            "XDG_CACHE_HOME": str(place / "cache"),
            "HUD_MCP_STORE": str(place / "store.sqlite3"),
        },
    )


@pytest.mark.long
def test_a_scheme_of_another_distribution_is_served_and_evaluated(place: Path) -> None:
    """Its environments load, its tasks run, and its functions grade rows."""
    shown = command(place, "functions", "lamp:desk", "--json")
    assert shown.returncode == 0, shown.stderr
    row = {
        "id": "x",
        "env": "desk",
        "prompt": "?",
        "evaluate": {"function": "is_bright", "args": [2]},
    }
    (place / "rows.jsonl").write_text(json.dumps(row))
    done = command(place, "eval", "rows.jsonl", "--env", "lamp:desk", "--agent", "nop")
    assert "over 1 graded of 1 run" in done.stdout, done.stderr
    wrong = {**row, "evaluate": {"function": "is_bright", "args": ["often"]}}
    (place / "rows.jsonl").write_text(json.dumps(wrong))
    done = command(place, "eval", "rows.jsonl", "--agent", "nop")
    assert "is_bright(least=1): least:" in done.stderr + done.stdout


@pytest.mark.long
def test_a_public_set_of_another_distribution_is_listed_and_imported(place: Path) -> None:
    """`taskset list` names it, and `taskset import` writes its rows."""
    listed = command(place, "taskset", "list", "--json")
    assert "Lamps" in [json.loads(line)["name"] for line in listed.stdout.splitlines()]
    done = command(place, "taskset", "import", "lamps", "-o", "lamps.jsonl")
    assert done.returncode == 0, done.stderr
    assert json.loads((place / "lamps.jsonl").read_text())["id"] == "one"


def test_a_source_of_a_scheme_that_nobody_has_is_not_found(place: Path) -> None:
    """The error tells the kinds of sources."""
    done = command(place, "functions", "torch:x")
    assert done.returncode == 1
    assert "There is no environment at 'torch'" in done.stderr

"""Another distribution adds to hud-mcp by an entry point, and nothing here knows of it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from peers import stdio_peer
from waiting import PATIENCE_S

SOURCE = Path(__file__).with_name("lamps")
BROKEN = """
[project]
name = "broken-plugin"
version = "2.0"
[project.entry-points.hud_mcp]
broken = "broken_plugin:PLUGIN"
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
packages = ["broken_plugin"]
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


def install(source: Path, target: Path) -> Path:
    """Install a distribution into a folder, as pip does, without the network."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-index", "--no-deps", "--no-build-isolation", "--target", target, source),
        ],
        check=True,
        timeout=PATIENCE_S,
    )
    return target


@pytest.fixture(scope="module")
def lamps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the distribution is installed."""
    folder = tmp_path_factory.mktemp("lamps")
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    return install(folder / "source", folder / "installed")


@pytest.fixture
def command(lamps: Path, tmp_path: Path) -> Command:
    """Run hud-mcp in an empty folder, beside the distribution and whatever else is installed."""

    def run(*arguments: str, beside: Path | None = None) -> subprocess.CompletedProcess[str]:
        found = [lamps] if beside is None else [lamps, beside]
        return subprocess.run(
            [sys.executable, "-P", "-m", "hud_mcp", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, found)),
                "HUD_MCP_STORE": str(tmp_path / "store.sqlite3"),
                "XDG_CACHE_HOME": str(tmp_path / "cache"),
                "COLUMNS": "120",
            },
        )

    return run


@pytest.mark.long
def test_its_command_is_listed_and_runs(command: Command) -> None:
    """And its errors are told as those of other commands."""
    assert "lamps      Say how many lamps a room has.\n" in command("--help").stdout
    assert command("lamps", "kitchen").stdout == "3 lamps\n"
    refused = command("lamps", "cellar")
    assert refused.returncode == 1
    # Whatever a plugin prints as it loads is kept out of standard output.
    said = "Error: There is no room 'cellar'. The only room is kitchen.\n"
    assert refused.stderr == f"a plugin that prints as it loads\n{said}"
    assert "Did you mean 'lamps'?" in command("lamp").stderr


@pytest.mark.long
def test_its_set_is_played_and_its_function_grades(command: Command, tmp_path: Path) -> None:
    """Its agent solves them; the record of them goes into its own export."""
    (tmp_path / "env.py").write_text('from hud_mcp import Environment\nenv = Environment("room")\n')
    played = command("eval", "Lamps", "--agent", "lamplighter", "--env", "env.py")
    assert played.returncode == 0, played.stdout + played.stderr
    assert "lamp_names(*names)" in command("functions").stdout
    (job,) = [json.loads(line) for line in command("jobs", "--json").stdout.splitlines()]
    done = command("export", job["id"], "--to", "lamp-log", "--out", "lamps.log")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lamps.log").read_text() == "lamp-1 1\nlamp-2 1\n"


@pytest.mark.long
@pytest.mark.anyio
async def test_its_environment_is_served(lamps: Path, tmp_path: Path) -> None:
    """A client of MCP works in its world by the world's own action, and is graded there."""
    async with stdio_peer(tmp_path, ("lamp:kitchen",), env={"PYTHONPATH": str(lamps)}) as peer:
        started = await peer.call("start_task", template="light")
        assert "Switch the lamp on" in started.text
        stepped = await peer.call("step", actions=[{"type": "custom", "action": "press"}])
        assert "The lamp is on." in stepped.text
        graded = await peer.call("response", answer="done")
        assert graded.structured["reward"] == 1.0


def test_its_environment_is_played_in_a_job(command: Command, tmp_path: Path) -> None:
    """By its scheme, from any folder; an unknown room is refused in the plugin's own words."""
    (tmp_path / "rows.jsonl").write_text('{"id": "l1", "env": "kitchen", "template": "light"}\n')
    played = command("eval", "rows.jsonl", "--agent", "lamplighter", "--env", "lamp:kitchen")
    assert played.returncode == 0, played.stdout + played.stderr
    refused = command("eval", "rows.jsonl", "--agent", "lamplighter", "--env", "lamp:cellar")
    assert "There is no room 'cellar'. The only room is kitchen." in refused.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import a_module_that_is_missing", "No module named 'a_module_that_is_missing'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("PLUGIN = {}", "it is a dict, no Plugin"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named_and_harms_no_other(
    command: Command, tmp_path: Path, text: str, fault: str
) -> None:
    """The sentence says which distribution it is of; every other command works."""
    source = tmp_path / "source"
    (source / "broken_plugin").mkdir(parents=True)
    (source / "pyproject.toml").write_text(BROKEN)
    (source / "broken_plugin" / "__init__.py").write_text(f"{text}\n")
    beside = install(source, tmp_path / "installed")
    said = " ".join(command("--help", beside=beside).stdout.split())
    assert (
        "The plugin 'broken' of broken-plugin 2.0 (broken_plugin:PLUGIN) cannot be loaded" in said
    )
    assert fault in said
    assert command("lamps", "kitchen", beside=beside).stdout == "3 lamps\n"

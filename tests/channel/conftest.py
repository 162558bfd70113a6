"""What the tests of the channel share."""

import os
import subprocess
import sys
import venv
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from filelock import FileLock
from wire import ROOT, TALK, Gate, Served, served

from hud_mcp import Environment
from hud_mcp.source import load_environments

INSTALL_S = 400


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], Gate]:
    """Makes places where a template waits."""
    return lambda name: Gate(str(tmp_path / name))


@pytest.fixture
def talk() -> Environment:
    """The environment that most tests serve."""
    return load_environments([str(TALK)])[0]


@pytest.fixture
async def here(talk: Environment, tmp_path: Path) -> AsyncIterator[Served]:
    """It, served in this process."""
    async with served(talk, tmp_path / "store.sqlite3") as running:
        yield running


@pytest.fixture(scope="session")
def hud_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with HUD's SDK, made once and kept.

    `HUD_PYTHON` names one that is there already. HUD pins `mcp<2`, so it cannot live beside us.
    """
    if "HUD_PYTHON" in os.environ:
        return Path(os.environ["HUD_PYTHON"])
    kept = ROOT / ".venv-hud"
    folder = kept if os.access(ROOT, os.W_OK) else tmp_path_factory.mktemp("venv-hud")
    with FileLock(f"{folder}.lock"):  # the suite may run in several processes
        return _with_hud(folder)


def _with_hud(folder: Path) -> Path:
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    program = (
        "import hud.clients, hud.environment.robot, gymnasium\n"
        "import importlib.metadata as m; print(m.version('hud'))"
    )
    check = [str(python), "-c", program]
    if python.exists():
        found = subprocess.run(check, capture_output=True, text=True, check=False)
        if found.returncode == 0 and found.stdout.startswith("0.6."):
            return python
    venv.create(folder, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*install, "hud[robot]>=0.6.21,<0.7", "typer<0.20"],
            capture_output=True, text=True, check=False, timeout=INSTALL_S,
        )  # fmt: skip
        reason = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    except subprocess.TimeoutExpired:
        reason = [f"it took longer than {INSTALL_S} s"]
    if reason is not None:
        pytest.skip(f"NOT TESTED with HUD's own SDK, which cannot be installed: {reason}")
    return python


@pytest.fixture(scope="session")
def robot_python(hud_python: Path) -> Path:
    """The interpreter of HUD's SDK, with what its robots need."""
    check = [str(hud_python), "-c", "import hud.environment.robot, gymnasium"]
    if subprocess.run(check, capture_output=True, check=False).returncode == 0:
        return hud_python
    pytest.skip("NO ROBOT IS TESTED: the interpreter of HUD's SDK lacks `hud[robot]`.")

"""What the tests of the channel share."""

import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from wire import TALK, Gate, Served, served

from hud_mcp import Environment
from hud_mcp.loading.source import load_environments


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
def robot_python(hud_python: Path) -> Path:
    """The interpreter of HUD's SDK, with what its robots need."""
    check = [str(hud_python), "-c", "import hud.environment.robot, gymnasium"]
    if subprocess.run(check, capture_output=True, check=False).returncode == 0:
        return hud_python
    pytest.skip("NO ROBOT IS TESTED: the interpreter of HUD's SDK lacks `hud[robot]`.")

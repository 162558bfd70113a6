"""The surface under the oldest and the newest `mcp` that our own requirement admits."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from other_python import ROOT, OtherPython

pytestmark = pytest.mark.peers

SURFACE = (
    "tests/interaction/test_surface.py",
    "tests/interaction/test_calls.py",
    "tests/interaction/test_answers_given.py",
    "tests/interaction/test_hostile_calls.py",
    "tests/server/test_core_tools.py",
    "tests/server/test_sdk_names.py",
    "tests/server/test_stdio.py",
    "tests/server/test_stdio_client.py",
    "tests/server/test_stdio_descriptors.py",
    "tests/server/test_stdio_endings.py",
)
INSTALL_S, RUN_S = 600, 1200


def admitted() -> tuple[str, str]:
    """The requirement on `mcp` of this project, and the oldest version in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (requirement,) = (r for r in project["dependencies"] if re.match(r"mcp\W", r))
    oldest = re.fullmatch(r"mcp>=([\d.]+),<\d+", requirement)
    assert oldest is not None, requirement
    return requirement, oldest[1]


def python_with(name: str, requirement: str) -> OtherPython:
    """An interpreter with this project, what its tests import, and one version of `mcp`."""
    return OtherPython(
        name=name,
        requirements=(
            "-e",
            str(ROOT),
            requirement,
            "hypothesis",
            "jsonschema",
            "psutil",
            "pytest",
            "pytest-timeout",
        ),
        check=(
            "import hud_mcp, pytest, hypothesis, importlib.metadata as m; print(m.version('mcp'))"
        ),
        version="",
        what=requirement,
        install_s=INSTALL_S,
    )


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_the_surface_is_the_same_under_each_admitted_sdk(
    which: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Lists, calls, errors and both eras over stdio and HTTP pass their own tests there."""
    requirement, oldest = admitted()
    wanted = f"mcp=={oldest}" if which == "oldest" else requirement
    python = python_with(f".venv-mcp-{which}", wanted).find(tmp_path_factory)
    # The environment is kept, and what is newest changes.
    update = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", wanted]
    subprocess.run([python, *update], check=True, timeout=INSTALL_S)
    program = "import importlib.metadata as m; print(m.version('mcp'))"
    asked = [python, "-c", program]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert which == "newest" or version in (oldest, f"{oldest}.0")
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SURFACE],
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_S,
        cwd=ROOT,
        env=_environment(python),
    )
    print(f"mcp {version}: {done.stdout.strip().splitlines()[-1]}")
    assert done.returncode == 0, f"mcp {version}\n{done.stdout}\n{done.stderr}"


def _environment(python: Path) -> dict[str, str]:
    """What the tests see: that interpreter first, and nothing of the one that runs these."""
    left_out = ("PYTEST_", "VIRTUAL_ENV", "PYTHONPATH")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    return {**kept, "PATH": f"{python.parent}{os.pathsep}{kept['PATH']}"}

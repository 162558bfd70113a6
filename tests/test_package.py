"""What is installed is whole: environments and tasksets come with the wheel."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_shipped_environments_and_tasksets_are_found_in_an_installed_package(
    wheel: Path, tmp_path: Path
) -> None:
    """`hud-mcp serve browser` works from an installed package: its files lie under hud_mcp."""
    program = (
        "import hud_mcp.loading.source as s; from hud_mcp import load_taskset; import asyncio; "
        "print(s.__file__); print(*s.shipped_environments()); "
        "print(*[e.name for e in s.load_environments(['letter_count', 'browser'])]); "
        "print(len(asyncio.run(load_taskset('quickstart'))))"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); {program}"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    where, shipped, loaded, count = done.stdout.splitlines()
    assert where.startswith(str(wheel))
    assert shipped.split() == [
        "agentbench-os",
        "browser",
        "gaia",
        "hud-browser",
        "hud-shell",
        "intercode",
        "letter_count",
        "mcp-filesystem",
        "mcp-local",
        "miniwob",
        "office",
        "osworld",
        "qa",
        "questions",
        "reasoning-gym",
        "servers",
        "service",
        "shell",
        "tau2",
        "web",
        "webarena",
        "webvoyager",
    ]
    assert loaded.split() == ["letter_count", "browser"]
    assert int(count) >= 24


def test_the_wheel_has_everything_that_a_page_or_a_type_checker_reads(wheel: Path) -> None:
    """Templates of the report, sites and the typing marker are package data."""
    for name in (
        "hud_mcp/py.typed",
        "hud_mcp/plugins/view/web/assets/report.html",
        "hud_mcp/taskset_data/README.md",
        "hud_mcp/environments/browser/env.py",
    ):
        assert (wheel / name).is_file(), name
    assert list((wheel / "hud_mcp/environments/browser/sites").rglob("*.html"))

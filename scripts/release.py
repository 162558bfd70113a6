"""Build what is published, check it, and say the commands that upload it. Nothing is uploaded.

Usage: release.py, run by an interpreter that has hatchling and twine.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import anyio

from hud_mcp import __version__
from hud_mcp.plugins.install.client import Entry, kept_variables
from hud_mcp.plugins.install.install import try_entry

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PLACES = {"hud_mcp": "hud_mcp", "environments": "hud_mcp/environments"} | {
    "taskset_data": "hud_mcp/taskset_data"
}
"""Folders of the project, and where the wheel has them."""


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command; end with its status where it fails."""
    done = subprocess.run([str(each) for each in command], cwd=folder, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def missing(wheel: Path) -> Iterator[str]:
    """Files of the project that a wheel should have, and has not."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    listed = subprocess.run(
        ["git", "ls-files", *PLACES],  # noqa: S607  # whichever git there is
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        first, _, rest = name.partition("/")
        if f"{PLACES[first]}/{rest}" not in inside:
            yield name


def try_wheel(wheel: Path) -> None:
    """Install a wheel where nothing else is, and have a task graded with it."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        binaries = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        run(binaries / "python", "-m", "pip", "install", "--quiet", wheel)
        command = str(binaries / "hud-mcp")
        own = {**kept_variables([command]), "HUD_MCP_STORE": str(Path(folder, "store.sqlite3"))}
        (trial,) = anyio.run(try_entry, Entry(command, ["serve", "letter_count"], own))
    print(f"Graded with the wheel alone: {trial.task}.")


def main() -> str | None:
    """Build and check; what is wrong, for people."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    sdist, wheel = sorted(DIST.glob("hud_mcp-*"), key=lambda path: path.suffix)
    if __version__ not in wheel.name:
        return f"{wheel.name} is not of version {__version__}: run `make clean`, then try again."
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST, folder=ROOT / "client")
    built = [sdist, wheel, *sorted(DIST.glob("hud_mcp_client-*"))]
    run(sys.executable, "-m", "twine", "check", "--strict", *built)
    if absent := list(missing(wheel)):
        return f"{wheel.name} lacks {', '.join(absent)}."
    try_wheel(wheel)
    names = ", ".join(each.name for each in built)
    print(f"\nThese can be published: {names}. First for a trial, then for all:\n")
    python = os.path.relpath(sys.executable)
    files = " ".join(f"dist/{each.name}" for each in built)
    for place in (" --repository testpypi", ""):
        print(f"    {python} -m twine upload{place} {files}")
    print(f"    git tag v{__version__} && git push origin v{__version__}")
    return None


if __name__ == "__main__":
    sys.exit(main())

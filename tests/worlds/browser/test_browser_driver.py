"""Playwright's driver on a machine that lacks a library of its Node.js: what people read."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from skips import skip_here
from waiting import PATIENCE_S

pytestmark = pytest.mark.browser

Script = Callable[[str], subprocess.CompletedProcess[str]]

OPEN = """
import asyncio
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.world import Opening, Shared
{imports}
async def main():
    shared = Shared()
    try:
        await {call}
    except EnvironmentFailed as exc:
        print(exc)
    await shared.close()
    print(len(asyncio.all_tasks()) - 1)
asyncio.run(main())
"""
BROWSER = OPEN.format(
    imports="from hud_mcp.worlds.browser import Browser",
    call="Browser().open(Opening(shared=shared))",
)
ATTACHED = OPEN.format(
    imports="from hud_mcp.plugins.hud.bridge.screens import attach_browser",
    call="attach_browser('http://127.0.0.1:9', shared)",
)


@pytest.fixture
def without_libatomic(tmp_path: Path) -> Script:
    """Runs a script where that library is not: over its folder lies one in which it was deleted."""
    node = Path(sys.prefix).glob("lib*/python*/site-packages/playwright/driver/node")
    linked = subprocess.run(
        ["ldd", *node], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    found = [line.split()[2] for line in linked if line.split()[0] == "libatomic.so.1"]
    if not found:
        skip_here("Playwright's Node.js is linked without libatomic")
    library = Path(found[0])
    folder = library.parent.resolve()
    upper, work = tmp_path / "upper", tmp_path / "work"
    upper.mkdir()
    work.mkdir()
    hide = (
        f"mount -t overlay overlay -o lowerdir={folder},upperdir={upper},workdir={work} {folder}"
        f" && rm -f {folder}/libatomic.so.1"
    )
    namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    tried = subprocess.run([*namespace, hide], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        skip_here(f"no namespace to hide a library in: {tried.stderr.strip()}")

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = [*namespace, f'{hide} && exec "$@"', "sh", sys.executable, "-c", script]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    return run


@pytest.mark.long
@pytest.mark.parametrize("script", [BROWSER, ATTACHED], ids=["our own", "of others"])
def test_a_driver_without_its_library_is_told_with_the_command(
    without_libatomic: Script, script: str
) -> None:
    """Not that a connection was closed; and nothing keeps running."""
    done = without_libatomic(script)
    manager = next((m for m in ("apt-get", "dnf") if shutil.which(m)), None)
    package = {"apt-get": "libatomic1", "dnf": "libatomic"}.get(manager or "")
    remedy = f"run `{manager} install {package}`" if manager else "install the package that has it"
    assert done.stdout == (
        "Playwright's driver does not start. Its Node.js needs libatomic.so.1: "
        f"{remedy}, then try again.\n0\n"
    ), done.stderr
    assert "Traceback" not in done.stderr
    assert "never retrieved" not in done.stderr


def test_a_driver_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A Node.js that was named in the environment, and cannot be started."""
    named = {**os.environ, "PLAYWRIGHT_NODEJS_PATH": str(tmp_path / "node")}
    done = subprocess.run(
        [sys.executable, "-c", BROWSER],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=named,
    )  # fmt: skip
    told, tasks = done.stdout.splitlines()
    assert told.startswith("Playwright's driver does not start. It said: Cannot launch Node.js")
    assert str(tmp_path / "node") in told
    assert tasks == "0"

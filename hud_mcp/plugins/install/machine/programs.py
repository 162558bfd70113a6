"""Looking at programs: Python, Playwright's driver, Chromium, and the sandbox's."""

import platform
import shutil
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio

from hud_mcp import __version__
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.install.machine.need import BUBBLEWRAP, Finding, Need
from hud_mcp.plugins.install.machine.packages import PackageManager
from hud_mcp.plugins.install.machine.platforms import SYSTEM, is_wsl1
from hud_mcp.sandbox import Sandbox, SandboxOptions
from hud_mcp.worlds.browser.chromium import Chromium, browser_advice, find_chromium, sandbox_problem
from hud_mcp.worlds.browser.driver import driver_complaint, missing_library, package_of

__all__ = ["command_for", "look_at_browser", "look_at_python", "look_at_sandbox"]

_VERSION_BOUND_S = 10


def command_for(need: Need) -> str:
    """What a person types to install something."""
    manager = PackageManager.find()
    packages = manager.choose([need]) if manager is not None else []
    if manager is None or not packages:
        return f"Install {need.what}."
    return f"Run `{manager.command(packages)}`."


def look_at_python() -> Finding:
    """The interpreter, and the system that it runs on."""
    said = (
        f"{platform.python_version()} ({sys.executable}), hud-mcp {__version__}, "
        f"{SYSTEM} {platform.machine()}"
    )
    if SYSTEM == "Windows":
        return Finding.lack(
            "Python", said, "Run hud-mcp in WSL 2; see docs/install.md.", needed=True
        )
    return Finding.ok("Python", said)


async def look_at_browser(*, needed: bool) -> AsyncGenerator[Finding]:
    """The driver, really started; then a Chromium, with a page that draws.

    Args:
        needed: Whether something cannot be run without.
    """
    complaint = await driver_complaint()
    if complaint is not None:
        library = missing_library(complaint)
        manager, package = package_of(library) if library else (None, None)
        do = f"Run `{manager} install {package}`." if manager else "Install what it names."
        first = next((line.strip() for line in complaint.splitlines() if line.strip()), "nothing")
        said = f"Node.js does not start: {f'it needs {library}' if library else first[:200]}"
        yield Finding.lack("Playwright's driver", said, do, needed=needed)
        yield Finding.lack(
            "Chromium", "cannot be tried without the driver", "Repair that first.", needed=needed
        )
        return
    yield Finding.ok("Playwright's driver", "Node.js starts")
    do = browser_advice()
    try:
        executable = find_chromium()
        chromium = await Chromium.launch(executable)
    except EnvironmentFailed as exc:
        yield Finding.lack("Chromium", str(exc).removesuffix(do).strip(), do, needed=needed)
        return
    try:
        renderer = await chromium.renderer()
        problem = sandbox_problem()
        without = f"; without its own sandbox, as {problem}" if problem else ""
        place = executable or "Playwright's own"
        yield Finding.ok("Chromium", f"{chromium.version} starts ({place}){without}")
        yield (
            Finding.ok("GL", f"pages draw with {renderer}")
            if renderer
            else Finding.lack(
                "GL", "pages have no WebGL", "Only pages that use it need it.", needed=False
            )
        )
    except EnvironmentFailed as exc:
        yield Finding.lack("Chromium", str(exc), do, needed=needed)
    finally:
        await chromium.close()


async def look_at_sandbox(*, needed: bool) -> AsyncGenerator[Finding]:
    """Bubblewrap, and a sandbox, really opened.

    Args:
        needed: Whether something cannot be run without.
    """
    if SYSTEM != "Linux" or is_wsl1():
        do = "Shells need Linux, WSL 2 or the image; see docs/install.md."
        yield Finding.lack("bubblewrap", f"does not exist on {SYSTEM}", do, needed=needed)
        return
    program = shutil.which("bwrap")
    if program is None:
        yield Finding.lack("bubblewrap", "is not installed", command_for(BUBBLEWRAP), needed=needed)
        return
    with anyio.fail_after(_VERSION_BOUND_S):
        done = await anyio.run_process([program, "--version"], check=False)
    version = done.stdout.decode(errors="replace").strip()
    yield Finding.ok("bubblewrap", f"{version or 'unknown version'} ({program})")
    try:
        sandbox = await Sandbox.open(SandboxOptions())
    except EnvironmentFailed as exc:
        do = _open_namespaces() or "Shells need them; other environments do not."
        yield Finding.lack("user namespaces", str(exc), do, needed=needed)
        return
    await sandbox.close()
    yield Finding.ok("user namespaces", "a sandbox opens")


def _open_namespaces() -> str:
    """The setting that keeps users from making namespaces, and its change."""
    for setting, closed, opened in (
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ):
        file = Path("/proc/sys", *setting.split("."))
        if file.is_file() and file.read_text(encoding="utf-8").strip() == closed:
            return f"Run `sysctl {setting}={opened}` as root."
    return ""

"""The examination of a machine: its browser, sandbox, store, ports, fonts, extras and clock."""

import os
import platform
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import anyio

from hud_mcp import base
from hud_mcp.base.listening import LOOPBACK, listen, port_of
from hud_mcp.errors import EnvironmentFailed, HudMcpError
from hud_mcp.plugins.install.packages import (
    BUBBLEWRAP,
    FONTS,
    OPENGL,
    Finding,
    Need,
    PackageManager,
)
from hud_mcp.plugins.install.platforms import SYSTEM, is_wsl1, refusal
from hud_mcp.record.place import default_store_url
from hud_mcp.registry import service
from hud_mcp.sandbox import Sandbox, SandboxOptions
from hud_mcp.store import opened_store
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.browser.chromium import Chromium, browser_advice, find_chromium, sandbox_problem
from hud_mcp.worlds.browser.driver import driver_complaint, missing_library, package_of
from hud_mcp.worlds.shell.spec import Shell

EXTRA = "extra "
"""The beginning of the names of findings about optional parts of the package."""
OPENGL_FINDING = "MuJoCo's OpenGL"

_MIB = 1024 * 1024
_LEAST_FREE_BYTES = 500 * _MIB
_CONNECT_S = 5.0
_MOST_APART_S = 5.0
_DAY_S = 86_400
_FONTS = {
    "linux": ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts"),
    "darwin": ("/System/Library/Fonts", "/Library/Fonts"),
    "win32": ("C:/Windows/Fonts",),
}
_EXTRA = re.compile(r"^(?P<package>[A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"](?P<extra>[^'\"]+)")
_OF_DEVELOPERS = frozenset({"test", "check", "docs", "release"})


async def _look_at_store(url: str | None) -> Finding:
    """Open the record, in its usual place without a URL, and look at the room on its disk."""
    place = url or default_store_url()
    try:
        async with opened_store(url) as store:
            # What reads makes nothing: a folder that is not there yet is tried by its parent.
            if store.exists:
                await store.list_jobs(1)
    except HudMcpError as exc:
        do = "Name another in --store or HUD_MCP_STORE."
        return Finding.lack("store", str(exc), do, needed=True)
    if "://" in place:
        return Finding.ok("store", "the database answers")
    return _look_at_folder(Path(place))


def _look_at_folder(file: Path) -> Finding:
    folder = next(each for each in file.absolute().parents if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        do = "Let this user write there, or name another in --store or HUD_MCP_STORE."
        return Finding.lack("store", f"{folder}: {exc.strerror}", do, needed=True)
    free = shutil.disk_usage(folder).free
    said = f"{file}, {free // _MIB} MB free"
    if free < _LEAST_FREE_BYTES:
        return Finding.lack("store", said, "Free space, or name another place.", needed=True)
    return Finding.ok("store", said)


def _look_at_ports() -> Finding:
    """Check whether a server can be reached on this machine, as sites and live pages must be."""
    try:
        with listen(LOOPBACK, 0) as listener:
            socket.create_connection((LOOPBACK, port_of(listener)), _CONNECT_S).close()
    except (HudMcpError, OSError) as exc:
        do = f"Let programs of this machine connect to {LOOPBACK}."
        return Finding.lack("ports", str(exc), do, needed=True)
    return Finding.ok("ports", f"any free one on {LOOPBACK}")


def look_at_fonts(*, needed: bool) -> Finding:
    """Check whether pages can draw text."""
    kind = "linux" if sys.platform.startswith("linux") else sys.platform
    places = [Path(each).expanduser() for each in _FONTS.get(kind, _FONTS["linux"])]
    files = [
        file
        for place in places
        for file in (place.rglob("*") if place.is_dir() else ())
        if file.suffix.lower() in (".ttf", ".otf", ".ttc", ".pfb")
    ]
    if not files:
        said = "none, so pictures of pages have no text"
        return Finding.lack("fonts", said, _command_for(FONTS), needed=needed)
    return Finding.ok("fonts", f"{len(files)} files")


def _look_at_opengl() -> Generator[Finding]:
    if not _is_installed("mujoco"):
        return
    variable, fault = service("opengl variable"), service("choose opengl")()
    if fault is None:
        yield Finding.ok(OPENGL_FINDING, f"{os.environ[variable]} draws")
    else:
        do = "" if variable in os.environ else _command_for(OPENGL)
        yield Finding.lack(OPENGL_FINDING, fault, do, needed=False)


def look_at_clock() -> Finding:
    """Check whether the clock can be right, and the file system's agrees with it."""
    now = time.time()
    installed = Path(base.__file__).stat().st_mtime
    with tempfile.NamedTemporaryFile() as file:
        apart = abs(Path(file.name).stat().st_mtime - time.time())
    shown = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC"
    do = "Set the clock: leases of sessions and certificates are read by it."
    if now + _DAY_S < installed:
        return Finding.lack("clock", f"{shown} is before this was installed", do, needed=True)
    if apart > _MOST_APART_S:
        said = f"{shown}; the file system's is {apart:.0f} s apart"
        return Finding.lack("clock", said, do, needed=True)
    return Finding.ok("clock", shown)


def _look_at_extras(wanted: Iterable[str] = ()) -> Generator[Finding]:
    needed = set(wanted)
    packages: dict[str, list[str]] = {}
    for requirement in metadata.requires("hud-mcp") or ():
        found = _EXTRA.match(requirement)
        if found and found["extra"] not in _OF_DEVELOPERS and found["package"] != "hud-mcp":
            names = packages.setdefault(found["extra"], [])
            if found["package"] not in names:  # named once, whatever else its extra brings
                names.append(found["package"])
    for extra, names in packages.items():
        missing = [name for name in names if not _is_installed(name)]
        if missing:
            do = f"Run `pip install 'hud-mcp[{extra}]'`."
            said = f"without {', '.join(missing)}"
            yield Finding.lack(f"{EXTRA}{extra}", said, do, needed=extra in needed)
        else:
            yield Finding.ok(f"{EXTRA}{extra}", ", ".join(names))


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


_VERSION_BOUND_S = 10


def _command_for(need: Need) -> str:
    manager = PackageManager.find()
    packages = manager.choose([need]) if manager is not None else []
    if manager is None or not packages:
        return f"Install {need.what}."
    return f"Run `{manager.command(packages)}`."


def _look_at_python() -> Finding:
    said = (
        f"{platform.python_version()} ({sys.executable}), hud-mcp {base.__version__}, "
        f"{SYSTEM} {platform.machine()}"
    )
    if SYSTEM == "Windows":
        return Finding.lack(
            "Python", said, "Run hud-mcp in WSL 2; see docs/install.md.", needed=True
        )
    return Finding.ok("Python", said)


async def _look_at_browser(*, needed: bool) -> AsyncGenerator[Finding]:
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


async def _look_at_sandbox(*, needed: bool) -> AsyncGenerator[Finding]:
    if SYSTEM != "Linux" or is_wsl1():
        do = "Shells need Linux, WSL 2 or the image; see docs/install.md."
        yield Finding.lack("bubblewrap", f"does not exist on {SYSTEM}", do, needed=needed)
        return
    program = shutil.which("bwrap")
    if program is None:
        yield Finding.lack(
            "bubblewrap", "is not installed", _command_for(BUBBLEWRAP), needed=needed
        )
        return
    with anyio.fail_after(_VERSION_BOUND_S):
        done = await anyio.run_process([program, "--version"], check=False)
    told = done.stdout.decode(errors="replace").strip()
    yield Finding.ok("bubblewrap", f"{told or 'unknown version'} ({program})")
    try:
        sandbox = await Sandbox.open(SandboxOptions())
    except EnvironmentFailed as exc:
        do = _open_namespaces() or "Shells need them; other environments do not."
        yield Finding.lack("user namespaces", str(exc), do, needed=needed)
        return
    await sandbox.close()
    yield Finding.ok("user namespaces", "a sandbox opens")


def _open_namespaces() -> str:
    """Return the advice that lets users make namespaces; empty if no setting forbids it."""
    for setting, closed, opened in (
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ):
        file = Path("/proc/sys", *setting.split("."))
        if file.is_file() and file.read_text(encoding="utf-8").strip() == closed:
            return f"Run `sysctl {setting}={opened}` as root."
    return ""


async def examine(environments: Iterable[Any], store: str | None) -> AsyncGenerator[Finding]:
    """Yield the findings about everything that environments may need.

    A missing thing that one of these environments needs is a failure.
    """
    served = list(environments)
    worlds = [each.world for each in served]
    needs_browser = any(isinstance(world, Browser) for world in worlds)
    needs_shell = any(
        isinstance(world, Shell) and world.options.isolation == "bwrap" for world in worlds
    )
    yield _look_at_python()
    async for finding in _look_at_browser(needed=needs_browser):
        yield finding
    yield look_at_fonts(needed=needs_browser)
    async for finding in _look_at_sandbox(needed=needs_shell):
        yield finding
    for finding in _look_at_opengl():
        yield finding
    yield await _look_at_store(store)
    yield _look_at_ports()
    yield look_at_clock()
    draws = service("gymnasium declaration")
    wanted = ["gymnasium"] if any(isinstance(world, draws) for world in worlds) else []
    for finding in _look_at_extras(wanted):
        yield finding
    for name, there in service("find servers")(served):
        do = "" if there else "Run `hud-mcp doctor --fix` with the same sources."
        found = Finding.ok(name, "installed") if there else None
        yield found or Finding.lack(name, "not installed", do, needed=True)
    for environment in served:
        if (why := refusal(environment.world)) is not None:
            yield Finding.lack(f"environment {environment.name}", why, "", needed=True)

"""Looking at what every server uses: the store, a port, fonts, extras, the clock."""

import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import hud_mcp
from hud_mcp.base.listening import LOOPBACK, listen, port_of
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.gymnasium.world.opengl import OPENGL_VARIABLE, choose_opengl
from hud_mcp.plugins.install.machine.need import FONTS, OPENGL, Finding
from hud_mcp.plugins.install.machine.programs import command_for
from hud_mcp.record.place import default_store_url
from hud_mcp.store import Store

__all__ = [
    "EXTRA",
    "OPENGL_FINDING",
    "look_at_clock",
    "look_at_extras",
    "look_at_fonts",
    "look_at_opengl",
    "look_at_ports",
    "look_at_store",
]

EXTRA = "extra "
"""How the name of a finding begins that is about an optional part of the package."""
OPENGL_FINDING = "MuJoCo's OpenGL"
"""How the finding is called that says what MuJoCo draws with."""

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


async def look_at_store(url: str | None) -> Finding:
    """The record, really opened; and the room that it has.

    Args:
        url: Where it is; the usual place where it is None.
    """
    place = url or default_store_url()
    store = Store(url)
    try:
        # What reads makes nothing: a folder that is not there yet is tried by the file's parent.
        if store.exists:
            await store.list_jobs(1)
    except HudMcpError as exc:
        do = "Name another in --store or HUD_MCP_STORE."
        return Finding.lack("store", str(exc), do, needed=True)
    finally:
        await store.close()
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


def look_at_ports() -> Finding:
    """Whether a server can be reached on this machine: sites and live pages are."""
    try:
        with listen(LOOPBACK, 0) as listener:
            socket.create_connection((LOOPBACK, port_of(listener)), _CONNECT_S).close()
    except (HudMcpError, OSError) as exc:
        do = f"Let programs of this machine connect to {LOOPBACK}."
        return Finding.lack("ports", str(exc), do, needed=True)
    return Finding.ok("ports", f"any free one on {LOOPBACK}")


def look_at_fonts(*, needed: bool) -> Finding:
    """Whether pages can draw text.

    Args:
        needed: Whether something cannot be run without.
    """
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
        return Finding.lack("fonts", said, command_for(FONTS), needed=needed)
    return Finding.ok("fonts", f"{len(files)} files")


def look_at_opengl() -> Generator[Finding]:
    """What MuJoCo draws with, where it is installed; without, its environments have no screen."""
    if not _is_installed("mujoco"):
        return
    fault = choose_opengl()
    if fault is None:
        yield Finding.ok(OPENGL_FINDING, f"{os.environ[OPENGL_VARIABLE]} draws")
    else:
        do = "" if OPENGL_VARIABLE in os.environ else command_for(OPENGL)
        yield Finding.lack(OPENGL_FINDING, fault, do, needed=False)


def look_at_clock() -> Finding:
    """Whether the clock can be right, and the file system's agrees with it."""
    now = time.time()
    installed = Path(hud_mcp.__file__).stat().st_mtime
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


def look_at_extras(wanted: Iterable[str] = ()) -> Generator[Finding]:
    """The optional packages, by the extra that brings them.

    Args:
        wanted: Those that something cannot be run without.
    """
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

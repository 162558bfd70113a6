"""The folders of the machine that a sandbox shows, and the covers of hidden paths in them.

It shows only those folders of /usr in which packages install their programs. Images of containers
keep an application in /usr/src or /usr/local, and its files may tell the answers.
"""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from hud_mcp.base.secrets import hidden_paths
from hud_mcp.errors import EnvironmentFailed

OWN = "/run/hud-mcp"
"""The folder inside for this package's own files."""
PYTHON = f"{OWN}/python"
PYTHON_NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"

_IN_ROOT = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_IN_USR = (*_IN_ROOT, "games", "include", "libexec", "share")
_IN_LOCAL = ("bin", "sbin", "lib", "lib32", "lib64", "games", "include", "libexec", "share")
_SHARED = frozenset({"site-packages", "dist-packages"})
"""Folders of shared modules, which programs inside need."""


@cache
def system_folders() -> tuple[Path, ...]:
    """Return the folders of the system by their names inside; some are links."""
    named = [
        *(Path("/", name) for name in _IN_ROOT),
        *(Path("/usr", name) for name in _IN_USR),
        *(Path("/usr/local", name) for name in _IN_LOCAL),
    ]
    return tuple(path for path in named if path.is_dir())


def shown_folders() -> dict[str, Path]:
    """Return each folder of the machine that every sandbox shows, by its path inside."""
    found = {str(path): path for path in system_folders() if not path.is_symlink()}
    prefix = bound_prefix()
    return found if prefix is None else {**found, f"{PYTHON}/lib": prefix / "lib"}


def agents_may_read(path: Path) -> bool:
    """Return whether sandboxes show a file or folder of the machine, and nothing covers it."""
    whole = path.resolve()
    if any(whole.is_relative_to(each) for each in _hidden()):
        return False
    return any(whole.is_relative_to(folder.resolve()) for folder in shown_folders().values())


def cover(shown: Mapping[str, Path]) -> list[str]:
    """Return bubblewrap's arguments that cover hidden paths in shown folders, by paths inside.

    It is an `EnvironmentFailed` if programs need the folder of a hidden path.
    """
    hidden = _hidden()
    arguments: list[str] = []
    for guest, folder in shown.items():
        real = str(folder.resolve())
        inside = [path for path in hidden if f"{path}/".startswith(f"{real}/")]
        for path in _outermost(inside):
            place = f"{guest}{path[len(real) :]}"
            # A cover would take the modules from every program inside.
            if path == real or Path(path).name in _SHARED:
                raise EnvironmentFailed(
                    f"The folder shown at {place} contains the file of an environment, a taskset, "
                    "a record or a token. An agent could read it. Move that file to a folder of "
                    "its own, such as one in /srv."
                )
            arguments += _covered(place, Path(path))
    return arguments


def _hidden() -> list[str]:
    # This package too: it knows the answers of tasks.
    return sorted({*hidden_paths(), str(Path(str(files("hud_mcp"))).resolve())})


def _outermost(paths: Sequence[str]) -> list[str]:
    found: list[str] = []
    for path in paths:
        # A cover inside a cover has no place to be mounted at.
        if not any(path.startswith(f"{above}/") for above in found):
            found.append(path)
    return found


def _covered(guest: str, path: Path) -> list[str]:
    if path.is_dir():
        return ["--perms", "0555", "--tmpfs", guest, "--remount-ro", guest]
    # A device of the machine cannot be opened inside.
    return ["--ro-bind", "/dev/null", guest] if path.exists() else []


def inside_python() -> str:
    """Return the path inside of the Python that runs in a sandbox."""
    if bound_prefix() is not None:
        return f"{PYTHON}/bin/{PYTHON_NAME}"
    own = Path(sys.base_prefix, "bin", PYTHON_NAME)
    return str(own) if _is_in_system(own) else "/usr/bin/python3"


@cache
def bound_prefix() -> Path | None:
    """Return this interpreter's installation if it must be shown inside, else None.

    `EnvironmentFailed`: only root can read it, and the system has no other Python.
    """
    prefix = Path(sys.base_prefix).resolve()
    if _is_in_system(prefix / "bin") and _is_in_system(prefix / "lib"):
        return None
    if os.geteuid() != 0 or anyone_may_enter(prefix):
        return prefix
    if Path("/usr/bin/python3").exists():
        return None
    raise EnvironmentFailed(
        f"A sandbox of a server that is root runs as nobody, who cannot read the Python in "
        f"{prefix}. Install Python in /usr (Debian: apt-get install python3), or run the server as "
        "another user."
    )


def _is_in_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in system_folders())


def anyone_may_enter(path: Path) -> bool:
    """Return whether every user may enter a folder, or a file's folder, and all above it."""
    absolute = path.absolute()
    above = absolute.parents if absolute.is_file() else (absolute, *absolute.parents)
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in above)

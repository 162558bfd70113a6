"""Copies of root's own programs, for sandboxes, in which they run as nobody.

Each is made once, in a folder whose name other users of the machine cannot guess.
"""

import contextlib
import hashlib
import logging
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hud_mcp.base import libraries
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.sandbox.shown import anyone_may_enter

logger = logging.getLogger(__name__)

STAGE = Path("/var/tmp")  # noqa: S108  # a folder in it is used only if this user owns it

_MOST_BYTES = 1 << 30
_UNUSED_S = 14 * 86_400
"""Copies that no start has used for so long are removed."""
_COPY_S = 600.0
_NOT_COPIED = shutil.ignore_patterns("test", "config-*")
"""Folders of an interpreter's library that no server needs, and that are half of it."""


@dataclass(frozen=True)
class Place:
    """A file or folder to show; `without` are paths of folders in it that are not shown."""

    source: Path
    without: tuple[str, ...] = ()


def readable_copy(place: Place) -> Path | None:
    """Return a copy of a place that every user can read; None if the place itself is.

    Raises:
        EnvironmentFailed: The place is too large to be copied.
    """
    if os.geteuid() != 0 or _anyone_may_read(place):
        return None
    entries = list(_walk(place))
    size = sum(found.st_size for _, found in entries)
    if size > _MOST_BYTES:
        raise EnvironmentFailed(
            f"{place.source} is part of a server's program. Only root can read it, and it has "
            f"{size >> 20} MiB: too much to copy for a sandbox, which runs as nobody. Open it to "
            "all users, or install the server in a virtual environment of its own."
        )
    newest = max(found.st_mtime_ns for _, found in entries)
    state = f"{place.source}\0{place.without}\0{newest}\0{len(entries)}\0{size}"
    stage = stage_folder()
    copy = stage / hashlib.sha256(state.encode()).hexdigest()[:32]
    with libraries.filelock.FileLock(f"{copy}.lock", timeout=_COPY_S, mode=0o600):
        if not copy.exists():
            text = "Sandboxes run as nobody: %s is copied, once, to %s."
            logger.warning(text, place.source, copy)
            _remove_unused(stage)
            _copy(place, copy.with_suffix(".part"), copy)
        os.utime(copy)
    return copy


def stage_folder() -> Path:
    """Return this user's folder of copies; others may enter what they know the name of.

    Raises:
        EnvironmentFailed: Another user has made it.
    """
    outer = STAGE / f"hud-mcp-servers-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        outer.mkdir(mode=0o711)
    found = outer.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o026:
        raise EnvironmentFailed(f"{outer} belongs to another user, or is open to one. Remove it.")
    outer.chmod(0o711)  # the mask may have closed it
    with libraries.filelock.FileLock(outer / "lock", timeout=_COPY_S, mode=0o600):
        inner = next((each for each in sorted(outer.iterdir()) if each.is_dir()), None)
        if inner is None:
            inner = outer / secrets.token_hex(16)
            inner.mkdir()
            inner.chmod(0o711)
    return inner


def _walk(place: Place) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a place and everything in it; no link is followed."""
    left_out = {str(place.source / name) for name in place.without}
    yield place.source, place.source.lstat()
    for folder, names, files in os.walk(place.source):  # nothing, of a file
        names[:] = [name for name in names if f"{folder}/{name}" not in left_out]
        for name in (*names, *files):
            path = Path(folder, name)
            with contextlib.suppress(FileNotFoundError):  # of a program that writes there just now
                yield path, path.lstat()


def _anyone_may_read(place: Place) -> bool:
    if not anyone_may_enter(place.source):
        return False
    needed = {stat.S_IFDIR: stat.S_IROTH | stat.S_IXOTH, stat.S_IFREG: stat.S_IROTH}
    return all(
        found.st_mode & bits == bits
        for _, found in _walk(place)
        if (bits := needed.get(stat.S_IFMT(found.st_mode), 0))
    )


def _copy(place: Place, part: Path, copy: Path) -> None:
    shutil.rmtree(part, ignore_errors=True)  # of a copy that was broken off
    if place.source.is_dir():
        shutil.copytree(place.source, part, symlinks=True, ignore=partial(_skipped, place))
    else:
        shutil.copy(place.source, part)
    for path, found in _walk(Place(part)):
        if not stat.S_ISLNK(found.st_mode):  # without setuid
            path.chmod(0o755 if found.st_mode & 0o111 else 0o644)
    part.rename(copy)


def _skipped(place: Place, folder: str, names: list[str]) -> set[str]:
    inner = Path(folder).relative_to(place.source)
    found = {name for name in names if str(inner / name) in place.without}
    for name in names:
        mode = Path(folder, name).lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            found.add(name)  # a socket or a device is no part of a program
    is_library = Path(folder).name.startswith("python")
    return found | (_NOT_COPIED(folder, names) if is_library else set())


def _remove_unused(stage: Path) -> None:
    for each in stage.iterdir():
        if not each.suffix and time.time() - each.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(each, ignore_errors=True)
            each.unlink(missing_ok=True)

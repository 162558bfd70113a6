"""A record's files: only their owner may read them, and pictures are named by their hash."""

import errno
import hashlib
import logging
import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Protocol

from hud_mcp.record.place import read_place, shown_url

logger = logging.getLogger(__name__)

MARKS = ".stores"
"""The folder in which stores leave their URLs, so that none removes pictures of another."""

_THREADS = 4
_FOLDER, _FILE = 0o700, 0o600
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents; an OSError if one of them is a file."""
    for each in (*reversed(folder.parents), folder):
        try:
            each.mkdir(mode=_FOLDER, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(each)) from None


def make_private_file(path: Path) -> bool:
    """Make an empty file if the path is free; return whether it was made, or raise OSError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE))
    except FileExistsError:
        return False
    return True


def is_open_to_others(path: Path) -> bool:
    """Whether other users may read a file; False on systems without such modes."""
    return os.name != "nt" and bool(path.stat().st_mode & _OTHERS_READ)


class ObjectStore(Protocol):
    """The place of pictures if their folder has only copies. Both methods block."""

    def put(self, path: Path, data: bytes) -> None:
        """Write a picture whose copy is at the path; an OSError means that it was not written."""
        ...

    def get(self, path: Path) -> None:
        """Bring a picture to the path if it lacks there; an OSError if nobody answers."""
        ...


def read_file(path: Path, sha256: str) -> bytes | None:
    """Return a file's content; None if it is missing or damaged; OSError if it is unreadable."""
    try:
        data = path.read_bytes()
    # A missing folder is a missing file, too: pictures can be removed by hand.
    except (FileNotFoundError, NotADirectoryError):
        return None
    if hashlib.sha256(data).hexdigest() != sha256:
        logger.warning("%s is damaged: its content is not what its name says", path)
        return None
    return data


def save_file(path: Path, data: bytes) -> None:
    """Write a file whole if it is missing or damaged; after an OSError nothing of it stays.

    The file survives the death of the process. A later read notices damage by a loss of power.
    """
    try:
        # The content is compared, because a loss of power can leave the right size.
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            os.utime(path)  # the removal of old pictures goes by this time
            return
    except FileNotFoundError:
        pass
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except FileNotFoundError:  # the first picture of its folder
        make_private_folder(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # Renamed over the path, so that no reader sees half a file.
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


@cache
def threads_of_files() -> ThreadPoolExecutor:
    """The threads that write the files of steps.

    A slow look-up of a host's name can fill the event loop's. A hop to these takes one turn of the
    loop, and one to AnyIO's takes three.
    """
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="hud-mcp-files")


if hasattr(os, "register_at_fork"):  # a forked process has no threads of its parent
    os.register_at_fork(after_in_child=threads_of_files.cache_clear)


def mark_for(folder: Path, url: str) -> tuple[Path, bytes] | None:
    """Return the file that marks a folder as a store's; None for one beside its SQLite file."""
    path = read_place(url)[1]
    if path is not None and folder == Path(os.path.realpath(path)).parent / "screenshots":
        return None
    shown = shown_url(url)
    name = "".join(c if c.isalnum() else "-" for c in shown)[-80:]
    return folder / MARKS / f"{name}.url", f"{shown}\n".encode()

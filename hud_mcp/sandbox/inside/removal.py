"""Emptying a folder that somebody else may be changing."""

from __future__ import annotations

import errno
import os

from .lending import identity, open_folder

__all__ = ["remove_all"]


def remove_all(root: int) -> None:
    """Remove what is in a folder, however deep and whatever its rights; mounts stay.

    Raises:
        OSError: Something cannot be removed; the rest may be gone.
    """
    here, lent = open_folder(".", root, 0o700)
    device = os.fstat(here).st_dev
    ids = [identity(here)]
    names: list[str] = []
    waiting = [_clear(here, device)]
    try:
        while True:
            if waiting[-1]:
                name = waiting[-1].pop()
                below, _lent = open_folder(name, here, 0o700)
                os.close(here)
                here = below
                ids.append(identity(here))
                names.append(name)
                waiting.append(_clear(here, device))
                continue
            if not names:
                break
            above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
            ids.pop()
            if identity(here) != ids[-1]:
                raise OSError(errno.EXDEV, "a folder was moved meanwhile", names[-1])
            waiting.pop()
            _remove_folder(names.pop(), here)
        if lent is not None:
            lent.take_back(here)
    finally:
        os.close(here)


def _clear(folder: int, device: int) -> list[str]:
    """Remove what is not a folder; return those that are, but for mounts."""
    with os.scandir(folder) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    folders: list[str] = []
    for name, is_folder in entries:
        if not is_folder:
            try:
                os.unlink(name, dir_fd=folder)
            except OSError as exc:
                if not _is_mount(name, folder, device, exc):
                    raise
        elif os.stat(name, dir_fd=folder, follow_symlinks=False).st_dev == device:
            folders.append(name)
    return folders


def _remove_folder(name: str, folder: int) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as exc:
        if exc.errno not in (errno.ENOTEMPTY, errno.EBUSY):  # a mount is in it
            raise


def _is_mount(name: str, folder: int, device: int, exc: OSError) -> bool:
    if exc.errno == errno.EBUSY:
        return True
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_dev != device

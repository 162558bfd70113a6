"""Screenshots as files: written whole or not at all, named by their hash."""

import os
import tempfile
from pathlib import Path

__all__ = ["save_file"]


def save_file(path: Path, data: bytes) -> None:
    """Write a file durably; one that is there already, and as long, has the same content.

    Raises:
        OSError: It could not be written; nothing of it stays.
    """
    try:
        if path.stat().st_size == len(data):
            return  # a shorter one was cut off by a disk or a hand, and is replaced
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""The screenshots of an export, checked against their recorded hashes."""

import hashlib
import re
from pathlib import Path

from hud_mcp.plugins.view.export.files import write_whole
from hud_mcp.record.trajectory import ScreenshotRecord
from hud_mcp.store import Store

__all__ = ["MIME_TYPES", "PictureFolder", "Pictures"]

MIME_TYPES = {"png": "image/png", "jpg": "image/jpeg"}

_HASH = re.compile(r"[0-9a-f]{64}")


class Pictures:
    """Reads the screenshots of a store.

    Args:
        store: The store that has them.

    Attributes:
        found: The hashes of those that were read.
        missing: The hashes of those whose file is gone or damaged.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.found: set[str] = set()
        self.missing: set[str] = set()

    def read(self, record: ScreenshotRecord) -> bytes | None:
        """Return an encoded picture; None if its file is gone, or is not the recorded one."""
        data = self._read(record)
        (self.missing if data is None else self.found).add(record.sha256)
        return data

    def _read(self, record: ScreenshotRecord) -> bytes | None:
        if not _HASH.fullmatch(record.sha256):
            return None  # a row edited by hand must not lead out of the folder
        try:
            data = self._store.screenshot_path(record).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == record.sha256 else None


class PictureFolder:
    """Copies screenshots into a folder, each once, under its hash.

    Args:
        pictures: Reads them.
        folder: The folder, which the first one makes.
    """

    def __init__(self, pictures: Pictures, folder: Path) -> None:
        self._pictures = pictures
        self._folder = folder
        self._places: dict[str, str | None] = {}
        self._written: list[Path] = []

    def add(self, record: ScreenshotRecord) -> str | None:
        """Copy a picture. Return its path from the folder's parent, or None if it is missing.

        Raises:
            OSError: It cannot be written.
        """
        if record.sha256 not in self._places:
            self._places[record.sha256] = self._copy(record)
        return self._places[record.sha256]

    def withdraw(self) -> None:
        """Remove the files written here, and folders that are empty then."""
        for path in self._written:
            path.unlink(missing_ok=True)
        for folder in [*{path.parent for path in self._written}, self._folder]:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self._written.clear()

    def _copy(self, record: ScreenshotRecord) -> str | None:
        data = self._pictures.read(record)
        if data is None:
            return None
        path = self._folder / record.name
        if not (path.is_file() and path.stat().st_size == len(data)):
            write_whole(path, data)
            self._written.append(path)
        return path.relative_to(self._folder.parent).as_posix()

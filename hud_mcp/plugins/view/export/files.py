"""Files and folders that appear whole or not at all, and never in the place of another unasked."""

import hashlib
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import orjson

from hud_mcp.errors import OutputExists
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store
from hud_mcp.store.files import make_private_file, make_private_folder

MANIFEST = "export.json"
"""The file that marks a folder that an export made, and may replace."""


@contextmanager
def new_file(path: Path, *, force: bool) -> Generator[Path]:
    """Give a temporary file beside `path`; it becomes `path` at the end, and makes its folder.

    Raises:
        OutputExists: The file exists and `force` is not set, or a folder is there. Nothing was
            written.
        OSError: The file cannot be written.

    If the body fails or is cancelled, nothing of it stays, and an existing file is unchanged.
    """
    _refuse(path, force=force, folder=False)
    make_private_folder(path.parent)
    temporary = _beside(path)
    make_private_file(temporary)
    try:
        yield temporary
        _sync(temporary)
        _refuse(path, force=force, folder=False)  # somebody may have made it meanwhile
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path, *, force: bool) -> Generator[Path]:
    """Give an empty folder beside `path`, which becomes `path` at the end.

    `force` replaces an earlier export, and never another folder with something in it.

    Raises:
        OutputExists: There is something already. Nothing was written.
        OSError: It cannot be written.

    If the body fails or is cancelled, nothing of it stays, and an existing folder is unchanged.
    """
    _refuse(path, force=force, folder=True)
    make_private_folder(path.parent)
    temporary, former = _beside(path), _beside(path)
    make_private_folder(temporary)
    try:
        yield temporary
        _close_to_others(temporary)
        _refuse(path, force=force, folder=True)
        if path.exists():
            path.rename(former)
        try:
            temporary.rename(path)
        except OSError:
            if former.exists():
                former.rename(path)
            raise
    finally:
        for leftover in (temporary, former):
            if leftover.exists():
                shutil.rmtree(leftover)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. It replaces an existing file.

    Raises:
        OSError: The file cannot be written. Nothing of it stays.
    """
    make_private_folder(path.parent)
    temporary = _beside(path)
    make_private_file(temporary)
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.partial")


def _close_to_others(folder: Path) -> None:
    for root, folders, files in os.walk(folder):
        for names, mode in ((folders, 0o700), (files, 0o600)):
            for name in names:
                Path(root, name).chmod(mode)


def _refuse(path: Path, *, force: bool, folder: bool) -> None:
    if not path.exists() and not path.is_symlink():
        return
    if path.is_dir() != folder:
        wanted, found = ("folder", "file") if folder else ("file", "folder")
        raise OutputExists(
            f"{path} is a {found}, but this format writes a {wanted}. Name another place with "
            "--out. Nothing was written."
        )
    if folder and not any(path.iterdir()):
        return
    if not force:
        raise OutputExists(
            f"{path} exists already. --force replaces it, and --out names another place. "
            "Nothing was written."
        )
    if folder and not (path / MANIFEST).is_file():
        raise OutputExists(
            f"{path} is not an export (it has no {MANIFEST}), so not even --force replaces it. "
            "Name another place with --out. Nothing was written."
        )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def to_json(value: Any) -> str:
    """Return JSON text on one line: NaN and infinity are null, half a surrogate pair is escaped."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # an integer of more than 64 bits, or a lone surrogate
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def clean_text(text: str | None) -> str | None:
    """Return a text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in cast("list[Any]", value)]
    return value


_HASH = re.compile(r"[0-9a-f]{64}")


class Pictures:
    """A reader of a store's screenshots. It keeps the hashes of found and of missing ones."""

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
    """A copier of screenshots into a folder, each once, under its hash."""

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

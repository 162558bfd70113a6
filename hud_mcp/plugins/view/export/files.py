"""Files and folders that appear whole or not at all, and never in the place of another unasked."""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hud_mcp.errors import OutputExists
from hud_mcp.store.files import make_private_file, make_private_folder

__all__ = ["MANIFEST", "new_file", "new_folder", "write_whole"]

MANIFEST = "export.json"
"""The file that marks a folder as one that an export made, and may replace."""


@contextmanager
def new_file(path: Path, *, force: bool) -> Generator[Path]:
    """Give a place to write to; it becomes `path` at the end.

    Args:
        path: The file; its folder is made.
        force: Whether one that is there may be replaced.

    Yields:
        A temporary name beside it.

    Raises:
        OutputExists: There is one already, or a folder is in its place. Nothing was written.
        OSError: It cannot be written.

    Where the body fails or is cancelled, nothing of it stays, and what was there is as before.
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
    """Give an empty folder to write to; it becomes `path` at the end.

    Args:
        path: The folder; those above it are made.
        force: Whether a former export that is there may be replaced. Any other folder with
            something in it never is.

    Yields:
        A temporary folder beside it.

    Raises:
        OutputExists: There is something already. Nothing was written.
        OSError: It cannot be written.

    Where the body fails or is cancelled, nothing of it stays, and what was there is as before.
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
    """Write a file whole or not at all, in the place of one that may be there.

    Raises:
        OSError: It cannot be written; nothing of it stays.
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
    """Have what was written into a folder be its owner's alone, wherever it is moved to."""
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

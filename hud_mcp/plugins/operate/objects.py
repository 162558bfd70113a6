"""Pictures in an object store, by fsspec, with a copy of the used ones on this machine."""

import os
import tempfile
from pathlib import Path
from typing import Any

from hud_mcp.base import libraries
from hud_mcp.errors import NotInstalled
from hud_mcp.store.files import make_private_folder


class Objects:
    """A folder of an object store, and its copies here. Constructing one touches nothing.

    The keys for the URL, such as `s3://bucket/folder`, are where fsspec looks.
    """

    def __init__(self, url: str, copies: Path) -> None:
        self._url = url.rstrip("/")
        self._copies = copies
        self._opened: tuple[Any, str] | None = None

    def put(self, path: Path, data: bytes) -> None:
        """Write a picture that has its copy here. It blocks.

        Raises:
            OSError: It was not written.
        """
        files, folder = self._open()
        try:
            files.pipe_file(f"{folder}/{self._name(path)}", data)
        except Exception as exc:  # its libraries raise errors of their own
            raise OSError(f"{self._url} took no picture: {exc}") from exc

    def get(self, path: Path) -> None:
        """Copy a picture here, if the object store has it and this machine does not. It blocks.

        Raises:
            OSError: The object store does not answer.
        """
        if path.exists():
            return
        files, folder = self._open()
        try:
            data: bytes = files.cat_file(f"{folder}/{self._name(path)}")
        except FileNotFoundError:
            return
        except Exception as exc:  # the same
            raise OSError(f"{self._url} gave no picture: {exc}") from exc
        make_private_folder(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._copies).as_posix()

    def _open(self) -> tuple[Any, str]:
        """Return the file system, and the folder in it; raise NotInstalled without its library."""
        if self._opened is not None:
            return self._opened
        try:
            opened: tuple[Any, str] = libraries.url_to_fs(self._url)
        except ImportError as exc:
            raise NotInstalled(
                f"Pictures in {self._url} need fsspec: pip install 'hud-mcp[s3]'. ({exc})"
            ) from exc
        except ValueError as exc:
            raise OSError(f"{self._url} is no place for pictures: {exc}") from exc
        self._opened = opened
        return opened

"""The agent's files that a template opens: pipes are refused, and what was read is known.

To open a pipe waits for somebody who writes to it, and nobody does while a template grades.
"""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

__all__ = ["OpenedFiles"]

_MOST_FILES = 64
_MOST_BYTES = 64 * 1024 * 1024


class OpenedFiles:
    """The files of a folder that this process opens from now on, however Python does it.

    Args:
        places: The folder's names.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(f"{place}/" for place in places)
        self._paths: dict[str, None] = {}
        sys.addaudithook(self._hear)  # for good: the process has one template

    def contents(self) -> list[bytes]:
        """The content of each file that can still be read, the newest first, up to a size."""
        found: list[bytes] = []
        left = _MOST_BYTES
        for path in [*reversed(self._paths)]:  # each is opened, which is heard too
            with suppress(OSError):
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with os.fdopen(fd, "rb") as file:
                    found.append(file.read(left))
                left -= len(found[-1])
            if left <= 0:
                break
        return found

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of a file that is about to be opened.

        Raises:
            OSError: It is a pipe in the folder.
        """
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.path.abspath(os.fsdecode(cast("str", arguments[0])))  # noqa: PTH100  # no link is followed
        if not path.startswith(self._places):
            return
        if _is_pipe(path) and not arguments[2] & os.O_NONBLOCK:
            raise OSError(errno.EINVAL, "it is a pipe, and nobody writes to it", path)
        self._paths.pop(path, None)
        self._paths[path] = None
        if len(self._paths) > _MOST_FILES:
            del self._paths[next(iter(self._paths))]


def _is_pipe(path: str) -> bool:
    try:
        return Path(path).is_fifo()
    except OSError:  # the system tells whoever opens it
        return False

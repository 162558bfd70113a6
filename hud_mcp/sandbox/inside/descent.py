"""Going beneath a folder from place to place, by the names on the way."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
from .lending import FOLDER, identity, open_folder

__all__ = ["Descent"]


class Descent:
    """Where one is beneath a folder, going from place to place by the names on the way.

    Folders on the way are made where they are not there. No link is followed. Going to a place
    near the last one takes no more than the names between them; one descriptor is open.

    Args:
        root: The folder, open in any way; it stays open.
        leave: Called with each folder that is left upwards, open, and its path.
    """

    def __init__(
        self, root: int, leave: Callable[[int, tuple[str, ...]], None] | None = None
    ) -> None:
        self._root = root
        self._leave = leave
        self._names: list[str] = []
        self._ids = [identity(root)]
        self.fd = os.open(".", FOLDER, dir_fd=root)

    def go(self, names: Sequence[str]) -> int:
        """Go to the folder of these names, from the root on; return it, open until the next call.

        Raises:
            OSError: One on the way is not a folder, or is not beneath any more.
        """
        same = 0
        while same < min(len(self._names), len(names)) and self._names[same] == names[same]:
            same += 1
        while len(self._names) > same:
            self._up()
        for name in names[same:]:
            self._down(name)
        return self.fd

    def close(self) -> None:
        """Go up to the root, and close. It may be called twice."""
        if self.fd < 0:
            return
        try:
            while self._names:
                self._up()
        finally:
            os.close(self.fd)
            self.fd = -1

    def _down(self, name: str) -> None:
        if name in ("", ".", "..") or "/" in name:
            raise OSError(errno.EXDEV, "it leads out of the folder", name)
        try:
            os.mkdir(name, 0o700, dir_fd=self.fd)
        except FileExistsError:
            pass
        below, _lent = open_folder(name, self.fd, 0o700)
        os.close(self.fd)
        self.fd = below
        self._names.append(name)
        self._ids.append(identity(below))

    def _up(self) -> None:
        above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        self._ids.pop()
        if identity(above) != self._ids[-1]:
            os.close(above)
            raise OSError(errno.EXDEV, "a folder was moved meanwhile", self._names[-1])
        try:
            if self._leave is not None:
                self._leave(self.fd, tuple(self._names))
        finally:
            os.close(self.fd)
            self.fd = above
            self._names.pop()

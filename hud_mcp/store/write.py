"""What is handed over to be written, and how those who wait for it are told."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.store.changes import Change

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Write", "conclude", "tell"]

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Write:
    """What is to be made durable together.

    Attributes:
        change: One of those that are made of many sessions at once; or what executes its
            statements, and returns what the caller is given. It is made again where a commit
            that it shared has failed.
        files: Files that must be there before, each with its content.
        copy: Given each of these files before, where they lie elsewhere too; it may block.
        waiting: Where its caller waits, in the caller's event loop.
    """

    change: "Change | Callable[[Connection], Any]"
    files: Sequence[tuple[Path, bytes]] = ()
    copy: Callable[[Path, bytes], None] | None = None
    waiting: "asyncio.Future[Any]" = field(init=False)

    def wait_in(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[Any]":
        """Say in which loop its caller waits, and return for what."""
        self.waiting = loop.create_future()
        return self.waiting

    def copy_files(self) -> None:
        """Copy the files to where they lie elsewhere too. It blocks."""
        if self.copy is not None:
            for path, data in self.files:
                self.copy(path, data)


def tell(ended: list[tuple[Write, Any, Exception | None]]) -> None:
    """Tell those who wait how their writes ended; each loop wakes once for all of its own."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Write, Any, Exception | None]]] = {}
    for each in ended:
        loops.setdefault(each[0].waiting.get_loop(), []).append(each)
    for loop, own in loops.items():
        try:
            loop.call_soon_threadsafe(conclude, own)
        except RuntimeError:  # it is closed, and nobody waits there any more
            logger.debug("%d writes have ended after their event loop", len(own))


def conclude(ended: list[tuple[Write, Any, Exception | None]]) -> None:
    """End the waits of one loop, in it."""
    for write, result, error in ended:
        if write.waiting.done():  # cancelled; what was handed over has happened nevertheless
            continue
        if error is None:
            write.waiting.set_result(result)
        else:
            write.waiting.set_exception(error)

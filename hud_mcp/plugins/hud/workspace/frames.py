"""The frames between the two sides of a template's process: JSON objects with their length."""

import asyncio
import errno
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from hud_mcp import errors
from hud_mcp.environment.prompt import Prompt
from hud_mcp.environment.spec import Shared
from hud_mcp.errors import HudMcpError

PROMPT = TypeAdapter(Prompt)
"""The form of a prompt between the processes."""

_LENGTH = struct.Struct("!I")
_MOST_BYTES = 256 * 1024 * 1024


def pack(frame: Mapping[str, Any]) -> bytes:
    """Return a frame's bytes; values without a JSON form become text. Too many are ValueError."""
    body = to_json(frame, fallback=str, inf_nan_mode="constants")
    if len(body) > _MOST_BYTES:
        raise ValueError(f"a template's process says at most {_MOST_BYTES} bytes at once")
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next frame; None at the end."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return from_json(await reader.readexactly(length)) if length <= _MOST_BYTES else None
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None


def send_now(control: socket.socket, frame: Mapping[str, Any]) -> None:
    """Send a frame outside an event loop."""
    control.sendall(pack(frame))


def kind_of(exc: HudMcpError) -> str:
    """Return the name in `errors` from which the other side makes the exception again.

    For a class of an author or a world, it is the nearest class above.
    """
    names = (kind.__name__ for kind in type(exc).__mro__ if kind.__module__ == errors.__name__)
    return next(names)


_inside = False


def note_inside() -> None:
    """Note that this process runs a template of another process."""
    global _inside  # noqa: PLW0603  # for the whole process
    _inside = True


def is_inside() -> bool:
    """Whether this process runs a template of another process."""
    return _inside


_MOST_FILES = 64


_MOST_READ_BYTES = 64 * 1024 * 1024


class OpenedFiles:
    """The files of a folder that this process opens from now on, in any way of Python."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(f"{place}/" for place in places)
        self._paths: dict[str, None] = {}
        sys.addaudithook(self._hear)  # for good: the process has one template

    def contents(self) -> list[bytes]:
        """Return the contents of files that can still be read, the newest first, up to a size."""
        found: list[bytes] = []
        left = _MOST_READ_BYTES
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
        """Note a file that is about to be opened; a pipe in the folder raises OSError."""
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
    except OSError:  # the system reports it to the opener
        return False


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of a template's process.

    Attributes:
        root: The world's folder, by its name in the environment's file.
        places: All of its names, with this one.
        namespaces: Opens the namespaces in which the session's folder is seen there, as descriptors
            to enter in this order; None if the folder is the machine's.
        owner: The user who gets the files that the template made, when it asks; None keeps them.
        follow_links: Whether the template follows links in the folder. None follows them only if
            the template has made some, because a link of an agent may lead anywhere.
        stand_in: The `module:Class` that stands for the world in that process. Its arguments are a
            function that calls one of `calls`, and the folder's names in that process. Its
            `broken_by_agent` returns the agent's fault in an error of the template.
        calls: The functions for that process; arguments and results are JSON.
        shared: The services that the sessions of this server share.
    """

    root: Path
    places: tuple[Path, ...]
    namespaces: Callable[[], Sequence[int]] | None = None
    owner: int | None = None
    follow_links: bool | None = None
    stand_in: str
    calls: Mapping[str, Callable[..., Awaitable[Any]]] = field(repr=False)
    shared: Shared = field(repr=False)

"""What the two sides of a template's process say to each other: JSON objects with their length."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from hud_mcp import errors
from hud_mcp.environment.template import Prompt
from hud_mcp.errors import HudMcpError

__all__ = ["PROMPT", "is_inside", "kind_of", "note_inside", "pack", "read", "send_now"]

PROMPT = TypeAdapter(Prompt)
"""How a prompt is carried from one process to the other."""

_LENGTH = struct.Struct("!I")
_MOST_BYTES = 256 * 1024 * 1024


def pack(frame: Mapping[str, Any]) -> bytes:
    """A frame's bytes; what JSON has no word for is written as text.

    Raises:
        ValueError: It is too long.
    """
    body = to_json(frame, fallback=str, inf_nan_mode="constants")
    if len(body) > _MOST_BYTES:
        raise ValueError(f"a template's process says at most {_MOST_BYTES} bytes at once")
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next frame; None at the end."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return from_json(await reader.readexactly(length)) if length <= _MOST_BYTES else None
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None


def send_now(control: socket.socket, frame: Mapping[str, Any]) -> None:
    """Send a frame where no loop runs."""
    control.sendall(pack(frame))


def kind_of(exc: HudMcpError) -> str:
    """The name in `errors` that the other side makes an exception of again.

    Of a class that an author or a world has made, it is that of the nearest class above it.
    """
    names = (kind.__name__ for kind in type(exc).__mro__ if kind.__module__ == errors.__name__)
    return next(names)


_inside = False


def note_inside() -> None:
    """Note that this process runs a template of another one."""
    global _inside  # noqa: PLW0603  # of the whole process
    _inside = True


def is_inside() -> bool:
    """Whether this process runs a template of another one."""
    return _inside

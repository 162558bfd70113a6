"""What the two sides of a template's process say to each other: JSON objects with their length."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

__all__ = ["pack", "read", "send_now"]

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

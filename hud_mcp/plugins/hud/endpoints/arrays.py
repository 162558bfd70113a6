"""MessagePack with arrays in it, as `openpi/0` has it."""

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hud_mcp.plugins.hud.endpoints import libraries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["are_installed", "pack", "unpack"]

_NUMBER = re.compile(r"[<>=|]?(\?|b1|[iu][1248]|f(2|4|8|12|16))|bool|u?int\d{1,2}|float\d{2,3}")
"""What arrays are read of: bool, whole numbers, and fractions, by NumPy's names."""


def are_installed() -> bool:
    """Whether what this needs is here."""
    return all(find_spec(name) for name in ("msgpack", "numpy"))


def pack(value: Any) -> bytes:
    """Write a value, whose arrays are of numbers."""

    def write(array: "NDArray[Any]") -> dict[bytes, Any]:
        return {
            b"__ndarray__": True,
            b"data": array.tobytes(),
            b"dtype": array.dtype.str,
            b"shape": array.shape,
        }

    return libraries.msgpack.packb(value, default=write)


def unpack(frame: bytes) -> Any:
    """Read a value; no object is made but arrays of numbers, and none larger than the frame.

    Raises:
        ValueError: It is none.
    """

    def read(found: dict[Any, Any]) -> Any:
        if b"__ndarray__" in found:
            shape, data = tuple(found[b"shape"]), found[b"data"]
            if not isinstance(data, bytes):  # without any, NumPy takes memory of its own
                raise ValueError("the data of an array are bytes")
            return libraries.numpy.ndarray(shape, _number_type(found[b"dtype"]), data)
        if b"__npgeneric__" in found:
            return _number_type(found[b"dtype"]).type(found[b"data"]).item()
        return found

    try:
        return libraries.msgpack.unpackb(frame, object_hook=read)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as exc:
        raise ValueError(str(exc)) from exc


def _number_type(name: Any) -> "np.dtype[Any]":
    # NumPy reads more than names, as Python: what comes is not for it to judge.
    if not isinstance(name, str) or not _NUMBER.fullmatch(name):
        raise ValueError(f"an array of {str(name)[:100]!r}, and not of numbers")
    return libraries.numpy.dtype(name)

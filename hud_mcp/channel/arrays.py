"""MessagePack with arrays in it, as `openpi/0` has it."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["are_installed", "pack", "unpack"]

_NUMBERS = "biuf"
"""The kinds of arrays that are read: of bool, whole numbers, and fractions."""


def are_installed() -> bool:
    """Whether what this needs is here."""
    return all(find_spec(name) for name in ("msgpack", "numpy"))


def pack(value: Any) -> bytes:
    """Write a value, whose arrays are of numbers."""
    msgpack: Any = import_module("msgpack")  # an extra, and without types

    def write(array: "NDArray[Any]") -> dict[bytes, Any]:
        return {
            b"__ndarray__": True,
            b"data": array.tobytes(),
            b"dtype": array.dtype.str,
            b"shape": array.shape,
        }

    return msgpack.packb(value, default=write)


def unpack(frame: bytes) -> Any:
    """Read a value; no object is made but arrays of numbers, and none larger than the frame.

    Raises:
        ValueError: It is none.
    """
    import numpy as np  # noqa: PLC0415  # an extra

    msgpack: Any = import_module("msgpack")

    def read(found: dict[Any, Any]) -> Any:
        if b"__ndarray__" in found:
            shape = tuple(found[b"shape"])
            return np.ndarray(shape, _number_type(found[b"dtype"]), found[b"data"])
        if b"__npgeneric__" in found:
            return _number_type(found[b"dtype"]).type(found[b"data"]).item()
        return found

    try:
        return msgpack.unpackb(frame, object_hook=read)
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise ValueError(str(exc)) from exc


def _number_type(name: Any) -> "np.dtype[Any]":
    import numpy as np  # noqa: PLC0415  # an extra

    found = np.dtype(name)
    if found.kind not in _NUMBERS:
        raise ValueError(f"an array of {found}")
    return found

"""What a program reads of a world, as plain JSON: arrays are lists of numbers."""

import base64
from collections.abc import Mapping
from typing import Any, cast

from hud_mcp.base import libraries

__all__ = ["plain_values"]


def plain_values(values: Any) -> Any:
    """Numbers and lists in place of encoded arrays.

    Args:
        values: As an observation has them: an array is its `array` (base64), `dtype` and `shape`.
    """
    if isinstance(values, list):
        return [plain_values(each) for each in cast("list[Any]", values)]
    if not isinstance(values, Mapping):
        return values
    parts = cast("Mapping[str, Any]", values)
    if set(parts) == {"parts"}:
        return {name: plain_values(part) for name, part in parts["parts"].items()}
    if set(parts) == {"array", "dtype", "shape"}:
        data = libraries.numpy.frombuffer(base64.b64decode(parts["array"]), dtype=parts["dtype"])
        return data.reshape(parts["shape"]).tolist()
    return {name: plain_values(part) for name, part in parts.items()}

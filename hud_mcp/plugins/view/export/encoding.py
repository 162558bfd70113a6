"""Recorded values as JSON text that any reader takes, whatever a hand or a page put into them."""

import json
import math
from collections.abc import Mapping
from typing import Any, cast

import orjson

__all__ = ["clean_text", "to_json"]


def to_json(value: Any) -> str:
    """Return JSON text on one line, in valid Unicode.

    A number that JSON has no word for (NaN, infinity) becomes null; half a surrogate pair
    stays escaped.
    """
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # an integer of more than 64 bits, or a lone surrogate
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


def clean_text(text: str | None) -> str | None:
    """A text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in cast("list[Any]", value)]
    return value

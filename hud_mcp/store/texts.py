"""Texts, and values as JSON, as every database takes them."""

import json
import math
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json

__all__ = ["dump", "printable", "read_json", "storable", "to_json"]


def dump(value: BaseModel, *, exclude_defaults: bool = False, finite: bool = True) -> str:
    """A value as JSON, as `to_json` writes it.

    Args:
        value: What is dumped.
        exclude_defaults: Whether what equals its default is left out.
        finite: Whether all numbers of its own fields are. Pydantic writes no others, and would
            write `null` for them.
    """
    if finite:
        try:
            return value.model_dump_json(exclude_defaults=exclude_defaults, ensure_ascii=True)
        except PydanticSerializationError:  # of half a surrogate pair, which Python's can write
            pass
    return to_json(value.model_dump(mode="json", exclude_defaults=exclude_defaults))


_FINITE = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""One for all: `json.dumps` would make one each time."""


def to_json(value: Any) -> str:
    """A value as the JSON that every database takes.

    JSON has no number that is none or not finite, and PostgreSQL refuses the tokens that
    Python writes for them: they are written as text, `"NaN"` and `"Infinity"`, which a field
    that holds a number reads back.
    """
    try:
        return _FINITE.encode(value)
    except ValueError:
        return json.dumps(_with_finite_numbers(value), separators=(",", ":"))


def read_json(text: str | bytes) -> Any:
    """The value that a JSON text says, as Python's `json` reads it, in half of the time.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        return from_json(text)
    except ValueError:  # as of half a surrogate pair, or of 200 levels, which Python's reads
        return json.loads(text)


def _with_finite_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: _with_finite_numbers(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_with_finite_numbers(v) for v in cast("list[Any]", value)]
    return value


def storable(text: str) -> str:
    """A text as every database takes it: PostgreSQL's has no place for a NUL."""
    return text.replace("\0", "\ufffd")


def printable(text: str) -> str:
    """The same for text that may hold lone surrogates, as a name does that is not UTF-8."""
    if text.isascii() and "\0" not in text:
        return text
    return storable(text.encode("utf-8", "replace").decode())

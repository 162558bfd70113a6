"""Texts, and values as JSON, in the form that every database takes."""

import json
import math
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json


def dump(value: BaseModel, *, exclude_defaults: bool = False, finite: bool = True) -> str:
    """Return a value as JSON, as `to_json` does; not `finite` keeps numbers that Pydantic nulls."""
    if finite:
        try:
            return value.model_dump_json(exclude_defaults=exclude_defaults, ensure_ascii=True)
        # half a surrogate pair, which Python's encoder can write
        except PydanticSerializationError:
            pass
    return to_json(value.model_dump(mode="json", exclude_defaults=exclude_defaults))


_FINITE = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""The encoder for all calls: `json.dumps` would make one each time."""


def to_json(value: Any) -> str:
    """Return a value as the JSON that every database takes.

    JSON has no infinite number and no NaN, and PostgreSQL refuses Python's tokens for them. They
    are written as the texts `"NaN"` and `"Infinity"`, which a field of a number reads back.
    """
    try:
        return _FINITE.encode(value)
    except ValueError:
        return json.dumps(_with_finite_numbers(value), separators=(",", ":"))


def read_json(text: str | bytes) -> Any:
    """Read a JSON text as Python's `json` does, in half of the time.

    Raises:
        ValueError: The text is no JSON.
        RecursionError: The text is nested too deeply.
    """
    try:
        return from_json(text)
    except ValueError:  # half a surrogate pair, or 200 levels, which Python's decoder reads
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
    """Return a text that every database takes. PostgreSQL's texts cannot hold a NUL."""
    return text.replace("\0", "\ufffd")


def printable(text: str) -> str:
    """Do the same for a text that may hold lone surrogates, such as a name that is not UTF-8."""
    if text.isascii() and "\0" not in text:
        return text
    return storable(text.encode("utf-8", "replace").decode())

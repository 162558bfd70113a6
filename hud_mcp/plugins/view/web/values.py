"""Plain JSON values of the pages: how the record's are written."""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

import orjson

__all__ = ["Json", "encode", "finite", "is_hash", "iso", "seconds"]

Json = dict[str, Any]
_HASH = re.compile(r"[0-9a-f]{64}")


def encode(value: Any) -> bytes:
    """A value as JSON, whatever text is in it."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half of a surrogate pair, or an integer beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def is_hash(text: str) -> bool:
    """Whether a text is a SHA-256 as the record writes it."""
    return _HASH.fullmatch(text) is not None


def finite(value: float | None) -> float | None:
    """A number that JSON can have; None for any other."""
    return value if value is not None and math.isfinite(value) else None


def seconds(start: datetime, end: datetime) -> float:
    """The seconds between two times, to a millisecond."""
    return round((end - start).total_seconds(), 3)


def iso(at: datetime) -> str:
    """A time in UTC, to a second."""
    return at.astimezone(UTC).isoformat(timespec="seconds")

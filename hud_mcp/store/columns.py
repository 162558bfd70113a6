"""The columns' own types: the same value comes back from every database.

What a hand has damaged is given back as `Damaged`, so that one such row does not keep the
rows beside it from being read. Importing this loads SQLAlchemy.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import JSON, DateTime, Dialect, String
from sqlalchemy.types import TypeDecorator

from hud_mcp.store.characters import printable

__all__ = ["Damaged", "Id", "Json", "Utc", "to_json"]

_SHOWN = 40


@dataclass(frozen=True)
class Damaged:
    """What is in the place of a value that could not be read.

    Attributes:
        why: What is there, and what was expected.
    """

    why: str


class Json(TypeDecorator[Any]):
    """Any JSON value, of any depth, with text of any characters and numbers of any size."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        """Read it; a text that is no JSON becomes `Damaged`."""
        return _sound(super().result_processor(dialect, coltype), "JSON")


class Id(TypeDecorator[str]):
    """What names a row. Anything may be asked for; what no database could hold is not there."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Write it, or look for it."""
        del dialect
        return None if value is None else printable(value)


class Utc(TypeDecorator[datetime]):
    """An aware time; it comes back in UTC from SQLite, which keeps no zone, and PostgreSQL."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Write it in UTC."""
        del dialect
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Read it."""
        del dialect
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        """Read it; a text that is no time becomes `Damaged`."""
        return _sound(super().result_processor(dialect, coltype), "a time")


def to_json(value: Any) -> str:
    """A value as the JSON that every database takes.

    JSON has no number that is none or not finite, and PostgreSQL refuses the tokens that
    Python writes for them: they are written as text, `"NaN"` and `"Infinity"`, which a field
    that holds a number reads back.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_with_finite_numbers(value), separators=(",", ":"))


def _with_finite_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: _with_finite_numbers(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_with_finite_numbers(v) for v in cast("list[Any]", value)]
    return value


def _sound(read: Callable[[Any], Any] | None, expected: str) -> Callable[[Any], Any]:
    """A reader that gives `Damaged` where another one raises."""

    def process(value: Any) -> Any:
        try:
            return read(value) if read else value
        except (ValueError, TypeError, AttributeError, RecursionError):
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
            return Damaged(f"{shown} is not {expected}")

    return process

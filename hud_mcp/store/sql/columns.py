"""The columns' own types: the same value comes back from every database.

What a hand has damaged is given back as `Damaged`, so that one such row does not keep the
rows beside it from being read. Importing this loads SQLAlchemy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, String
from sqlalchemy.types import TypeDecorator

from hud_mcp.clipping import clip_repr
from hud_mcp.store.characters import printable

__all__ = ["Damaged", "Id", "Json", "Utc"]

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
        """Read it; a text that is not JSON becomes `Damaged`."""
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


def _sound(read: Callable[[Any], Any] | None, expected: str) -> Callable[[Any], Any]:
    """A reader that gives `Damaged` where another one raises."""

    def process(value: Any) -> Any:
        try:
            return read(value) if read else value
        except (ValueError, TypeError, AttributeError, RecursionError):
            return Damaged(f"{clip_repr(value, _SHOWN)} is not {expected}")

    return process

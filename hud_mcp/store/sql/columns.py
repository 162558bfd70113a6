"""The column types, which give back the same value from every database, and damaged rows.

A damaged value is given back as `Damaged`, so that the rows beside it can be read. Importing this
loads SQLAlchemy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    String,
    Text,
    and_,
    case,
    cast,
    func,
    or_,
    type_coerce,
)
from sqlalchemy.types import TypeDecorator

from hud_mcp.base.lines import printable
from hud_mcp.base.text import clip_repr
from hud_mcp.errors import DamagedRecord

ValueT = TypeVar("ValueT", bound=BaseModel)

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""The value in place of a damaged time."""

_LOW, _HIGH = r"\\u(?:dc|dd|de|df)[0-9a-f]{2}", r"\\u(?:d8|d9|da|db)[0-9a-f]{2}"
_NO_TEXT = rf"\\u0000|{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}"
"""JSON escapes that a text of PostgreSQL cannot hold: a NUL, and half a surrogate pair."""

_SHOWN = 40


@dataclass(frozen=True)
class Damaged:
    """The value in place of one that could not be read, with the reason."""

    why: str


class Json(TypeDecorator[Any]):
    """Any JSON value, of any depth, with text of any characters and numbers of any size."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        """Read it; a text that is not JSON becomes `Damaged`."""
        return _sound(super().result_processor(dialect, coltype), "JSON")


class Id(TypeDecorator[str]):
    """The name of a row. Any text may be asked for; an impossible name has no row."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Convert the name for a write or a search."""
        del dialect
        return None if value is None else printable(value)


class Utc(TypeDecorator[datetime]):
    """An aware time, given back in UTC by SQLite, which keeps no zone, and by PostgreSQL."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert the time to UTC."""
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
    """Return a reader that gives `Damaged` when another one raises."""

    def process(value: Any) -> Any:
        try:
            return read(value) if read else value
        except (ValueError, TypeError, AttributeError, RecursionError):
            return Damaged(f"{clip_repr(value, _SHOWN)} is not {expected}")

    return process


def read_value(kind: type[ValueT], row: Any, name: str) -> ValueT:
    """Read a value from its JSON; a DamagedRecord names the row and the fault."""
    if isinstance(row, Damaged):
        raise damage(name, row.why)
    try:
        return kind.model_validate(row)
    except ValidationError as exc:
        raise damage(name, first_fault(exc)) from exc


def first_fault(error: ValidationError) -> str:
    """The text of the first fault."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the row"
    given = first["input"]
    return f"{where}: {given.why if isinstance(given, Damaged) else first['msg']}"


def damage(name: str, what: str) -> DamagedRecord:
    """The error of a damaged row, with its name and fault."""
    return DamagedRecord(
        f"The record is damaged: {name}: {what}. Mend that row, or restore the store from a copy."
    )


def sound_json(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column for questions about its fields, which one damaged value does not fail.

    SQLite keeps damaged text that is no JSON. PostgreSQL's functions refuse a whole value for one
    character in it that no text of its own can hold.
    """
    if connection.dialect.name == "sqlite":
        # SQLite itself gives `Inf`, which is no JSON, for a number that is too large.
        return type_coerce(case((func.json_valid(column), column)), Json)
    text = cast(column, Text)
    replaced = func.regexp_replace(text, _NO_TEXT, r"\\ufffd", "gi")
    # A search for the plain text first takes a hundredth of the time; most have no escape.
    escaped, *suspect = (
        func.strpos(text, start) > 0 for start in (r"\u", r"\u0000", r"\ud", r"\uD")
    )
    return case((and_(escaped, or_(*suspect)), cast(replaced, JSON)), else_=column)

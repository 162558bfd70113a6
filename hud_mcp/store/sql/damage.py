"""Rows that a hand has damaged: each is named, and hides no others."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Text,
    and_,
    case,
    cast,
    func,
    or_,
    type_coerce,
)

from hud_mcp.errors import DamagedRecord
from hud_mcp.store.sql.columns import Damaged, Json

__all__ = ["UNKNOWN", "damage", "first_fault", "read_value", "sound_json"]

ValueT = TypeVar("ValueT", bound=BaseModel)

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""In the place of a time that is damaged."""

_LOW, _HIGH = r"\\u(?:dc|dd|de|df)[0-9a-f]{2}", r"\\u(?:d8|d9|da|db)[0-9a-f]{2}"
_NO_TEXT = rf"\\u0000|{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}"
"""What JSON can say and a text of PostgreSQL cannot hold: a NUL, and half a surrogate pair."""


def read_value(kind: type[ValueT], row: Any, name: str) -> ValueT:
    """A value from its JSON; one that a hand has damaged is named.

    Raises:
        DamagedRecord: Saying which row, and what is wrong with it.
    """
    if isinstance(row, Damaged):
        raise damage(name, row.why)
    try:
        return kind.model_validate(row)
    except ValidationError as exc:
        raise damage(name, first_fault(exc)) from exc


def first_fault(error: ValidationError) -> str:
    """What is wrong first."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the row"
    given = first["input"]
    return f"{where}: {given.why if isinstance(given, Damaged) else first['msg']}"


def damage(name: str, what: str) -> DamagedRecord:
    """The error that names a damaged row, and says what is wrong with it."""
    return DamagedRecord(
        f"The record is damaged: {name}: {what}. Mend that row, or restore the store from a copy."
    )


def sound_json(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """A column whose fields are asked for; one value that cannot be taken apart fails no others.

    SQLite holds what is not JSON, if a hand has written it. PostgreSQL's functions refuse a whole
    value for one character in it that no text of its own can hold.
    """
    if connection.dialect.name == "sqlite":
        # SQLite itself gives `Inf`, which is no JSON, for a number that is too large.
        return type_coerce(case((func.json_valid(column), column)), Json)
    text = cast(column, Text)
    replaced = func.regexp_replace(text, _NO_TEXT, r"\\ufffd", "gi")
    # To look for a plain text first takes a hundredth of the time; most have no escape at all.
    escaped, *suspect = (
        func.strpos(text, start) > 0 for start in (r"\u", r"\u0000", r"\ud", r"\uD")
    )
    return case((and_(escaped, or_(*suspect)), cast(replaced, JSON)), else_=column)

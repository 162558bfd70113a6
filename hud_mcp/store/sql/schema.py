"""The tables of the store, and their column types. Only an opened store loads them.

A change here needs a revision in `migrations.py` and a higher `VERSION`. A test compares the result
of the revisions with the declared tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    case,
    cast,
    event,
    func,
    or_,
    text,
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


VERSION = 10
"""The version of the tables, and the number of the newest revision. A newer store is refused."""

COPYING = -1
"""The version during a copy: nobody opens half a store."""

_WHERE = "where"
"""The key of an index's condition in its `info`."""

metadata = MetaData()


@event.listens_for(metadata, "before_create")
def _limit_indexes(_target: MetaData, connection: Connection, **_options: Any) -> None:
    """Give partial indexes their condition, in the dialect of the open database.

    A condition in the declaration would load the dialects of all databases, which takes long.
    """
    for table in metadata.tables.values():
        for index in table.indexes:
            if _WHERE in index.info:
                index.dialect_options[connection.dialect.name]["where"] = text(index.info[_WHERE])


versions = Table("versions", metadata, Column("version", Integer, primary_key=True))

servers = Table(
    "servers",
    metadata,
    Column("id", Id(64), primary_key=True),
    Column("machine", String(64), nullable=False),  # since it was started
    Column("started_at", Utc, nullable=False),
    Column("beat_at", Utc, nullable=False),  # its last sign of life, by the database's clock
    Column("beat_s", Float(53), nullable=False),  # the same, by its machine's monotonic clock
    Column("advertised", String(512)),  # where other replicas reach it; none where it is none
    Column("tag", String(64)),  # what its replies are marked with
    Column("is_draining", Boolean),  # whether it begins no sessions any more
)

connections = Table(
    "connections",
    metadata,
    Column("id", Id(64), primary_key=True),  # the SHA-256 of an Mcp-Session-Id
    Column("caller", Id(64), nullable=False),  # the SHA-256 of whose it is
    Column("introduction", Json, nullable=False),  # the parameters of its initialize
    Column("touched_at", Utc, nullable=False),
    Index("connections_touched", "touched_at"),
)

connection_sessions = Table(
    "connection_sessions",
    metadata,
    Column("connection_id", Id(64), primary_key=True),
    Column("session_id", Id(64), ForeignKey("sessions.id"), primary_key=True),
    Index("connection_sessions_session", "session_id"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Id(64), primary_key=True),
    Column("created_at", Utc, nullable=False),
    Column("row", Json, nullable=False),  # the Job
    Column("planned", Boolean),  # whether only runs of its plan count; none of before there were
    Column("pruned", Json),  # the Pruning that took its tasks and all of its grades
    Index("jobs_created", "created_at"),
)

job_tasks = Table(
    "job_tasks",
    metadata,
    Column("job_id", Id(64), ForeignKey("jobs.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("row", Json, nullable=False),  # the Task
)

job_runs = Table(
    "job_runs",
    metadata,
    Column("job_id", Id(64), ForeignKey("jobs.id"), primary_key=True),
    Column("run", Id(64), primary_key=True),  # the SHA-256 of a session's id, before it begins
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Id(64), primary_key=True),  # the trajectory's id; public
    Column("secret_digest", Id(64), nullable=False),  # the SHA-256 of the session id
    Column("job_id", Id(64), ForeignKey("jobs.id")),
    Column("principal", String(512)),
    Column("token_digest", Id(64)),  # of the token that it was started with; none without one
    Column("environment", String(64), nullable=False),
    Column("environment_version", String(64), nullable=False),
    Column("environment_digest", String(64)),
    Column("task", Json, nullable=False),
    Column("context", Json, nullable=False),
    Column("seed", BigInteger),
    Column("prompt", Text),
    Column("reward_policy", String(16)),
    Column("start_key", Id(64)),  # of whose start of what in which job it is
    Column("attempt", Integer),  # and the how manieth, from 1
    Column("record", String(16)),  # how its steps are written; none of before there was a choice
    Column("unflushed", Boolean),  # whether its agent may have been told of steps that are not here
    Column("live_token", Id(64)),  # opens the live page, and nothing else
    Column("owner", Id(64)),  # the server that runs it, or ended it; none where it waits
    Column("answered_at", Utc),
    Column("released_at", Utc),  # when its last server let go of it
    Column("was_stopped", Boolean),  # whether that server was stopped, and did not die
    Column("overloaded", Integer),  # how many calls the overloaded machine refused
    Column("lost_gradings", Integer),  # how often its server ended while its answer was graded
    Column("failed_in_grading", Boolean),  # whether its grading has failed, and is made again
    Column("died_in_grading", Boolean),  # whether its world has died under its grader
    Column("receipt", Json),
    Column("started_at", Utc, nullable=False),
    Column("ended_at", Utc),
    Column("pruned", Json),  # the newest Pruning
    Column("pruned_steps", Integer),  # how many steps it had until then
    Column("erased", Boolean),  # whether that took its grade too, so that it counts nowhere
    Column("stored_bytes", BigInteger),  # of its steps, pictures and states, since that is counted
    UniqueConstraint("secret_digest", name="sessions_secret"),
    UniqueConstraint("live_token", name="sessions_live"),
    # A list is in the order of start, and all that go on are found among many that have ended.
    Index("sessions_job", "job_id", "started_at", "id"),
    Index("sessions_start", "start_key", "attempt"),
    Index("sessions_principal", "principal", "started_at", "stored_bytes"),
    Index(
        "sessions_living",
        "principal",
        "started_at",
        info={_WHERE: "ended_at IS NULL"},
    ),
    Index("sessions_started", "started_at", "id"),
    Index(
        "sessions_ended",
        "ended_at",
        "id",
        info={_WHERE: "ended_at IS NOT NULL"},
    ),
    Index(
        "sessions_token",
        "token_digest",
        "started_at",
        info={_WHERE: "token_digest IS NOT NULL"},
    ),
    Index(
        "sessions_going_on",
        "owner",
        info={_WHERE: "ended_at IS NULL"},
    ),
)

steps = Table(
    "steps",
    metadata,
    Column("session_id", Id(64), ForeignKey("sessions.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("row", Json, nullable=False),  # the TrajectoryStep
    Column("took_s", Float(53)),  # none of before it was told
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("session_id", Id(64), ForeignKey("sessions.id"), primary_key=True),
    Column("step", Integer, nullable=False),  # after which it was taken
    Column("data", LargeBinary, nullable=False),
)

logs = Table(
    "logs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", Id(64), ForeignKey("sessions.id"), nullable=False),
    Column("line", Integer),  # its number in the session's own log; none where others added it
    Column("at", Utc, nullable=False),
    Column("text", Text, nullable=False),
    UniqueConstraint("session_id", "line", name="logs_line"),
    Index("logs_session", "session_id"),
)

turns = Table(
    "turns",
    metadata,
    Column("session_id", Id(64), ForeignKey("sessions.id"), primary_key=True),
    Column("turn", Integer, primary_key=True),  # from 0
    Column("digest", Id(64), nullable=False),  # of the report: the same one again adds nothing
    Column("before_step", Integer, nullable=False),  # how many steps there were
    Column("bytes", BigInteger, nullable=False),  # of all turns up to this one
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("cost_usd", Float(53)),
    Column("model_s", Float(53), nullable=False),  # from the request to the reply
    Column("source", String(16)),  # none if the agent or its client reports it
    Column("row", Json, nullable=False),  # the RecordedTurn
    UniqueConstraint("session_id", "digest", name="turns_digest"),
)

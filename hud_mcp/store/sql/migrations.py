"""The revisions of the tables, which bring a store of an earlier version up to date.

The function at each place of `REVISIONS` makes the version of that number. Its new columns may be
empty, because a server of the version before goes on beside it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from hud_mcp.base import libraries

if TYPE_CHECKING:
    from alembic.operations import Operations


def upgrade(connection: sa.Connection, after: int, to: int | None = None) -> None:
    """Run the revisions after a version, up to another or the newest, in its transaction."""
    op = libraries.Operations(libraries.MigrationContext.configure(connection))
    for revise in REVISIONS[after:to]:
        revise(op)


def _first(op: "Operations") -> None:
    op.create_table("versions", sa.Column("version", sa.Integer, primary_key=True))
    op.create_table("jobs", _id("id", primary_key=True), _time("created_at"), _json("row"))
    op.create_table(
        "sessions",
        _id("id", primary_key=True),
        _id("secret_digest", nullable=False),
        _id("job_id", sa.ForeignKey("jobs.id")),
        sa.Column("principal", sa.String(512)),
        _id("environment", nullable=False),
        _id("environment_version", nullable=False),
        _json("task"),
        _json("context"),
        sa.Column("seed", sa.Integer),
        sa.Column("prompt", sa.Text),
        sa.Column("receipt", sa.JSON),
        _time("started_at"),
        _time("ended_at", nullable=True),
        sa.UniqueConstraint("secret_digest", name="sessions_secret"),
    )
    op.create_index("sessions_job", "sessions", ["job_id"])
    op.create_table("steps", _session(primary_key=True), _number("step"), _json("row"))
    op.create_table(
        "logs",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        _session(nullable=False),
        _time("at"),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("logs_session", "logs", ["session_id"])


def _leases(op: "Operations") -> None:
    """Sessions that a server owns and another one can take over, snapshots, a job's tasks."""
    op.create_table(
        "servers",
        _id("id", primary_key=True),
        _id("machine", nullable=False),
        _time("started_at"),
        _time("beat_at"),
        sa.Column("beat_s", sa.Float(53), nullable=False),
    )
    op.create_table("job_tasks", _job(), _number("position"), _json("row"))
    op.create_table(
        "snapshots",
        _session(primary_key=True),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(_id("environment_digest"))
        sessions.add_column(sa.Column("reward_policy", sa.String(16)))
        sessions.add_column(_id("live_token"))
        sessions.add_column(_id("owner"))
        sessions.add_column(_time("answered_at", nullable=True))
        sessions.add_column(_time("released_at", nullable=True))
        sessions.alter_column("seed", type_=sa.BigInteger)
        sessions.create_unique_constraint("sessions_live", ["live_token"])
        sessions.drop_index("sessions_job")
        sessions.create_index("sessions_job", ["job_id", "started_at", "id"])
    _index_some(op, "sessions_going_on", ["owner"], where="ended_at IS NULL")
    with op.batch_alter_table("logs") as logs:
        logs.add_column(sa.Column("line", sa.Integer))
        logs.create_unique_constraint("logs_line", ["session_id", "line"])


def _plans(op: "Operations") -> None:
    """The runs of a job, and the starts of a task. All sessions of older jobs go on counting."""
    op.create_table("job_runs", _job(), _id("run", primary_key=True))
    _add(op, "jobs", sa.Column("planned", sa.Boolean))
    _add(op, "sessions", _id("start_key"), sa.Column("attempt", sa.Integer))
    op.create_index("sessions_start", "sessions", ["start_key", "attempt"])


def _records(op: "Operations") -> None:
    """The way in which steps are written. Existing steps were written before they were shown."""
    _add(op, "sessions", sa.Column("record", sa.String(16)), sa.Column("unflushed", sa.Boolean))


def _turns(op: "Operations") -> None:
    """The turns of models, and the token with which a session was started."""
    _add(op, "sessions", _id("token_digest"))
    columns = ["token_digest", "started_at"]
    _index_some(op, "sessions_token", columns, where="token_digest IS NOT NULL")
    op.create_table(
        "turns",
        _session(primary_key=True),
        _number("turn"),
        _id("digest", nullable=False),
        sa.Column("before_step", sa.Integer, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cached_tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Float(53)),
        sa.Column("model_s", sa.Float(53), nullable=False),
        _json("row"),
        sa.UniqueConstraint("session_id", "digest", name="turns_digest"),
    )


def _replicas(op: "Operations") -> None:
    """Servers that forward calls to each other, and connections that any of them can serve."""
    draining = sa.Column("is_draining", sa.Boolean)
    _add(op, "servers", sa.Column("advertised", sa.String(512)), _id("tag"), draining)
    op.create_table(
        "connections",
        _id("id", primary_key=True),
        _id("caller", nullable=False),
        _json("introduction"),
        _time("touched_at"),
    )
    op.create_index("connections_touched", "connections", ["touched_at"])
    op.create_table(
        "connection_sessions", _id("connection_id", primary_key=True), _session(primary_key=True)
    )
    op.create_index("connection_sessions_session", "connection_sessions", ["session_id"])


def _upkeep(op: "Operations") -> None:
    """The time that steps took, marks of pruning, and the orders of long lists."""
    _add(op, "steps", sa.Column("took_s", sa.Float(53)))
    _add(op, "jobs", sa.Column("pruned", sa.JSON))
    op.create_index("jobs_created", "jobs", ["created_at"])
    marks = (sa.Column("pruned_steps", sa.Integer), sa.Column("erased", sa.Boolean))
    _add(op, "sessions", sa.Column("pruned", sa.JSON), *marks)
    op.create_index("sessions_started", "sessions", ["started_at", "id"])
    _index_some(op, "sessions_ended", ["ended_at", "id"], where="ended_at IS NOT NULL")


def _quotas(op: "Operations") -> None:
    """The amount that a session has stored, and the order of a principal's starts."""
    _add(op, "sessions", sa.Column("stored_bytes", sa.BigInteger))
    counted = ["principal", "started_at", "stored_bytes"]
    op.create_index("sessions_principal", "sessions", counted)
    _index_some(op, "sessions_living", counted[:2], where="ended_at IS NULL")


def _facts(op: "Operations") -> None:
    """Facts that decide a session's end. They were in its log, which programs write too."""
    numbers = (sa.Column(name, sa.Integer) for name in ("overloaded", "lost_gradings"))
    names = ("was_stopped", "failed_in_grading", "died_in_grading")
    _add(op, "sessions", *numbers, *(sa.Column(name, sa.Boolean) for name in names))


def _gateways(op: "Operations") -> None:
    """The source of a turn. All turns before were reported."""
    _add(op, "turns", sa.Column("source", sa.String(16)))


REVISIONS: Sequence[Callable[["Operations"], None]] = (
    _first, _leases, _plans, _records, _turns, _replicas, _upkeep, _quotas, _facts,
    _gateways,
)  # fmt: skip


def _add(op: "Operations", table: str, *columns: "sa.Column[Any]") -> None:
    for column in columns:
        op.add_column(table, column)


def _index_some(op: "Operations", name: str, columns: list[str], *, where: str) -> None:
    """Add an index of the sessions that meet a condition."""
    some = sa.text(where)
    op.create_index(name, "sessions", columns, sqlite_where=some, postgresql_where=some)


def _id(name: str, *more: Any, **options: Any) -> "sa.Column[str]":
    return sa.Column(name, sa.String(64), *more, **options)


def _session(**options: Any) -> "sa.Column[str]":
    return _id("session_id", sa.ForeignKey("sessions.id"), **options)


def _job() -> "sa.Column[str]":
    return _id("job_id", sa.ForeignKey("jobs.id"), primary_key=True)


def _number(name: str) -> "sa.Column[int]":
    """A part of a key, from 0."""
    return sa.Column(name, sa.Integer, primary_key=True)


def _json(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.JSON, nullable=False)


def _time(name: str, *, nullable: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)

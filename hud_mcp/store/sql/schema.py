"""The store's tables. Importing this loads SQLAlchemy; only an opened store does.

A change here needs a revision in `migrations.py` and a higher `VERSION`. A test compares the result
of the revisions with the declared tables.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
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
    event,
    text,
)

from hud_mcp.store.sql.columns import Id, Json, Utc

VERSION = 9
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
    Column("row", Json, nullable=False),  # the RecordedTurn
    UniqueConstraint("session_id", "digest", name="turns_digest"),
)

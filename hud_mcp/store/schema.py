"""The store's tables. Importing this loads SQLAlchemy; only an opened store does.

A change here needs a revision in `migrations/versions/` and a higher `VERSION`; a test
compares what the revisions make with what is declared.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = [
    "VERSION",
    "job_tasks",
    "jobs",
    "logs",
    "metadata",
    "servers",
    "sessions",
    "snapshots",
    "steps",
    "versions",
]

VERSION = 2
"""Of the tables' form, and the number of the newest revision; a store of a newer one is refused."""

metadata = MetaData()

versions = Table("versions", metadata, Column("version", Integer, primary_key=True))

servers = Table(
    "servers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("beat_at", DateTime(timezone=True), nullable=False),  # its last sign of life
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("row", JSON, nullable=False),  # the Job
)

job_tasks = Table(
    "job_tasks",
    metadata,
    Column("job_id", String(64), ForeignKey("jobs.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("row", JSON, nullable=False),  # the Task
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String(64), primary_key=True),  # the trajectory's id; public
    Column("secret_digest", String(64), nullable=False),  # the SHA-256 of the session id
    Column("job_id", String(64), ForeignKey("jobs.id")),
    Column("principal", String(512)),
    Column("environment", String(64), nullable=False),
    Column("environment_version", String(64), nullable=False),
    Column("environment_digest", String(64)),
    Column("task", JSON, nullable=False),
    Column("context", JSON, nullable=False),
    Column("seed", BigInteger),
    Column("prompt", Text),
    Column("reward_policy", String(16)),
    Column("live_token", String(64)),  # opens the live page, and nothing else
    Column("owner", String(64)),  # the server that runs it; none where it waits for one
    Column("answered_at", DateTime(timezone=True)),
    Column("released_at", DateTime(timezone=True)),  # when its last server let go of it
    Column("receipt", JSON),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    UniqueConstraint("secret_digest", name="sessions_secret"),
    UniqueConstraint("live_token", name="sessions_live"),
    Index("sessions_job", "job_id"),
    Index("sessions_owner", "owner"),
)

steps = Table(
    "steps",
    metadata,
    Column("session_id", String(64), ForeignKey("sessions.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("row", JSON, nullable=False),  # the TrajectoryStep
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("session_id", String(64), ForeignKey("sessions.id"), primary_key=True),
    Column("step", Integer, nullable=False),  # after which it was taken
    Column("data", LargeBinary, nullable=False),
)

logs = Table(
    "logs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", String(64), ForeignKey("sessions.id"), nullable=False),
    Column("line", Integer),  # its number in the session's own log; none where others added it
    Column("at", DateTime(timezone=True), nullable=False),
    Column("text", Text, nullable=False),
    UniqueConstraint("session_id", "line", name="logs_line"),
    Index("logs_session", "session_id"),
)

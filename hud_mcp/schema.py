"""The store's tables. Importing this loads SQLAlchemy; only the store does, when it opens."""

from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = ["VERSION", "jobs", "logs", "metadata", "sessions", "steps", "versions"]

VERSION = 1
"""Of the tables' form; a store of a newer one is refused."""

metadata = MetaData()

versions = Table("versions", metadata, Column("version", Integer, primary_key=True))

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("row", JSON, nullable=False),  # the Job
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
    Column("task", JSON, nullable=False),
    Column("context", JSON, nullable=False),
    Column("seed", Integer),
    Column("prompt", Text),
    Column("receipt", JSON),
    Column("started_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
    UniqueConstraint("secret_digest", name="sessions_secret"),
    Index("sessions_job", "job_id"),
)

steps = Table(
    "steps",
    metadata,
    Column("session_id", String(64), ForeignKey("sessions.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("row", JSON, nullable=False),  # the TrajectoryStep
)

logs = Table(
    "logs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", String(64), ForeignKey("sessions.id"), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("text", Text, nullable=False),
    Index("logs_session", "session_id"),
)

"""The tables of version 0.1."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table("versions", sa.Column("version", sa.Integer, primary_key=True))
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("row", sa.JSON, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("secret_digest", sa.String(64), nullable=False),
        sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id")),
        sa.Column("principal", sa.String(512)),
        sa.Column("environment", sa.String(64), nullable=False),
        sa.Column("environment_version", sa.String(64), nullable=False),
        sa.Column("task", sa.JSON, nullable=False),
        sa.Column("context", sa.JSON, nullable=False),
        sa.Column("seed", sa.Integer),
        sa.Column("prompt", sa.Text),
        sa.Column("receipt", sa.JSON),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.UniqueConstraint("secret_digest", name="sessions_secret"),
    )
    op.create_index("sessions_job", "sessions", ["job_id"])
    op.create_table(
        "steps",
        sa.Column("session_id", sa.String(64), sa.ForeignKey("sessions.id"), primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True),
        sa.Column("row", sa.JSON, nullable=False),
    )
    op.create_table(
        "logs",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.String(64), sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("logs_session", "logs", ["session_id"])

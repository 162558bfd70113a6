"""Sessions that a server owns and another one can take over, snapshots, and a job's tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add them; what was recorded stays as it is."""
    op.create_table(
        "servers",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("machine", sa.String(64), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("beat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("beat_s", sa.Float(53), nullable=False),
    )
    op.create_table(
        "job_tasks",
        sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("row", sa.JSON, nullable=False),
    )
    op.create_table(
        "snapshots",
        sa.Column("session_id", sa.String(64), sa.ForeignKey("sessions.id"), primary_key=True),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("environment_digest", sa.String(64)))
        sessions.add_column(sa.Column("reward_policy", sa.String(16)))
        sessions.add_column(sa.Column("live_token", sa.String(64)))
        sessions.add_column(sa.Column("owner", sa.String(64)))
        sessions.add_column(sa.Column("answered_at", sa.DateTime(timezone=True)))
        sessions.add_column(sa.Column("released_at", sa.DateTime(timezone=True)))
        sessions.alter_column("seed", type_=sa.BigInteger)
        sessions.create_unique_constraint("sessions_live", ["live_token"])
        sessions.drop_index("sessions_job")
        sessions.create_index("sessions_job", ["job_id", "started_at", "id"])
    going_on = sa.text("ended_at IS NULL")
    op.create_index(
        "sessions_going_on",
        "sessions",
        ["owner"],
        sqlite_where=going_on,
        postgresql_where=going_on,
    )
    with op.batch_alter_table("logs") as logs:
        logs.add_column(sa.Column("line", sa.Integer))
        logs.create_unique_constraint("logs_line", ["session_id", "line"])

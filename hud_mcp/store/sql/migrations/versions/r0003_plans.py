"""Which runs a job consists of, and which of its principal's starts of a task a session is."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add them. Jobs that are there have no say in it: all of their sessions count, as before."""
    op.create_table(
        "job_runs",
        sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("run", sa.String(64), primary_key=True),
    )
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("planned", sa.Boolean))
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("start_key", sa.String(64)))
        sessions.add_column(sa.Column("attempt", sa.Integer))
        sessions.create_index("sessions_start", ["start_key", "attempt"])

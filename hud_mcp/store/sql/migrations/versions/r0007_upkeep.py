"""How long steps took, what was pruned, and the orders in which much is listed and removed."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add them. Of the steps that are there, their rows tell how long they took."""
    with op.batch_alter_table("steps") as steps:
        steps.add_column(sa.Column("took_s", sa.Float(53)))
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("pruned", sa.JSON))
        jobs.create_index("jobs_created", ["created_at"])
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("pruned", sa.JSON))
        sessions.add_column(sa.Column("pruned_steps", sa.Integer))
        sessions.add_column(sa.Column("erased", sa.Boolean))
        sessions.create_index("sessions_started", ["started_at", "id"])
    has_ended = sa.text("ended_at IS NOT NULL")
    op.create_index(
        "sessions_ended",
        "sessions",
        ["ended_at", "id"],
        sqlite_where=has_ended,
        postgresql_where=has_ended,
    )

"""How a session's steps are written, and whether some may be missing that its agent was told of."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add both. Every step of the sessions that are there was written before it was told."""
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("record", sa.String(16)))
        sessions.add_column(sa.Column("unflushed", sa.Boolean))

"""Servers that forward calls to each other, and connections that any of them can serve.

Everything is added, and may be empty: a server of the version before goes on beside it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add them. Servers that are there are no replicas."""
    with op.batch_alter_table("servers") as servers:
        servers.add_column(sa.Column("advertised", sa.String(512)))
        servers.add_column(sa.Column("tag", sa.String(64)))
        servers.add_column(sa.Column("is_draining", sa.Boolean))
    op.create_table(
        "connections",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("caller", sa.String(64), nullable=False),
        sa.Column("introduction", sa.JSON, nullable=False),
        sa.Column("touched_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("connections_touched", "connections", ["touched_at"])
    op.create_table(
        "connection_sessions",
        sa.Column("connection_id", sa.String(64), primary_key=True),
        sa.Column("session_id", sa.String(64), sa.ForeignKey("sessions.id"), primary_key=True),
    )
    op.create_index("connection_sessions_session", "connection_sessions", ["session_id"])

"""How much each session has stored, and in what order each principal started its sessions.

Both are added, and the amount may be empty: a server of the version before goes on beside it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add them. Sessions that are there count as having stored nothing."""
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("stored_bytes", sa.BigInteger))
        sessions.create_index("sessions_principal", ["principal", "started_at", "stored_bytes"])
    goes_on = sa.text("ended_at IS NULL")
    op.create_index(
        "sessions_living",
        "sessions",
        ["principal", "started_at"],
        sqlite_where=goes_on,
        postgresql_where=goes_on,
    )

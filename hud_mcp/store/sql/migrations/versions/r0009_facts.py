"""What decides how a session ends and was read from its log, which programs write too.

All may be empty: a server of the version before goes on beside it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add them. Of the sessions that are there, none of it is known."""
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("was_stopped", sa.Boolean))
        sessions.add_column(sa.Column("overloaded", sa.Integer))
        sessions.add_column(sa.Column("lost_gradings", sa.Integer))
        sessions.add_column(sa.Column("failed_in_grading", sa.Boolean))
        sessions.add_column(sa.Column("died_in_grading", sa.Boolean))

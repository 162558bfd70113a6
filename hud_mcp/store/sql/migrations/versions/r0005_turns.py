"""What models said, thought and used, and with which token a session was started."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add both. Sessions that are there have neither."""
    is_known = sa.text("token_digest IS NOT NULL")
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("token_digest", sa.String(64)))
    op.create_index(
        "sessions_token",
        "sessions",
        ["token_digest", "started_at"],
        sqlite_where=is_known,
        postgresql_where=is_known,
    )
    op.create_table(
        "turns",
        sa.Column("session_id", sa.String(64), sa.ForeignKey("sessions.id"), primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("before_step", sa.Integer, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cached_tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Float(53)),
        sa.Column("model_s", sa.Float(53), nullable=False),
        sa.Column("row", sa.JSON, nullable=False),
        sa.UniqueConstraint("session_id", "digest", name="turns_digest"),
    )

"""What Alembic runs: the revisions, on the connection that the store has opened."""

from alembic import context
from sqlalchemy import Connection

from hud_mcp.store.sql.schema import metadata

if hasattr(context, "config"):  # Alembic runs this; whoever else imports it runs no revision
    connection: Connection = context.config.attributes["connection"]
    # SQLite changes a table by making a new one.
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    context.run_migrations()

"""The store of sessions, trajectories, receipts and jobs: SQLite by default, PostgreSQL by URL."""

from hud_mcp.record.place import default_store_url
from hud_mcp.store.changes import NewStep
from hud_mcp.store.store import Store, opened_store

__all__ = ["NewStep", "Store", "default_store_url", "opened_store"]

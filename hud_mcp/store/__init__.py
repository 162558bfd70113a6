"""Where sessions, trajectories, receipts and jobs live: SQLite by default, PostgreSQL by URL.

Start with `store.py`; `writer.py` makes writes durable, `lease.py` says which server process
owns which session, `reading.py` reads records, `schema.py` declares the tables, `engine.py`
opens and migrates a database.
"""

from hud_mcp.store.store import Store, default_store_url

__all__ = ["Store", "default_store_url"]

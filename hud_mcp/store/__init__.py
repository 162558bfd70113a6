"""The store of sessions, trajectories, receipts and jobs: SQLite by default, PostgreSQL by URL.

Start with `store.py`, which writes, and `archive.py`, which reads. `changes.py` has the writes of
every call. Below them, `database.py` opens a database, `writer.py` makes writes durable, and
`lease.py` says which server process owns which session. `sql/` has the tables, the statements and
the migrations.
"""

from hud_mcp.record.place import default_store_url
from hud_mcp.store.store import NewStep, Store, opened_store

__all__ = ["NewStep", "Store", "default_store_url", "opened_store"]

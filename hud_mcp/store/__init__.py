"""Where sessions, trajectories, receipts and jobs live: SQLite by default, PostgreSQL by URL.

Start with `store.py`, what is written and by whom, and `archive.py`, what there is to read.
What every call writes is in `changes.py`. `database.py` is what that runs on: `writer.py` makes
writes durable, `lease.py` says which server process owns which session. `sql/` has the tables,
the statements and the migrations.
"""

from hud_mcp.record.place import default_store_url
from hud_mcp.store.store import NewStep, Store, opened_store

__all__ = ["NewStep", "Store", "default_store_url", "opened_store"]

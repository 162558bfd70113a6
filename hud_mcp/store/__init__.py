"""Where sessions, trajectories, receipts and jobs live: SQLite by default, PostgreSQL by URL.

Start with `store.py`, what is written and by whom, and `archive.py`, what there is to read.
Their statements are in `writing.py`, `stored_session.py`, `jobs.py` and `reading.py`; `damage.py`
names the rows that cannot be read. `database.py` is what they run on: `writer.py` makes writes
durable, `lease.py` says which server process owns which session, `schema.py` declares the tables,
`engine.py` opens and migrates a database.
"""

from hud_mcp.store.database import default_store_url
from hud_mcp.store.store import Store

__all__ = ["Store", "default_store_url"]

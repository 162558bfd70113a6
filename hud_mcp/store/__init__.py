"""Where sessions, trajectories, receipts and jobs live: SQLite by default, PostgreSQL by URL.

Start with `store.py`, what is written and by whom, and `archive.py`, what there is to read.
What every call writes is in `changes.py`, and `statements.py` gives it to the driver. The other
statements are in `writing.py`, `stored_session.py`, `jobs.py` and `reading.py`; `damage.py` names
the rows that cannot be read. `database.py` is what they run on: `writer.py` makes writes durable,
`soon.py` begins those that may wait a moment, `lease.py` says which server process owns which
session, `schema.py` declares the tables, `engine.py` opens and migrates a database.
"""

from hud_mcp.store.database import default_store_url
from hud_mcp.store.store import NewStep, Store

__all__ = ["NewStep", "Store", "default_store_url"]

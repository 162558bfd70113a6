"""Tables, statements and migrations: all that uses SQLAlchemy, which loads here and nowhere else.

Functions take an open connection, on the thread of whoever reads or writes. `schema.py` declares
the tables and `columns.py` their types, `engine.py` opens and migrates a database. `statements.py`
gives the driver what every call writes, and `lane.py` writes the steps of an event loop; the other
statements are in `writing.py`, `sessions.py`, `servers.py`, `jobs.py`, `plans.py`, `turns.py` and
`reading.py`. `damage.py` names the rows that cannot be read. Each module loads when it is first
used. Plugins have statements of their own.
"""

from typing import TYPE_CHECKING

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from sqlalchemy.exc import IntegrityError, SQLAlchemyError

    from hud_mcp.store.sql import (
        engine,
        jobs,
        lane,
        plans,
        reading,
        servers,
        sessions,
        statements,
        turns,
        writing,
    )
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.store.sql.engine",
        "hud_mcp.store.sql.jobs",
        "hud_mcp.store.sql.lane",
        "hud_mcp.store.sql.plans",
        "hud_mcp.store.sql.reading",
        "hud_mcp.store.sql.servers",
        "hud_mcp.store.sql.sessions",
        "hud_mcp.store.sql.statements",
        "hud_mcp.store.sql.turns",
        "hud_mcp.store.sql.writing",
        "sqlalchemy.exc:IntegrityError",
        "sqlalchemy.exc:SQLAlchemyError",
    )

__all__ = [
    "IntegrityError", "SQLAlchemyError", "engine", "jobs", "lane", "plans", "reading", "servers",
    "sessions", "statements", "turns", "writing",
]  # fmt: skip

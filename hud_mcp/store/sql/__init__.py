"""Tables, statements and migrations. SQLAlchemy loads here and nowhere else.

Functions take an open connection, on the thread of the reader or writer. They raise the errors of
the methods of `Store` that call them. `schema.py` declares the tables, `columns.py` their types and
damaged rows. `engine.py` opens a database, and `migrations.py` brings it up to date.
`statements.py` gives the driver the writes of every call, on the event loop's own lane or in the
writing thread. The other statements are in `sessions.py`, `servers.py`, `jobs.py`, `turns.py` and
`reading.py`. Each module loads when it is first used. Plugins have statements of their own.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from sqlalchemy.exc import IntegrityError as IntegrityError
    from sqlalchemy.exc import SQLAlchemyError as SQLAlchemyError

    from hud_mcp.store.sql import engine as engine
    from hud_mcp.store.sql import jobs as jobs
    from hud_mcp.store.sql import reading as reading
    from hud_mcp.store.sql import servers as servers
    from hud_mcp.store.sql import sessions as sessions
    from hud_mcp.store.sql import statements as statements
    from hud_mcp.store.sql import turns as turns
else:
    __getattr__ = lazy_names(__name__)

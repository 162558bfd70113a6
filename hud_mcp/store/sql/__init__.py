"""Tables, statements and migrations. SQLAlchemy loads here and nowhere else.

Functions take an open connection, on the thread of the reader or writer. They raise as the methods
of `Store` that call them.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from sqlalchemy.exc import IntegrityError as IntegrityError
    from sqlalchemy.exc import SQLAlchemyError as SQLAlchemyError

    from hud_mcp.store.sql import engine as engine
    from hud_mcp.store.sql import jobs as jobs
    from hud_mcp.store.sql import reading as reading
    from hud_mcp.store.sql import sessions as sessions
    from hud_mcp.store.sql import statements as statements
    from hud_mcp.store.sql import turns as turns
else:
    __getattr__ = lazy_names(__name__)

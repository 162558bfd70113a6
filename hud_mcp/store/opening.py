"""An open store, wherever somebody names it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from hud_mcp.store.store import Store

__all__ = ["Place", "opened_store"]

Place = Store | str | Path | None
"""An open store, its path or its URL; None for the default store."""


@asynccontextmanager
async def opened_store(place: Place) -> AsyncGenerator[Store]:
    """Have an open store; one that is opened for this is closed afterwards."""
    if isinstance(place, Store):
        yield place
        return
    store = Store(place)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()

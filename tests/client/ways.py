"""One task from Python, in five ways: the live environment, and the client in both eras."""

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from waiting import PATIENCE_S

import hud_mcp
import hud_mcp_client
import hud_mcp_client.sync

BENCH = Path(__file__).resolve().parents[1] / "env" / "environments" / "bench.py"
CLIENTS = ["async-2026-07-28", "async-2025-11-25", "sync-2026-07-28", "sync-2025-11-25"]
WAYS = ["live", *CLIENTS]


class Waiting:
    """An object whose calls wait, as one whose calls are awaited."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            work: Callable[[], Any] = functools.partial(found, *args, **kwargs)
            value = await anyio.to_thread.run_sync(work)
            return Waiting(value) if isinstance(value, hud_mcp_client.sync.Session) else value

        return call


@asynccontextmanager
async def connected(way: str, url: str, **options: Any) -> AsyncIterator[Any]:
    """A server by one of the client's ways."""
    kind, protocol = way.split("-", 1)
    module: Any = hud_mcp_client if kind == "async" else hud_mcp_client.sync
    server = module.connect(url, protocol=protocol, **options)
    server = server if kind == "async" else Waiting(server)
    try:
        with anyio.fail_after(PATIENCE_S):
            yield server
    finally:
        await server.close()


@asynccontextmanager
async def working(
    way: str, url: str, template: str = "say", **arguments: Any
) -> AsyncIterator[Any]:
    """A task of the bench, held in one of the ways."""
    if way == "live":
        task = hud_mcp.Task(env="bench", template=template, args=arguments)
        with anyio.fail_after(PATIENCE_S):
            async with hud_mcp.connect(str(BENCH), task=task) as live:
                yield live
        return
    async with connected(way, url) as server:
        session = await server.start(template=template, arguments=arguments or None)
        yield session
        await session.close()

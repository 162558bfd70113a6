"""Sessions of this process for live environments: one registry for each event loop and store.

A registry stays for a while after its last environment, so that the next one finds its browser
running. It ends in order with the event loop.
"""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.base import libraries
from hud_mcp.base.listening import LOOPBACK, base_url, listen, port_of
from hud_mcp.environment import Environment
from hud_mcp.errors import SessionEnded
from hud_mcp.plugins.hud import live
from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.record.trajectory import live_url
from hud_mcp.registry import service
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store

LOCAL_LIMITS = Limits(sessions=4096, sessions_per_caller=4096, idle_s=86_400, total_s=604_800)
"""The limits of a user's own program: it shares nothing, and may think for long."""

_LINGER_S = 30.0
"""Seconds that a registry without environments keeps shared resources, such as a browser."""


class Registry:
    """The sessions of one event loop on one store, and their live pages.

    The store closes with the registry. A closed registry accepts no more users.
    """

    def __init__(self, store: Store) -> None:
        self.sessions = Sessions((), store=store, limits=LOCAL_LIMITS, resumes=False)
        self.closed = False
        self._lives = _lives(self)
        self._users = 0
        self._pages: asyncio.Task[None] | None = None
        self._base: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Count one more user.

        From the first one on, the end of the event loop closes the registry.
        """
        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._users == 1:
            with suppress(StopAsyncIteration):
                await anext(self._lives)

    def leave(self) -> None:
        """Count one user less. After the last one, the registry ends in a while."""
        self._users -= 1
        if self._users == 0 and not self.closed:
            self.sessions.roster.close()
            self._timer = asyncio.get_running_loop().call_later(_LINGER_S, self._end)

    async def live_page(self, token: str) -> str | None:
        """Return the address of a session's live page, and serve the pages from now on."""
        if self._base is None:
            self._base = self._serve_pages()
        return live_url(self._base, token)

    async def close(self) -> None:
        """End every session, the shared resources, and the pages."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pages is not None:
            self._pages.cancel()
            await asyncio.wait({self._pages})
        await self.sessions.close()

    def _end(self) -> None:
        self.closed = True
        self._closing = asyncio.get_running_loop().create_task(self._lives.aclose())

    def _serve_pages(self) -> str:
        listener = listen(LOOPBACK, 0)
        address = base_url(LOOPBACK, port_of(listener))
        routes = service("live routes")(self.sessions.store, hosts=live.Hosts(LOOPBACK))

        async def serve() -> None:  # in a task of its own, which a loop that ends cancels first
            async with live.serving(libraries.Router(routes), listener):
                await anyio.sleep_forever()

        self._pages = asyncio.get_running_loop().create_task(serve(), name="live pages")
        return address


async def _lives(registry: Registry) -> AsyncGenerator[None]:
    """Close the registry at the end: an event loop that shuts down closes its generators."""
    try:
        while True:
            yield
    finally:
        with anyio.CancelScope(shield=True):
            await registry.close()


_registries: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, Registry]]" = (
    weakref.WeakKeyDictionary()
)


async def _registry(place: Store | str | Path | None) -> Registry:
    """Return the registry of this event loop on a store, with one user more."""
    given = place if isinstance(place, Store) else Store(place)
    key = (given.url, given.screenshots)
    here = _registries.setdefault(asyncio.get_running_loop(), {})
    # One registry for a store: two would not see each other's sessions, nor share a browser.
    found = here.get(key)
    if found is None or found.closed:
        found = here[key] = Registry(Store(given.url, screenshots=given.screenshots))
    await found.enter()
    return found


class LocalClient(Client):
    """Sessions of this process. Made by `open`; `close` leaves their registry."""

    def __init__(
        self,
        registry: Registry,
        environment: Environment,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._registry: Registry | None = registry
        self._on_close = on_close
        self._operations = Operations(
            registry.sessions, environment=environment, live_page=registry.live_page
        )

    @classmethod
    async def open(
        cls,
        environment: Environment,
        *,
        store: Store | str | Path | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> "LocalClient":
        """Join the sessions of this event loop on a store; None is the default store."""
        return cls(await _registry(store), environment, on_close)

    async def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation in this process."""
        if self._registry is None:
            raise SessionEnded("This environment is closed. Make another one with gym.make.")
        return await self._operations.perform(operation, params)

    async def close(self) -> None:
        """Leave the registry. It may be called twice."""
        registry, self._registry = self._registry, None
        if registry is None:
            return
        registry.leave()
        if self._on_close is not None:
            await self._on_close()

"""What a world is opened with, and what the worlds of one process share."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import anyio

from hud_mcp.base.contention import Contention

if TYPE_CHECKING:
    from hud_mcp.environment.template import Template

__all__ = ["Opening", "Shared", "SharedService"]


_KILLED_S = 0.1
"""How long closing may go on once what it waits for was killed."""


class SharedService(Protocol):
    """Something that the worlds of one process share, such as a browser."""

    async def close(self) -> None:
        """Release it. It may be called twice."""
        ...


@runtime_checkable
class Killable(Protocol):
    """A shared service with processes of its own."""

    def kill(self) -> None:
        """End them at once, from any thread. What was open is lost; again is not an error."""
        ...


ServiceT = TypeVar("ServiceT", bound=SharedService)


class Shared:
    """The services that the worlds of one process share, opened when first asked for.

    Attributes:
        contention: How long this process and its browsers waited for a processor or a lock.
    """

    def __init__(self) -> None:
        self.contention = Contention()
        self._services: dict[str, SharedService] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self._closing: list[SharedService] = []
        self._closed = False

    async def get(self, key: str, open_service: Callable[[], Awaitable[ServiceT]]) -> ServiceT:
        """Return the service under a key; the first caller opens it while others wait.

        Args:
            key: Names the service and every option that it was opened with.
            open_service: Called where there is none yet. If it raises, so does this
                call, and the next caller tries again.
        """
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._services:
                service = await open_service()
                if self._closed:
                    await service.close()
                    raise RuntimeError("the server is shutting down")
                self._services[key] = service
            return self._services[key]  # pyright: ignore[reportReturnType]  # a key has one type

    def forget(self, key: str, service: SharedService) -> None:
        """Let the next caller open a new one, unless somebody replaced it already."""
        if self._services.get(key) is service:
            del self._services[key]

    async def close(self, *, within_s: float | None = None) -> None:
        """Close all services at once; one that fails does not keep the others open.

        Args:
            within_s: How long they may take; then those with processes of their own are killed,
                and the others left. None for as long as it takes.

        Raises:
            ExceptionGroup: What services raised, once all of them were closed.
        """
        self._closed = True
        services, self._services = list(self._services.values()), {}
        if not services:
            return
        loop = asyncio.get_running_loop()
        closing = {loop.create_task(each.close(), name="close"): each for each in services}
        self._closing = services
        # Not by a scope: services shield their own end, which may wait for a browser that is slow.
        done, slow = await asyncio.wait(closing, timeout=within_s)
        for task in slow:
            _kill(closing[task])
            task.cancel()
        if slow:
            done |= (await asyncio.wait(slow, timeout=_KILLED_S))[0]
        found = [task.exception() for task in done if not task.cancelled()]
        failures = [each for each in found if isinstance(each, Exception)]
        self._closing = []
        if failures and not slow:
            raise ExceptionGroup("shared services failed to close", failures)

    def kill(self) -> None:
        """End the processes of all services at once, from any thread; nothing else is closed."""
        self._closed = True
        for service in [*self._services.values(), *self._closing]:
            _kill(service)


def _kill(service: SharedService) -> None:
    if isinstance(service, Killable):
        service.kill()


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """The conditions under which a world is opened.

    Attributes:
        context: Every feature of the spec's context space, checked and complete.
        seed: For whatever the world draws at random; None where nobody chose one.
        folder: Where the environment's file is; relative paths of a spec start there.
        shared: The process's shared services.
        log: Takes a line for the session's log.
        handle: Where a session is resumed, what its world gave last as its handle or
            snapshot; None where there is neither.
        allow: Hosts that the task's own row opens, where the kind of world lets a row do so.
        is_trusted: Whether the row is the user's own, and may name addresses of this machine
            and of private networks; one that was imported or fetched may not.
        template: The template that will run on the world; None outside of sessions.
        local_hosts: Hosts that any row may name, wherever they lead: the operator says so.
        names_targets: Whether each action's effect says what it hit, for functions that ask.
        principal: Who started the session; None for a caller without a name.
    """

    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = None
    folder: Path = field(default_factory=Path)
    shared: Shared = field(default_factory=Shared)
    log: Callable[[str], None] = lambda _line: None
    handle: bytes | None = field(default=None, repr=False)
    allow: tuple[str, ...] = ()
    is_trusted: bool = True
    template: "Template | None" = None
    local_hosts: tuple[str, ...] = ()
    names_targets: bool = False
    principal: str | None = None

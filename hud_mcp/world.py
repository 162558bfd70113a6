"""The protocol that every world implements, and what a world is opened with.

A *spec* declares a kind of world (`Browser(site="site/")`); opening it gives a *world*,
the live and private state that one session acts on. This module owns the contract and
imports no world. `tests/contract/` holds its conformance tests, for authors to run on
worlds of their own.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import anyio

from hud_mcp.action import Action, ActionEffect
from hud_mcp.contention import Contention
from hud_mcp.context import ContextSpace
from hud_mcp.errors import ActionFailed
from hud_mcp.observation import Look, Observation

__all__ = [
    "ActsAtOnce",
    "Elsewhere",
    "Mortal",
    "Opening",
    "Place",
    "Placed",
    "Restorable",
    "RestorableInPart",
    "Shared",
    "SharedService",
    "Stoppable",
    "World",
    "WorldSpec",
    "current_world",
]


@runtime_checkable
class World(Protocol):
    """The live state of one session.

    One caller at a time: a session never calls a world from two tasks at once, but
    may call it from different tasks in turn.
    """

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, and return when it has settled.

        Args:
            action: One of the types that the spec lists. Places are CSS pixels.

        Raises:
            ActionFailed: The world refused it, and is as it was before.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.

        If this call is cancelled, the action may or may not have happened, and the
        world can be used further.
        """
        ...

    async def observe(self, look: Look) -> Observation:
        """Return what the agent sees now; change nothing.

        Args:
            look: Which parts to observe. `look.image` is only set where the spec has a
                screen. The picture may exceed the budget; the session fits it.

        Raises:
            EnvironmentFailed: The world is broken; only `close` may be called from now on.
        """
        ...

    async def close(self) -> None:
        """Release everything that belongs to this world alone. Closing twice is no error."""
        ...


@runtime_checkable
class ActsAtOnce(World, Protocol):
    """A world that performs a list of actions in one go, as one on another thread should."""

    async def act_all(
        self, actions: Sequence[Action], keep: Callable[[ActionEffect], None]
    ) -> ActionFailed | None:
        """Perform actions in order, until one is refused or ends the episode.

        Args:
            actions: As for `act`.
            keep: Called with what each one did, as soon as it is done, on any thread.

        Returns:
            Why the next action was refused; None where none was.

        Raises:
            EnvironmentFailed: As for `act`; what was kept before, was done.

        If this call is cancelled, what was kept was done, the action under way may or may not
        have happened, and the world can be used further.
        """
        ...


@runtime_checkable
class Restorable(World, Protocol):
    """A world whose state can be written down, and taken up again in another process.

    What of the state is kept, the spec's docs say.
    """

    async def snapshot(self) -> bytes:
        """Return the state as it is now; change nothing.

        Raises:
            LimitReached: Something is too large to be kept; the text names it. The world goes
                on, and cannot come back to this moment.
            InvalidEnvironment: The author keeps something in it that cannot be written down.
                The same holds.
            SnapshotFailed: It could not be taken now. The same holds.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.

        If this call is cancelled, nothing has changed.
        """
        ...

    async def restore(self, data: bytes) -> None:
        """Take up what `snapshot` returned, here or in a process that has ended.

        Called on a world that was opened with the same context and seed and in which the
        template's setup ran as the first time. Objects that the template got from the world
        stay the world's: what they hold changes in place.

        Args:
            data: The whole of what `snapshot` returned.

        Raises:
            EnvironmentFailed: It cannot be taken up; the text says why. Only `close` may be
                called from now on.

        If this call is cancelled, only `close` may be called from now on.
        """
        ...


@runtime_checkable
class RestorableInPart(Restorable, Protocol):
    """A world that names what its snapshots do not have, and what it was brought back without."""

    @property
    def left_out(self) -> Sequence[str]:
        """What the last `snapshot` or `restore` was without, each thing with a reason.

        Only what may be missing: where it may not, there is no snapshot.
        """
        ...


@runtime_checkable
class Mortal(World, Protocol):
    """A world that can die while nobody calls it, as one in another process can.

    A session then knows that a call found it dead, and did not kill it.
    """

    @property
    def died(self) -> str | None:
        """Why only `close` may be called from now on; None while the world can be used."""
        ...


@runtime_checkable
class Elsewhere(World, Protocol):
    """A world that lives outside of this process, and goes on there when the process ends.

    Its setup is not run again when its session is brought back: `Opening.handle` is what it
    is found by.
    """

    async def handle(self) -> bytes:
        """Return what another process finds it by. Asked for once, at the prompt."""
        ...


@runtime_checkable
class Stoppable(World, Protocol):
    """A world in which what an agent started goes on by itself, and can be stopped for grading."""

    async def stop_agent(self) -> None:
        """Stop what goes on, when the answer is there. Files and the like stay as they are.

        Raises:
            ActionFailed: It cannot be stopped.
            EnvironmentFailed: The world is broken; only `close` may be called from now on.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a template runs that has a process of its own.

    Attributes:
        root: The world's folder, as the environment's file names it in this process.
        places: More names of it, this one among them.
        namespaces: Opens the namespaces in which the session's own folder is seen there, as
            descriptors to enter in this order; None where the folder is the machine's.
        owner: Who the files are to belong to that the template has made when it asks; None
            where they stay its own.
        follow_links: Whether the template follows links in the folder; None where that is so if
            it has made some itself, as links that an agent makes may lead anywhere.
        stand_in: What stands for the world in that process, as `module:Class`. It is made of a
            function that calls what `calls` names, and of names that only that process has for
            the folder. Its `broken_by_agent` says whose doing an error of the template's is.
        calls: What can be called from there; arguments and results are JSON.
    """

    root: Path
    places: tuple[Path, ...]
    namespaces: Callable[[], Sequence[int]] | None = None
    owner: int | None = None
    follow_links: bool | None = None
    stand_in: str
    calls: Mapping[str, Callable[..., Awaitable[Any]]] = field(repr=False)


@runtime_checkable
class Placed(World, Protocol):
    """A world that was opened for a template with a process of its own."""

    @property
    def place(self) -> Place | None:
        """Where that process is; None where the template runs in the server's."""
        ...


current_world: ContextVar[World | None] = ContextVar("current_world", default=None)
"""The world of the session whose template or function runs; None outside of sessions.

For graders that are called without one, as HUD's are."""


class SharedService(Protocol):
    """Something that the worlds of one process share, such as a browser."""

    async def close(self) -> None:
        """Release it. Closing twice is no error."""
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

    async def close(self) -> None:
        """Close all services at once; one that fails does not keep the others open.

        Raises:
            ExceptionGroup: What services raised, once all of them were closed.
        """
        self._closed = True
        services, self._services = list(self._services.values()), {}
        failures: list[Exception] = []

        async def close_one(service: SharedService) -> None:
            try:
                await service.close()
            except Exception as exc:  # noqa: BLE001  # raised below: here it would stop the others
                failures.append(exc)

        async with anyio.create_task_group() as group:
            for service in services:
                group.start_soon(close_one, service)
        if failures:
            raise ExceptionGroup("shared services failed to close", failures)


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a world is opened with.

    Attributes:
        context: Every feature of the spec's context space, checked and complete.
        seed: For whatever the world draws at random; None where nobody chose one.
        folder: Where the environment's file is; relative paths of a spec start there.
        shared: The process's shared services.
        log: Takes a line for the session's log.
        handle: Where a session is brought back, what its world gave last as its handle or
            snapshot; None where there is neither.
        allow: Hosts that the task's own row opens, where the kind of world lets a row do so.
        is_trusted: Whether the row is the user's own, and may name addresses of this machine
            and of private networks; one that was imported or fetched may not.
        apart: Whether the template runs in a process of its own, in the world's `Place`.
        local_hosts: Hosts that any row may name, wherever they lead: the operator says so.
        names_targets: Whether each action's effect says what it hit, for functions that ask.
    """

    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = None
    folder: Path = field(default_factory=Path)
    shared: Shared = field(default_factory=Shared)
    log: Callable[[str], None] = lambda _line: None
    handle: bytes | None = field(default=None, repr=False)
    allow: tuple[str, ...] = ()
    is_trusted: bool = True
    apart: bool = False
    local_hosts: tuple[str, ...] = ()
    names_targets: bool = False


class WorldSpec(Protocol):
    """The declaration of a kind of world. Constructing one does nothing."""

    @property
    def name(self) -> str:
        """The kind, in a word: `browser`, `none`."""
        ...

    @property
    def world_type(self) -> type[World]:
        """The class of what `open` returns; a template asks for it by annotation."""
        ...

    @property
    def actions(self) -> frozenset[str]:
        """The action types that `act` takes; of `ACTION_TYPES`, without `response`."""
        ...

    @property
    def has_screen(self) -> bool:
        """Whether an observation may carry a picture."""
        ...

    @property
    def replayable(self) -> bool:
        """Whether the same context, seed, actions and looks bring back the same state.

        And the same observations, up to how pictures are drawn. No seed is a seed too. A kind
        of world in which a task's row may open hosts has a `replays_with(hosts)` beside it, which
        says so for a session.
        """
        ...

    @property
    def context_space(self) -> ContextSpace:
        """The features in which worlds of this kind may differ."""
        ...

    async def open(self, opening: Opening) -> World:
        """Open a world.

        Raises:
            EnvironmentFailed: It cannot be opened; the text says why and what to do.

        If this call fails or is cancelled, nothing stays open.
        """
        ...

"""The declaration of a kind of world, and the conditions under which it opens one.

A *spec* declares a kind of world (`Browser(site="site/")`); opening it gives a *world*, the live
and private state of one session.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import anyio

from hud_mcp.base.contention import Contention
from hud_mcp.environment.world import Publish, SharedService, World
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.values.action import Action, ActionEffect, WaitAction
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.needs import Needs
from hud_mcp.values.observation import Look, Observation

if TYPE_CHECKING:
    from hud_mcp.environment.function import Function
    from hud_mcp.environment.template import Template
    from hud_mcp.environment.tool import Tool

__all__ = ["EmptyWorld", "NoWorld", "Opening", "Shared", "WorldSpec"]


_KILLED_S = 0.1
"""The longest time that closing goes on after the processes that it waits for were killed."""


@runtime_checkable
class Killable(Protocol):
    """A shared service with processes of its own."""

    def kill(self) -> None:
        """End its processes at once, from any thread. Open work is lost. It may be called twice."""
        ...


ServiceT = TypeVar("ServiceT", bound=SharedService)


class Shared:
    """The services that the worlds of one process share, opened when first asked for.

    `contention` counts the waits of this process and its browsers for a processor or a lock.
    """

    def __init__(self) -> None:
        self.contention = Contention()
        self._services: dict[str, SharedService] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self._closing: list[SharedService] = []
        self._closed = False

    async def get(self, key: str, open_service: Callable[[], Awaitable[ServiceT]]) -> ServiceT:
        """Return the service under a key; the first caller opens it while others wait.

        The key names every option of the opening. An error of the opening is raised here, and the
        next caller tries again.
        """
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._services:
                service = await open_service()
                if self._closed:  # during the opening: nobody else would close the service
                    await service.close()
                    raise RuntimeError("the server is shutting down")
                self._services[key] = service
            return self._services[key]  # pyright: ignore[reportReturnType]  # a key has one type

    def forget(self, key: str, service: SharedService) -> None:
        """Let the next caller open a new one, unless somebody replaced it already."""
        if self._services.get(key) is service:
            del self._services[key]

    async def close(self, *, within_s: float | None = None) -> None:
        """Close all services at once; a failure of one does not keep the others open.

        After `within_s` seconds, services with processes of their own are killed, and others are
        left. Errors of services are an `ExceptionGroup`, after all of them were closed.
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
        seed: The seed of the world's random choices; None if nobody chose one.
        folder: The folder of the environment's file; relative paths of a spec start there.
        shared: The process's shared services.
        log: A function that adds a line to the session's log.
        handle: The last handle or snapshot of a resumed session's world; None without one.
        allow: Hosts that the task's own row opens, if the kind of world lets a row do so.
        is_trusted: Whether the row is the user's own, and may name addresses of this machine
            and of private networks. An imported or fetched row may not.
        template: The template that will run on the world; None outside of sessions.
        local_hosts: Hosts that any row may name, wherever they lead, by the operator's choice.
        names_targets: Whether each action's effect names its target, for functions that ask.
        principal: The caller who started the session; None for a caller without a name.
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


class WorldSpec(ABC):
    """The declaration of a kind of world. Constructing one does nothing.

    Derive from it, give `name` and `world_type`, and write `open`. Everything else has a default;
    a member may be set on the class, in the constructor, or be a property.

    Attributes:
        name: The kind in one word, such as `browser`. It is a label only.
        world_type: The class of worlds that `open` returns. A template asks for it by annotation.
        actions: The action types that `act` accepts: some of `ACTION_TYPES`, without `response`.
        custom_actions: The custom actions, as `hud_mcp.actions` declares them; or the JSON schema
            of each one's arguments, by name. Agents read its `description`.
        tools_suffice: Whether its tools do everything that `custom` does. Lists of tools and
            actions then show only the tools.
        is_destructive: Whether an action may undo something. MCP hosts are told.
        open_world: Whether an action may reach beyond the session. MCP hosts are told.
        has_screen: Whether an observation may carry a picture.
        text_form: The number of the form of its text. Raise it if the same state reads differently,
            so that a session that an older version recorded still resumes by replay.
        context_space: The features that a context may set.
        spaces: The spaces of actions and observations as JSON, for programs, or None.
        replayable: Whether the same context, seed, actions and looks give the same state and
            observations again. Pictures may be drawn differently. No seed is a seed too.
        opens_nothing: Whether opening a world does nothing that could be lost. Its session may
            then be recorded after the world was opened.
        runs_commands: Whether agents run commands in it; `hud-mcp check` then forges by them.
        attacks: The names of attacks on graders that `attack` makes, for `hud-mcp check`.
        functions: Functions for `setup` and `evaluate` of tasks, beside the environment's own.
        tools: Tools for agents, beside the environment's own.
        prompts: Prompts of its own for a session, in MCP's form, by their names in lists.
        resources: Templates of its own resources, in MCP's form.
        needs: The resources of one session, if its environment does not say.
        endpoints: The direct ways to a session's world that a control channel publishes: each a
            `Publish`, its `module:name`, or a protocol that a plugin publishes, such as `ssh/2`.
    """

    name: str
    world_type: type[World]
    actions: frozenset[str] = frozenset({"wait"})
    custom_actions: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    tools_suffice: bool = False
    is_destructive: bool = True
    open_world: bool = True
    has_screen: bool = False
    text_form: int = 1
    context_space: ContextSpace = ContextSpace()
    spaces: Mapping[str, Any] | None = None
    replayable: bool = False
    opens_nothing: bool = False
    runs_commands: bool = False
    attacks: tuple[str, ...] = ()
    functions: "tuple[Function, ...]" = ()
    tools: "tuple[Tool, ...]" = ()
    prompts: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    resources: Sequence[Mapping[str, Any]] = ()
    needs: Needs = Needs()
    endpoints: tuple[Publish | str, ...] = ()

    @abstractmethod
    async def open(self, opening: Opening) -> World:
        """Open a world.

        Raises:
            EnvironmentFailed: It cannot be opened; the text gives the reason and a remedy.

        If this call fails or is cancelled, it leaves nothing open.
        """

    def check(self, folder: Path) -> None:  # noqa: B027  # most miss nothing
        """Check for missing requirements, before anything is opened, in the environment's folder.

        A missing one is an `InvalidEnvironment`, and the text names it.
        """

    def missing(self, folder: Path) -> str | None:  # noqa: ARG002  # for those that need something
        """Return the reason why no session can start here, as it follows a row's id; or None."""
        return None

    async def prepare(self, environment: Any) -> None:  # noqa: B027  # most need nothing
        """Find out what a server's lists need, before they are fixed; it may be called again."""

    async def attack(self, name: str, agent: Any, environment: Any) -> None:  # noqa: B027  # the same
        """Try for a reward without work, as one of `attacks`; the answer is given afterwards."""

    def files(self, folder: Path) -> Iterable[Path]:  # noqa: ARG002  # for those that have some
        """Return the files that the environment's digest covers beside its source."""
        return ()

    def replays_with(self, hosts: Sequence[str]) -> bool:  # noqa: ARG002  # for those that open some
        """Whether a session is replayable if its task's own row names these hosts."""
        return self.replayable

    def shares_setup(self, functions: "Sequence[Function]") -> bool:  # noqa: ARG002  # most do not
        """Whether runs of a group may share a setup that calls these functions.

        Return True only if they change nothing but the state that `World.snapshot_setup` stores.
        Opening a world and the functions must not depend on the session's seed.
        """
        return False


class EmptyWorld(World):
    """A live world without a screen, where time passes and nothing else happens."""

    _closed = False  # of the class, as thousands of worlds are open and none has anything else

    async def act(self, action: Action) -> ActionEffect:
        """Wait; any other action is an `ActionFailed`, and nothing happens."""
        self._check_open()
        if not isinstance(action, WaitAction):
            raise ActionFailed(f"There is nothing to {action.type!r} here. Use tools, or answer.")
        await anyio.sleep(action.time / 1000)
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002  # there is nothing to see
        """Return an empty observation for every look."""
        self._check_open()
        return Observation()

    async def close(self) -> None:
        """End the world; there is nothing to release. After it, calls raise `EnvironmentFailed`."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This world is closed. Start a new task.")


class NoWorld(WorldSpec):
    """The declaration of an environment without a world: questions, answers and `env.tool`."""

    name = "none"
    is_destructive = False
    open_world = False
    world_type = EmptyWorld
    replayable = True
    opens_nothing = True

    async def open(self, opening: Opening) -> World:  # noqa: ARG002  # nothing to open
        """Make a world of the type; this cannot fail."""
        return self.world_type()

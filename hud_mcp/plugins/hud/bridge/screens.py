"""The uses of a HUD environment's capabilities, and its screens: browser, desktop or robot."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

from hud_mcp.environment.spec import Shared
from hud_mcp.environment.world import World
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.plugins.hud.bridge.desktop import DesktopWorld
from hud_mcp.plugins.hud.bridge.remote_browser import RemoteBrowserWorld, attach_browser
from hud_mcp.plugins.hud.bridge.vnc import Vnc
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation

__all__ = [
    "Binding",
    "BrowserScreen",
    "DesktopScreen",
    "ForwardedScreen",
    "OpenScreen",
    "Screen",
    "Service",
    "ServiceT",
    "Uses",
    "browser_problem",
    "desktop_problem",
]


Binding = Mapping[str, Any]
"""A capability as the wire has it: name, protocol, url, params."""


class Service(Protocol):
    """A connection to a capability."""

    @property
    def is_open(self) -> bool:
        """Whether it can still be used."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class Screen(Service, Protocol):
    """The target of `step`, `act` and `screenshot`."""

    async def act(self, action: Action) -> ActionEffect: ...  # noqa: D102

    async def observe(self, look: Look) -> Observation: ...  # noqa: D102

    def screen_size(self) -> tuple[int, int] | None: ...  # noqa: D102

    def remembered(self) -> dict[str, Any]: ...  # noqa: D102

    def remember(self, facts: Mapping[str, Any]) -> None: ...  # noqa: D102


ServiceT = TypeVar("ServiceT", bound=Service)
OpenScreen = Callable[[Control, str, Binding, Shared], Awaitable[Screen]]


@dataclass(frozen=True)
class Uses:
    """The uses of a HUD environment's capabilities.

    Attributes:
        screen: The name of the capability on which actions work, or None.
        open_screen: Connects to it.
        actions: The action types that it takes.
        custom: The names of custom actions, each with the JSON schema of its arguments.
        shows: Whether it has a picture.
        shells: The names of the shells.
    """

    screen: str | None = None
    open_screen: OpenScreen | None = None
    actions: frozenset[str] = frozenset({"wait"})
    custom: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shows: bool = False
    shells: tuple[str, ...] = ()


def browser_problem(binding: Mapping[str, Any]) -> str | None:
    """Return the reason why a `cdp/1.3` capability cannot be bridged, or None."""
    scheme = urlsplit(str(binding.get("url"))).scheme
    if scheme in ("ws", "http"):
        return None
    return f"{scheme} cannot be carried through the control channel; ws and http can"


class _World(Protocol):
    @property
    def is_open(self) -> bool: ...

    def screen_size(self) -> tuple[int, int] | None: ...

    async def act(self, action: Action) -> ActionEffect: ...

    async def observe(self, look: Look) -> Observation: ...

    async def close(self) -> None: ...


WorldT = TypeVar("WorldT", bound=_World)


class ForwardedScreen(World, Generic[WorldT]):
    """The screen of a bridged session. The stream to its world closes after the world."""

    def __init__(self, world: WorldT, stack: AsyncExitStack) -> None:
        self._world = world
        self._stack = stack

    @property
    def is_open(self) -> bool:
        """Whether the connection is there."""
        return self._world.is_open

    def screen_size(self) -> tuple[int, int] | None:
        """Return the width and height of the screen in pixels."""
        return self._world.screen_size()

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, as the world does."""
        return await self._world.act(action)

    async def observe(self, look: Look) -> Observation:
        """Look at the screen, as the world does."""
        return await self._world.observe(look)

    def remembered(self) -> dict[str, Any]:
        """Return the facts that another process needs, because the agent knows them."""
        return {}

    def remember(self, facts: Mapping[str, Any]) -> None:
        """Go on with the facts of another process."""

    async def close(self) -> None:
        """Disconnect; the capability behind the HUD server goes on. It may be called twice."""
        await self._world.close()
        await self._stack.aclose()


class BrowserScreen(ForwardedScreen[RemoteBrowserWorld]):
    """A browser behind a HUD server. Made by `open`."""

    @classmethod
    async def open(
        cls, control: Control, name: str, binding: Mapping[str, Any], shared: Shared
    ) -> "BrowserScreen":
        """Attach through a stream of the control channel, or raise EnvironmentFailed."""
        stack = AsyncExitStack()
        params: Mapping[str, Any] = binding["params"]
        target = params.get("target_id")
        try:
            host, port = await stack.enter_async_context(control.forward(name))
            parts = urlsplit(str(binding["url"]))
            place, _, page = parts.path.partition("/devtools/page/")
            endpoint = f"http://{host}:{port}"
            if "/devtools/browser/" in place:
                endpoint = urlunsplit(("ws", f"{host}:{port}", place, "", ""))
            world = await attach_browser(
                endpoint, shared, target_id=str(target) if target else page or None
            )
        except BaseException:
            await stack.aclose()
            raise
        return cls(world, stack)

    def remembered(self) -> dict[str, Any]:
        """Return the facts that another process needs, such as the agent's refs."""
        return self._world.remembered()

    def remember(self, facts: Mapping[str, Any]) -> None:
        """Go on with the facts of another process."""
        self._world.remember(facts)


def desktop_problem() -> str | None:
    """Return the reason why an `rfb/3.8` capability cannot be bridged, or None."""
    return None if find_spec("vncdotool") else "it needs `pip install hud-mcp[vnc]`"


class DesktopScreen(ForwardedScreen[DesktopWorld]):
    """A desktop behind a HUD server. Made by `open`; another process needs no facts of it."""

    @classmethod
    async def open(
        cls,
        control: Control,
        name: str,
        binding: Mapping[str, Any],
        shared: Shared,  # noqa: ARG003  # nothing is shared between desktops
    ) -> "DesktopScreen":
        """Connect through a stream of the channel.

        EnvironmentFailed also tells a refused password.
        """
        stack = AsyncExitStack()
        params: Mapping[str, Any] = binding["params"]
        password = params.get("password")
        try:
            host, port = await stack.enter_async_context(control.forward(name))
            vnc = await Vnc.connect(host, port, password=str(password) if password else None)
        except BaseException:
            await stack.aclose()
            raise
        return cls(DesktopWorld(vnc), stack)

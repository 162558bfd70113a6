"""The uses of a HUD environment's capabilities."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from hud_mcp.environment.spec import Shared
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation

__all__ = ["Binding", "OpenScreen", "Screen", "Service", "ServiceT", "Uses"]

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

    def remember(self, told: Mapping[str, Any]) -> None: ...  # noqa: D102


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

"""The declaration of a kind of world: every member that the library looks for."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hud_mcp.environment.world.endpoint import Publish
from hud_mcp.environment.world.opening import Opening
from hud_mcp.environment.world.world import World
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.needs import Needs

if TYPE_CHECKING:
    from hud_mcp.environment.function import Function
    from hud_mcp.environment.tool import Tool

__all__ = ["WorldSpec"]


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
        context_space: The features that a context may set.
        spaces: The spaces of actions and observations as JSON, for programs, or None.
        replayable: Whether the same context, seed, actions and looks give the same state and
            observations again. Pictures may be drawn differently. No seed is a seed too.
        opens_nothing: Whether opening a world does nothing that could be lost. Its session may
            then be recorded after the world was opened.
        runs_commands: Whether agents run their own commands in it. `hud-mcp check` then tries
            graders with forgeries by commands.
        functions: Functions for `setup` and `evaluate` of tasks, beside the environment's own.
        tools: Tools for agents, beside the environment's own.
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
    context_space: ContextSpace = ContextSpace()
    spaces: Mapping[str, Any] | None = None
    replayable: bool = False
    opens_nothing: bool = False
    runs_commands: bool = False
    functions: "tuple[Function, ...]" = ()
    tools: "tuple[Tool, ...]" = ()
    needs: Needs = Needs()
    endpoints: tuple[Publish | str, ...] = ()

    @abstractmethod
    async def open(self, opening: Opening) -> World:
        """Open a world.

        Raises:
            EnvironmentFailed: It cannot be opened; the text says why and what to do.

        If this call fails or is cancelled, it leaves nothing open.
        """

    def check(self, folder: Path) -> None:  # noqa: B027  # most miss nothing
        """Check for missing requirements, before anything is opened.

        Args:
            folder: Where the environment's file is.

        Raises:
            InvalidEnvironment: A requirement is missing; the text names it.
        """

    def files(self, folder: Path) -> Iterable[Path]:  # noqa: ARG002  # for those that have some
        """The files that the environment's digest covers beside its source.

        Args:
            folder: Where the environment's file is.
        """
        return ()

    def replays_with(self, hosts: Sequence[str]) -> bool:  # noqa: ARG002  # for those that open some
        """Whether a session is replayable if its task's own row names these hosts."""
        return self.replayable

    def shares_setup(self, functions: "Sequence[Function]") -> bool:  # noqa: ARG002  # most do not
        """Whether runs of a group may share a setup that calls these functions.

        Return True only if they change nothing else than `World.snapshot_setup` stores.
        Opening a world and the functions must not depend on the session's seed.
        """
        return False

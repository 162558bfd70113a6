"""A tool of an environment's own: an author's async function, offered beside the core tools."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hud_mcp.environment.arguments import Arguments, source_line
from hud_mcp.environment.world.opening import SharedService
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.call import CORE_TOOLS

__all__ = ["Tool"]

_NAME = re.compile(r"[a-z0-9_]{1,40}")
"""Hosts prefix a tool's name and cap the whole at 64 characters."""


class Tool:
    """One declared tool.

    Args:
        function: An async function; a parameter annotated with the world's class
            receives the session's world, the others are JSON arguments.
        name: Its name; the function's by default.
        read_only: Whether it changes nothing.
        replayable: Whether calling it again with the same arguments, when a session is brought
            back after its server has ended, does to a new world what it did to the old one and
            nothing outside of it. A session that called one that is not is lost with its server.
        open_world: Whether it reaches what lies outside of the server, which hosts are told. None
            for what its environment's world says; one that is not replayable does.

    Raises:
        InvalidEnvironment: It is not async, its name is taken or not allowed, or an
            argument has no JSON schema.
    """

    def __init__(
        self,
        function: Callable[..., Awaitable[Any]],
        *,
        name: str | None = None,
        read_only: bool = False,
        replayable: bool = True,
        open_world: bool | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.where = source_line(function)
        self.read_only = read_only
        self.replayable = replayable
        self.open_world = open_world
        if not inspect.iscoroutinefunction(function):
            raise InvalidEnvironment(f"{self.where}: tool {self.name!r} must be an async function.")
        if not _NAME.fullmatch(self.name):
            raise InvalidEnvironment(
                f"{self.where}: {self.name!r} cannot name a tool; use a to z, 0 to 9 and _, at "
                "most 40 characters."
            )
        if self.name in CORE_TOOLS or self.name == "session":
            raise InvalidEnvironment(
                f"{self.where}: {self.name!r} is the name of a core tool; choose another."
            )
        self.description = inspect.cleandoc(function.__doc__ or "")
        self.arguments = Arguments(function, noun=f"tool {self.name!r}")
        if self.arguments.context_names:
            raise InvalidEnvironment(
                f"{self.where}: tool {self.name!r} takes the context as "
                f"{self.arguments.context_names[0]!r}, but only templates get it. Keep what the "
                "tool needs in the world."
            )
        if "session" in self.arguments.names:
            raise InvalidEnvironment(
                f"{self.where}: tool {self.name!r}: the argument 'session' is added by the server; "
                "rename yours."
            )

    def rename(self, name: str) -> None:
        """Offer it under another name."""
        self.name = name

    async def call(self, args: Mapping[str, Any], world: Any) -> Any:
        """Run it.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; it did not run.
        """
        worlds = dict.fromkeys(self.arguments.world_types, world)
        return await self.function(**self.arguments.parse(args), **worlds)

    async def call_in(
        self,
        args: Mapping[str, Any],
        world: Any,
        services: dict[str, SharedService],  # noqa: ARG002  # for tools that connect to something
    ) -> Any:
        """Run it in a session.

        Args:
            args: JSON arguments.
            world: The session's world.
            services: What the tools of the session have opened, by name; each is closed with
                the world.

        Raises:
            InvalidTask: As for `call`.
        """
        return await self.call(args, world)

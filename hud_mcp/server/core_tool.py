"""The record of a core tool: all that is to be known of it, for lists, schemas and dispatch."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hud_mcp.server.arguments import Argument, Arguments
from hud_mcp.server.call import Call
from hud_mcp.server.view import View

__all__ = ["CoreTool"]


@dataclass(frozen=True, kw_only=True)
class CoreTool:
    """A tool that a server has whatever its environments.

    What a client reads of it may depend on the `View`: on what is served, and to whom.

    Attributes:
        run: Performs a call, whose arguments are read already; the tool has its name.
        title: What people read.
        description: What a model reads, in at most 1,000 characters.
        arguments: What it takes, by name, in the order in which clients see them.
        required: The names of those that have to be given.
        begins: Whether it is for who begins sessions: an agent of one session has no such tool.
        is_step: Whether a call is a step of the session's record.
        read_only: Whether it changes nothing.
        destructive: Whether it may undo something.
        idempotent: Whether the same call again changes nothing more.
        open_world: Whether it reaches what lies outside of the server.
    """

    run: Callable[[Call], Awaitable[dict[str, Any]]]
    title: str
    description: str | Callable[[View], str]
    arguments: Mapping[str, Argument] | Callable[[View], Mapping[str, Argument]]
    required: tuple[str, ...] = ()
    begins: bool = False
    is_step: bool = False
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    @property
    def name(self) -> str:
        """What clients call it by."""
        return self.run.__name__

    def describe(self, view: View) -> str:
        """What a model of this view reads."""
        return self.description(view) if callable(self.description) else self.description

    def schema(self, view: View) -> dict[str, Any]:
        """The input schema that a client of this view sees."""
        return self._arguments_of(view).schema

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Read a call's arguments, whatever is served; see `Arguments.parse`.

        Raises:
            InvalidTask, LimitReached: As for `Arguments.parse`.
        """
        return self._all_arguments.parse(given, max_bytes=max_bytes)

    @cached_property
    def _all_arguments(self) -> Arguments:
        # What is not of the environments served is refused by the session, which knows why.
        return self._arguments_of(View.of())

    def _arguments_of(self, view: View) -> Arguments:
        taken = self.arguments(view) if callable(self.arguments) else self.arguments
        return Arguments(self.name, taken, self.required)

"""The record of a core tool: all that is to be known of it, for lists, schemas and dispatch."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from hud_mcp.server.arguments import Argument, Arguments
from hud_mcp.server.call import Call
from hud_mcp.server.view import View

__all__ = ["CoreTool"]


class _Parser(Protocol):
    """Reads the arguments of a call."""

    def __call__(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Read them.

        Raises:
            InvalidTask, LimitReached: As for `Arguments.parse`.
        """
        ...


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
        notes: Whether it is for an agent of one session alone, to report its model's turns.
        is_step: Whether a call is a step of the session's record.
        read_only: Whether it changes nothing.
        destructive: Whether it may undo something.
        idempotent: Whether the same call again changes nothing more.
        open_world: Whether it reaches what lies outside of the server.
        needs_screen: Whether it is of use only where a world has a screen.
        returns: The JSON schema of its structured data; None for a tool that returns none.
    """

    run: Callable[[Call], Awaitable[dict[str, Any]]]
    title: str
    description: str | Callable[[View], str]
    arguments: Mapping[str, Argument] | Callable[[View], Mapping[str, Argument]]
    required: tuple[str, ...] = ()
    begins: bool = False
    notes: bool = False
    is_step: bool = False
    read_only: bool = False
    destructive: bool | Callable[[View], bool] = False
    idempotent: bool = False
    open_world: bool | Callable[[View], bool] = False
    needs_screen: bool = False
    returns: Mapping[str, Any] | None = None

    def is_for(self, *, one_session: bool) -> bool:
        """Whether a client has it: an agent of one session, or anybody else."""
        return not (self.begins if one_session else self.notes)

    @property
    def name(self) -> str:
        """What clients call it by."""
        return self.run.__name__

    def describe(self, view: View) -> str:
        """What a model of this view reads."""
        return self.description(view) if callable(self.description) else self.description

    def is_shown(self, view: View) -> bool:
        """Whether clients of a view have it in their lists."""
        shows = view.screen or not self.needs_screen
        return shows and self.is_for(one_session=view.one_session)

    def is_destructive(self, view: View) -> bool:
        """Whether it may undo something, in what is served."""
        return self.destructive(view) if callable(self.destructive) else self.destructive

    def is_open_world(self, view: View) -> bool:
        """Whether it reaches what lies outside of the server, in what is served."""
        return self.open_world(view) if callable(self.open_world) else self.open_world

    def schema(self, view: View) -> dict[str, Any]:
        """The input schema that a client of this view sees."""
        return self._arguments_of(view).schema

    @cached_property
    def parse(self) -> _Parser:
        """Reads a call's arguments, whatever is served."""
        # What is not of the environments served is refused by the session, which knows why.
        return self._arguments_of(View.of()).parse

    def _arguments_of(self, view: View) -> Arguments:
        taken = self.arguments(view) if callable(self.arguments) else self.arguments
        return Arguments(self.name, taken, self.required)

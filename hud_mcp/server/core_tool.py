"""The record of a core tool: all that is to be known of it, for lists, schemas and dispatch."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hud_mcp.lazy import libraries
from hud_mcp.schema import plain_schema
from hud_mcp.server.arguments import Argument, Arguments
from hud_mcp.server.call import Call
from hud_mcp.server.view import View

if TYPE_CHECKING:
    from mcp_types import Tool

__all__ = ["CoreTool", "tool_entry"]

T = TypeVar("T", str, bool)


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

    def listed(self, view: View) -> "Tool":
        """The tool as clients of a view see it."""

        def of_view(given: T | Callable[[View], T]) -> T:
            return given(view) if callable(given) else given

        return tool_entry(
            self.name,
            self.title,
            of_view(self.description),
            self.schema(view),
            returns=self.returns,
            read_only_hint=self.read_only,
            destructive_hint=of_view(self.destructive),
            idempotent_hint=self.idempotent,
            open_world_hint=of_view(self.open_world),
        )

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


def tool_entry(
    name: str,
    title: str,
    description: str,
    schema: Mapping[str, Any],
    *,
    returns: Mapping[str, Any] | None = None,
    **hints: bool,
) -> "Tool":
    """A tool in a list.

    Args:
        name: What clients call.
        title: What people read.
        description: What a model reads.
        schema: Of its arguments; authors of worlds write a part of it themselves.
        returns: The schema of its structured data, if it returns any.
        hints: The hints of its annotations.
    """
    types = libraries.mcp_types
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=plain_schema(schema),
        output_schema=None if returns is None else plain_schema(returns),
        annotations=types.ToolAnnotations(title=title, **hints),
        # Claude Code otherwise hides the tools of a server behind a search.
        _meta={"anthropic/alwaysLoad": True},
    )

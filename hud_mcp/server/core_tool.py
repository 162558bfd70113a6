"""The record of a core tool, for lists and schemas; and the call of any tool, wire or none."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hud_mcp.base import libraries, telemetry
from hud_mcp.base.schema import plain_schema
from hud_mcp.errors import HudMcpError, LimitReached, sole_cause
from hud_mcp.record.model_turn import MODEL
from hud_mcp.server.arguments import Argument, Arguments
from hud_mcp.server.call import Call
from hud_mcp.server.reported import perform_reported
from hud_mcp.server.results import error_result
from hud_mcp.server.view import View
from hud_mcp.session.caller import STOPPING
from hud_mcp.session.receipts import told_to

if TYPE_CHECKING:
    from mcp_types import Tool

__all__ = ["CoreTool", "perform_call", "tool_entry"]

logger = logging.getLogger(__name__)

T = TypeVar("T", str, bool)


class _OwnTool(Protocol):
    """A tool of the environments' own."""

    name: str
    begins: bool

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Read a call's arguments."""
        ...

    async def run(self, call: Call) -> dict[str, Any]:
        """Perform a call whose arguments are read."""
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
    def parse(self) -> Callable[..., dict[str, Any]]:
        """Reads a call's arguments, of at most `max_bytes`, whatever is served."""
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


async def perform_call(call: Call, tool: CoreTool | _OwnTool) -> dict[str, Any]:
    """Read a call's arguments, and perform it; whatever goes wrong is told in the reply.

    Args:
        call: The call, with its arguments as they came.
        tool: What is called.
    """
    heard = telemetry.Span("call", {"tool": tool.name}) if telemetry.listeners else nullcontext()
    with heard as span:
        try:
            most_bytes = call.sessions.limits.argument_bytes
            call.arguments = tool.parse(call.arguments, max_bytes=most_bytes)
            if MODEL in call.meta:
                reply = await perform_reported(call, tool.run, begins=tool.begins)
            else:
                reply = await tool.run(call)
        except (Exception, BaseExceptionGroup) as exc:  # a model must be told something
            # A task group somewhere below wraps what its body raised.
            found = (sole_cause(exc) or exc) if isinstance(exc, BaseExceptionGroup) else exc
            if span is not None:
                span.fail(type(found).__name__)
            if not isinstance(found, HudMcpError):
                logger.exception("tool %s failed", tool.name)
            reply = _failure(call, tool, found)
    if reply.get("isError") and not call.sessions.takes_new:
        # It may have failed for that: another server knows what was done, and does the rest.
        meta: dict[str, Any] = reply.get("_meta") or {}
        return {**reply, "_meta": {**meta, STOPPING: True}}
    return reply


def _failure(call: Call, tool: CoreTool | _OwnTool, exc: BaseException) -> dict[str, Any]:
    """Tell what went wrong; a program goes by the class: it calls again, or raises it."""
    if not isinstance(exc, HudMcpError):
        return error_result(f"{tool.name} failed inside the server; its log says why.")
    wait_s = exc.retry_after_s if isinstance(exc, LimitReached) else None
    return error_result(
        told_to(call.caller, str(exc)), kind=type(exc).__name__, retry_after_s=wait_s
    )

"""Core tools: their record for lists and schemas, and the call of any tool on any wire."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import orjson
from pydantic import ValidationError

from hud_mcp.base import libraries, telemetry
from hud_mcp.base.reading import Reader, tell
from hud_mcp.base.schema import plain_schema
from hud_mcp.errors import (
    HudMcpError,
    InvalidTask,
    LimitReached,
    SessionNotFound,
    StoreFailed,
    sole_cause,
)
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument, Arguments
from hud_mcp.server.call import Call
from hud_mcp.server.results import error_result
from hud_mcp.server.view import View
from hud_mcp.session.caller import STOPPING
from hud_mcp.session.receipts import told_to
from hud_mcp.values.masking import masked
from hud_mcp.values.model_turn import MODEL, TURN_BYTES_IN_ALL, TURNS, ModelTurn, bounded

if TYPE_CHECKING:
    import asyncio

    from mcp_types import Tool

__all__ = ["CoreTool", "perform_call", "perform_reported", "read_turns", "report", "tool_entry"]


logger = logging.getLogger(__name__)

T = TypeVar("T", str, bool)


class _OwnTool(Protocol):
    """An own tool of the environments."""

    name: str
    begins: bool

    def parse(self, given: Mapping[str, Any], *, max_bytes: int) -> dict[str, Any]:
        """Read a call's arguments."""
        ...

    async def run(self, call: Call) -> dict[str, Any]:
        """Perform a call with read arguments."""
        ...


@dataclass(frozen=True, kw_only=True)
class CoreTool:
    """A tool of every server, with any environments.

    Its texts and schemas may depend on the `View`: on the served environments, and on the client.

    Attributes:
        run: Performs a call with read arguments; its name is the tool's.
        title: The text for people.
        description: The text for models, at most 1,000 characters.
        arguments: The arguments by name, in the order for clients.
        required: The names of the necessary arguments.
        begins: Whether it is for callers that begin sessions. An agent of one session lacks it.
        notes: Whether it is only for an agent of one session, to report its model's turns.
        is_step: Whether a call is a step of the session's record.
        read_only: Whether it changes nothing.
        destructive: Whether it may undo something.
        idempotent: Whether the same call again changes nothing more.
        open_world: Whether it reaches outside of the server.
        needs_screen: Whether it is useful only with a screen.
        needs_actions: Whether it is useful only with actions.
        needs_user: Whether it is useful only with a template that talks.
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
    needs_actions: bool = False
    needs_user: bool = False

    def is_useful(self, view: View) -> bool:
        """Whether clients of a view can do something with it."""
        useful = (view.screen or not self.needs_screen) and (view.acts or not self.needs_actions)
        return useful and (view.talks or not self.needs_user)

    def is_for(self, *, one_session: bool) -> bool:
        """Whether a client has the tool: an agent of one session, or any other."""
        return not (self.begins if one_session else self.notes)

    @property
    def name(self) -> str:
        """The name for clients."""
        return self.run.__name__

    def listed(self, view: View) -> "Tool":
        """Return the tool for clients of a view."""

        def of_view(given: T | Callable[[View], T]) -> T:
            return given(view) if callable(given) else given

        return tool_entry(
            self.name,
            of_view(self.description),
            self.schema(view),
            title=self.title,
            read_only_hint=self.read_only,
            destructive_hint=of_view(self.destructive),
            idempotent_hint=self.idempotent,
            open_world_hint=of_view(self.open_world),
        )

    def schema(self, view: View) -> dict[str, Any]:
        """Return the input schema for clients of a view."""
        return self._arguments_of(view).schema

    @cached_property
    def parse(self) -> Callable[..., dict[str, Any]]:
        """Reads a call's arguments, of at most `max_bytes`, for any served environments."""
        # The session refuses what its environment lacks, because it knows the reason.
        return self._arguments_of(View.of()).parse

    def _arguments_of(self, view: View) -> Arguments:
        taken = self.arguments(view) if callable(self.arguments) else self.arguments
        return Arguments(self.name, taken, self.required)


def tool_entry(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    *,
    title: str | None = None,
    **hints: bool,
) -> "Tool":
    """Return a tool for a list.

    Args:
        name: The name for clients.
        description: The text for models.
        schema: The schema of its arguments; authors of worlds write a part of it.
        title: The text for people; without it, hosts write the name in words.
        hints: The hints of its annotations.
    """
    types = libraries.mcp_types
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=plain_schema(schema, closed=True),
        annotations=types.ToolAnnotations(title=None, **hints),
        # Otherwise Claude Code hides the tools of a server behind a search.
        _meta={"anthropic/alwaysLoad": True},
    )


async def perform_call(call: Call, tool: CoreTool | _OwnTool) -> dict[str, Any]:
    """Read a call's arguments, and perform it. Every failure is told in the reply.

    Args:
        call: The call, with unread arguments.
        tool: The tool.
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
        except (Exception, BaseExceptionGroup) as exc:  # a model must get a text
            # A task group below wraps the exceptions of its body.
            found = (sole_cause(exc) or exc) if isinstance(exc, BaseExceptionGroup) else exc
            if span is not None:
                span.fail(type(found).__name__)
            if not isinstance(found, HudMcpError):
                logger.exception("tool %s failed", tool.name)
            reply = _failure(call, tool, found)
    if reply.get("isError") and not call.sessions.takes_new:
        # The stop may be the cause: another server knows what was done, and does the rest.
        meta: dict[str, Any] = reply.get("_meta") or {}
        return {**reply, "_meta": {**meta, STOPPING: True}}
    return reply


def _failure(call: Call, tool: CoreTool | _OwnTool, exc: BaseException) -> dict[str, Any]:
    """Return the text of a failure. A program goes by the class: it calls again, or raises it."""
    if not isinstance(exc, HudMcpError):
        return error_result(f"{tool.name} failed inside the server; its log says why.")
    wait_s = exc.retry_after_s if isinstance(exc, LimitReached) else None
    return error_result(
        told_to(call.caller, str(exc)), kind=type(exc).__name__, retry_after_s=wait_s
    )


MOST_AT_ONCE = 100
"""The most turns in one call."""

_OF_NO_SESSION = "The model's turn was not recorded: this call is of no session."

_YEARS = range(2000, 3000)
_MOST_S = 86_400.0
"""The longest time in a turn. A longer one is refused, so that it spoils no sum."""

_TURNS = Reader(ModelTurn.model_json_schema())
_TURN = Reader({"properties": {"turn": _TURNS.schema}})

_FULL = (
    f"A session records at most {TURNS} turns of its model, of {TURN_BYTES_IN_ALL} bytes in all; "
    "{count} of these were not recorded. The session goes on."
)


def read_turns(given: Any, *, max_bytes: int | None = None) -> list[ModelTurn]:
    """Read one turn, or a list of turns. Keys are masked, and long texts are cut.

    Args:
        given: The turns as sent; `null` counts as absent, and is not a turn.
        max_bytes: The largest size as JSON; None if it was checked already.

    Raises:
        InvalidTask: The value is no turn; the text names the field.
    """
    if max_bytes is not None and (size := _size(given)) > max_bytes:
        raise InvalidTask(f"No turn of a model: it has {size} bytes; at most {max_bytes} are read.")
    if given is None:
        return []
    rows = cast("list[Any]", given) if isinstance(given, list) else [given]
    if len(rows) > MOST_AT_ONCE:
        raise InvalidTask(f"{len(rows)} turns in one call; at most {MOST_AT_ONCE} are taken.")
    turns: list[ModelTurn] = []
    for i, row in enumerate(rows):
        told = _TURN.read({"turn": row}).get("turn", row)
        try:
            turns.append(_read(told))
        except (ValueError, RecursionError) as exc:
            which = f"turn {i}: " if len(rows) > 1 else ""
            raise InvalidTask(f"No turn of a model: {which}{_fault(exc, told)}") from None
    return turns


def _size(given: Any) -> int:
    try:
        return len(orjson.dumps(given))
    except TypeError:
        raise InvalidTask("No turn of a model: it is nested too deeply.") from None


def _read(row: Any) -> ModelTurn:
    turn = ModelTurn.model_validate(row)
    for name, at in (("started_at", turn.started_at), ("ended_at", turn.ended_at)):
        if at.year not in _YEARS:
            raise _Unbelievable(f"{name!r} is in the year {at.year}")
    kept = bounded(turn)
    if abs(kept.latency_s) > _MOST_S:
        raise _Unbelievable(f"'ended_at' is {kept.latency_s:.0f} s after 'started_at'")
    return kept


class _Unbelievable(ValueError):
    """Times that no turn has; the text names the fault."""


def _fault(exc: Exception, row: Any) -> str:
    if isinstance(exc, _Unbelievable):
        return f"{exc}."
    if not isinstance(exc, ValidationError):
        return "it is nested too deeply."
    # It may have a key, which the log and the reply must not have, and no part of it.
    shown = orjson.loads(masked(orjson.dumps(row).decode()))
    return masked(tell(_TURNS.faults(exc, shown)[:1]))


async def report(call: Call, turns: Sequence[ModelTurn]) -> str | None:
    """Record turns in a call's session; return the fault, if any.

    Raises:
        HudMcpError: The call names no session of its caller.
    """
    return await _outcome(await _hand_over(call, turns))


async def _hand_over(call: Call, turns: Sequence[ModelTurn]) -> "asyncio.Future[int]":
    """Have turns written before the call's own writes."""
    found = await call.find()
    if isinstance(found, Receipt):
        return call.sessions.store.add_turns(found.trajectory, turns)
    store, steps = call.sessions.store, found.steps
    return store.add_turns(found.trajectory_id, turns, before_step=steps)


async def _outcome(writing: "asyncio.Future[int]") -> str | None:
    try:
        left_out = await writing
    except StoreFailed as exc:
        return f"The model's turn was not recorded. {exc}"
    return _FULL.format(count=left_out) if left_out else None


async def perform_reported(
    call: Call, run: Callable[[Call], Awaitable[dict[str, Any]]], *, begins: bool
) -> dict[str, Any]:
    """Perform a call that reports the turn of the model behind it, and record the turn first.

    Args:
        call: The call, with the turn in its `_meta`.
        run: Performs it.
        begins: Whether it begins a session, which the turn then belongs to.

    Raises:
        HudMcpError: The call's own error.
    """
    problem: str | None = None
    writing: asyncio.Future[int] | None = None
    try:
        turns = read_turns(call.meta[MODEL], max_bytes=call.sessions.limits.argument_bytes)
        if turns and not begins:
            writing = await _hand_over(call, turns)
            writing.add_done_callback(_note_failure)
    except InvalidTask as exc:
        problem, turns = str(exc), []
    except SessionNotFound:  # the call itself raises this, unless it needs no session
        problem, turns = _OF_NO_SESSION, []
    reply = await run(call)
    if turns and begins:
        problem = await _report_start(call, turns, reply)
    if writing is not None:
        problem = await _outcome(writing)
    if problem is None:
        return reply
    # any call may have a fault, and a log that nobody reads would block the server
    logger.debug("%s", problem)
    meta: Mapping[str, Any] = reply.get("_meta") or {}
    return {**reply, "_meta": {**meta, MODEL: {"error": problem}}}


async def _report_start(
    call: Call, turns: Sequence[ModelTurn], reply: Mapping[str, Any]
) -> str | None:
    """Record turns in the session that a call has begun."""
    begun: Mapping[str, Any] = reply.get("structuredContent") or {}
    session = begun.get("session")
    here = None if not session else call.sessions.here(session, call.caller)
    if here is None:
        return _OF_NO_SESSION
    return await _outcome(call.sessions.store.add_turns(here.trajectory_id, turns, before_step=0))


def _note_failure(writing: "asyncio.Future[int]") -> None:
    """Retrieve the error of a write, even if the call fails before."""
    if not writing.cancelled() and isinstance(exc := writing.exception(), HudMcpError):
        logger.warning("a model's turn was not recorded: %s", exc)

"""The record of a core tool, for lists and schemas; and the call of any tool, wire or none."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import orjson
from pydantic import ValidationError

from hud_mcp.base import libraries, telemetry
from hud_mcp.base.absent import drop_absent
from hud_mcp.base.schema import fault_words, plain_schema
from hud_mcp.errors import (
    HudMcpError,
    InvalidTask,
    LimitReached,
    SessionNotFound,
    StoreFailed,
    clipped,
    sole_cause,
)
from hud_mcp.record.masking import masked
from hud_mcp.record.model_turn import MODEL, ModelTurn
from hud_mcp.record.recorded_turn import TURN_BYTES_IN_ALL, TURNS, bounded
from hud_mcp.record.trajectory import Receipt
from hud_mcp.server.arguments import Argument, Arguments
from hud_mcp.server.call import Call
from hud_mcp.server.results import error_result
from hud_mcp.server.view import View
from hud_mcp.session.caller import STOPPING
from hud_mcp.session.receipts import told_to

if TYPE_CHECKING:
    import asyncio

    from mcp_types import Tool

__all__ = ["CoreTool", "perform_call", "perform_reported", "read_turns", "report", "tool_entry"]


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


MOST_AT_ONCE = 100
"""Turns in one call."""

_OF_NO_SESSION = "The model's turn was not recorded: this call is of no session."

_YEARS = range(2000, 3000)
_MOST_S = 86_400.0
"""Between the times of one turn: more is not believed, so that no sum is spoilt by it."""

_SCHEMA = ModelTurn.model_json_schema()

_FULL = (
    f"A session records at most {TURNS} turns of its model, of {TURN_BYTES_IN_ALL} bytes in all; "
    "{count} of these were not recorded. The session goes on."
)


def read_turns(given: Any, *, max_bytes: int | None = None) -> list[ModelTurn]:
    """Read one turn, or several in a list; keys are masked, and what is too large is cut.

    Args:
        given: What came; `null` counts as absent, and is not a turn.
        max_bytes: How large all of it may be, as JSON; None where that is known already.

    Raises:
        InvalidTask: It is none; the text names the field.
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
        try:
            turns.append(_read(row))
        except (ValueError, RecursionError) as exc:
            which = f"turn {i}: " if len(rows) > 1 else ""
            raise InvalidTask(f"No turn of a model: {which}{_fault(exc)}.") from None
    return turns


def _size(given: Any) -> int:
    try:
        return len(orjson.dumps(given))
    except TypeError:
        raise InvalidTask("No turn of a model: it is nested too deeply.") from None


def _read(row: Any) -> ModelTurn:
    if isinstance(row, str):
        turn = ModelTurn.model_validate_json(row)
    else:
        told = cast("dict[str, Any]", row)
        kept = drop_absent(told, _SCHEMA) if isinstance(row, dict) else told
        turn = ModelTurn.model_validate(kept)
    for name, at in (("started_at", turn.started_at), ("ended_at", turn.ended_at)):
        if at.year not in _YEARS:
            raise _Unbelievable(f"{name!r} is in the year {at.year}")
    kept = bounded(turn)
    if abs(kept.latency_s) > _MOST_S:
        raise _Unbelievable(f"'ended_at' is {kept.latency_s:.0f} s after 'started_at'")
    return kept


class _Unbelievable(ValueError):
    """Times that no turn has; the text says why."""


def _fault(exc: Exception) -> str:
    if isinstance(exc, _Unbelievable):
        return str(exc)
    if not isinstance(exc, ValidationError):
        return "it is nested too deeply"
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{where!r} is missing"
    if first["type"] == "extra_forbidden":
        return masked(f"there is no {where!r}; it takes {', '.join(ModelTurn.model_fields)}")
    given = first["input"]  # with a key perhaps, which the log and the reply must not have
    said = (
        f"{fault_words(first)}, got {clipped(masked(given) if isinstance(given, str) else given)}"
    )
    return masked(f"{where!r}: {said}" if where else said)


async def report(call: Call, turns: Sequence[ModelTurn]) -> str | None:
    """Record turns in the session that a call means; return what is wrong, if something is.

    Raises:
        HudMcpError: The call means no session that its caller has.
    """
    return await _outcome(await _hand_over(call, turns))


async def _hand_over(call: Call, turns: Sequence[ModelTurn]) -> "asyncio.Future[int]":
    """Have turns written before whatever the call has written itself."""
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
    """Perform a call that says what the model did that made it; record that before.

    Args:
        call: The call; its `_meta` has the turn.
        run: Performs it.
        begins: Whether it begins a session, to which the turn belongs then.

    Raises:
        HudMcpError: As the call itself does.
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
    except SessionNotFound:  # the call itself says so, unless it needs none
        problem, turns = _OF_NO_SESSION, []
    reply = await run(call)
    if turns and begins:
        problem = await _report_start(call, turns, reply)
    if writing is not None:
        problem = await _outcome(writing)
    if problem is None:
        return reply
    logger.debug("%s", problem)  # any call may have one, and a log that nobody reads stops us
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
    """Have the error read, also where the call itself fails."""
    if not writing.cancelled() and isinstance(exc := writing.exception(), HudMcpError):
        logger.warning("a model's turn was not recorded: %s", exc)

"""What a call says of the model that made it: read, and recorded before the step that it leads to.

It costs no call anything: where it cannot be read or recorded, the call is performed all the
same, and its reply says in `_meta` what is wrong.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import orjson
from pydantic import ValidationError

from hud_mcp.base.absent import drop_absent
from hud_mcp.base.schema import fault_words
from hud_mcp.errors import HudMcpError, InvalidTask, SessionNotFound, StoreFailed, clipped
from hud_mcp.record.masking import masked
from hud_mcp.record.model_turn import MODEL, ModelTurn
from hud_mcp.record.recorded_turn import TURN_BYTES_IN_ALL, TURNS, bounded
from hud_mcp.record.trajectory import Receipt
from hud_mcp.server.call import Call

if TYPE_CHECKING:
    import asyncio

__all__ = ["perform_reported", "read_turns", "report"]

logger = logging.getLogger(__name__)

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

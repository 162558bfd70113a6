"""A model's turns as people read them, beside the steps that they led to."""

from collections.abc import Iterator
from datetime import datetime

from hud_mcp.record.model_turn import ModelCall
from hud_mcp.record.recorded_turn import RecordedTurn
from hud_mcp.record.values import Record
from hud_mcp.show.lines import Line, block, json_text, labelled, seconds_between, visible

__all__ = ["call_text", "placed", "removed_text", "turn_facts", "turn_lines"]


def placed(record: Record) -> dict[int, list[RecordedTurn]]:
    """A record's turns by the step before which each one stands; in order."""
    found: dict[int, list[RecordedTurn]] = {}
    for turn in record.turns:
        found.setdefault(turn.before_step, []).append(turn)
    return found


def turn_lines(turn: RecordedTurn, began: datetime, *, full: bool) -> Iterator[Line]:
    """Yield a turn line by line: what it used, thought, said and called."""
    yield Line("text", "")
    after = seconds_between(began, turn.started_at)
    took = seconds_between(turn.started_at, turn.ended_at)
    yield Line("model", f"turn {turn.number + 1}  model  at {after}, took {took}")
    for name, value in turn_facts(turn):
        yield from labelled(name, value, indent="  ")
    if turn.reasoning:
        yield from block("thought", turn.reasoning, full=full, indent="  ")
    if turn.text:
        yield from block("said", turn.text, full=full, indent="  ")
    for call in turn.calls:
        yield from block("called", call_text(call), full=full, indent="  ")
    if turn.error:
        yield from block("error", turn.error, full=full, indent="  ", style="error")
    for name, value in removed_text(turn):
        yield from labelled(name, value, indent="  ")


def turn_facts(turn: RecordedTurn) -> list[tuple[str, str]]:
    """Which model it was, how it was set, and what it used."""
    facts = [
        ("model", turn.model or ""),
        ("settings", json_text(turn.settings) if turn.settings else ""),
        ("tokens", _tokens_text(turn)),
        ("cost", "" if turn.cost_usd is None else f"${turn.cost_usd:.6f}"),
        ("stopped", turn.stop_reason or ""),
    ]
    return [(name, value) for name, value in facts if value]


def removed_text(turn: RecordedTurn) -> list[tuple[str, str]]:
    """What was removed of a turn, and when."""
    return [
        ("removed", f"{', '.join(each.fields)}, on {each.at:%Y-%m-%d %H:%M:%S} UTC")
        for each in turn.redactions
    ]


def call_text(call: ModelCall) -> str:
    """A call as the model made it."""
    given = call.arguments
    arguments = given if isinstance(given, str) else json_text(given)
    return visible(f"{call.name} {arguments}")


def _tokens_text(turn: RecordedTurn) -> str:
    usage = turn.usage
    parts = [
        ("in", usage.input),
        ("cached", usage.cached or None),
        ("written to the cache", usage.cache_write or None),
        ("out", usage.output),
        ("of reasoning", usage.reasoning or None),
    ]
    return ", ".join(f"{count:,} {name}" for name, count in parts if count is not None)

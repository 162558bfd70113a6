"""The steps that a run's turns led to, by their calls: what each says, and what came back of it.

An agent's client makes the calls, and sends no id of a model's call with them. A call is a step if
both have one name and equal arguments, and if the step's text stands in the result that a later
request gives for the call. So parallel agents of one session are told apart. Replies and steps are
seen here; of an agent's own words only results count, and they choose among equal steps.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hud_mcp.agents.agent import answer_text
from hud_mcp.errors import InvalidAction
from hud_mcp.plugins.models.gateway.dialects.body import canonical, dict_of, dicts_of, text_of
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.values.action import parse_action, parse_actions
from hud_mcp.values.call import ACT, RESPONSE, SCREENSHOT, STEP
from hud_mcp.values.masking import masked
from hud_mcp.values.model_turn import ModelCall, RecordedTurn

__all__ = ["joined"]

_BESIDE = ("session", "observe", "after_step")
"""Arguments of the session's tools that no action has."""
_HEAD_CHARS = 300
"""Programs cut long results, and keep their beginnings."""
_FOLDED = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\W+", re.DOTALL)

_NEAR = 64
"""The most steps that one call is compared with."""
_KINDS = ("step", "act", "screenshot", "tool", "response")

_Place = tuple[int, int]
"""A turn's number, and the place of a call in it."""
_Form = tuple[str, bytes]
"""A tool's name, and its arguments in one form."""


@dataclass(frozen=True)
class _Result:
    """The text that a request gives for a call of a turn before it; it came before step `until`."""

    text: str
    until: int

    @cached_property
    def folded(self) -> str:
        return _fold(self.text)

    def shows(self, step: TrajectoryStep) -> int:
        """Return how much of a step's text it has: 2 for all, 1 for each beginning, 0 for less."""
        if step.kind in ("response", "screenshot"):  # their texts are the record's alone
            return 2
        texts = [step.error or "", *step.notes, step.observation_text or ""]
        folded = [(_fold(text), _fold(masked(text))) for text in texts]
        if all(any(form in self.folded for form in forms) for forms in folded):
            return 2
        return int(all(any(f[:_HEAD_CHARS] in self.folded for f in forms) for forms in folded))


def joined(
    turns: Sequence[RecordedTurn], steps: Sequence[TrajectoryStep]
) -> tuple[RecordedTurn, ...]:
    """Return the turns of a session with the steps of their calls; each step belongs to one call.

    A turn without such a call stands where it was recorded, as do the turns that were reported.
    """
    seen = [turn for turn in turns if turn.source is not None]
    free = dict[_Form, list[TrajectoryStep]]()
    for step in steps:
        if step.kind in _KINDS:
            free.setdefault(_made(step), []).append(step)
    tools = {tool for tool, _ in free}
    results = _results(seen)
    begins = {turn.number: turn.before_step for turn in seen}
    found = dict[_Place, int]()
    for has_result in (True, False):  # calls without a result take what is left
        for turn in seen:
            # A program may make a call before the whole reply has come.
            first = begins.get(-1 if turn.after is None else turn.after, 0)
            for place, call in enumerate(turn.calls):
                at, wanted = (turn.number, place), _wanted(call, tools)
                equal = free.get(wanted, []) if wanted else []
                if (at in results) is not has_result or not equal:
                    continue
                step = _best(equal, turn.before_step, first, results.get(at))
                if step is not None:
                    found[at] = step.index
                    equal.remove(step)
    return tuple(turn if turn.source is None else _placed(turn, found) for turn in turns)


def _best(
    equal: Sequence[TrajectoryStep], before: int, first: int, result: _Result | None
) -> TrajectoryStep | None:
    """Return the step whose text a result shows most of; the first one after the turn, if equal."""
    near = bisect_left(equal, first, key=lambda step: step.index)
    ranked = [
        ((step.index < before, -shown, step.index), step)
        for step in equal[near : near + _NEAR]
        if (result is None or step.index < result.until)
        and (shown := 1 if result is None else result.shows(step))
    ]
    return min(ranked, key=lambda each: each[0])[1] if ranked else None


def _placed(turn: RecordedTurn, found: Mapping[_Place, int]) -> RecordedTurn:
    own = tuple(found.get((turn.number, place)) for place in range(len(turn.calls)))
    led = [index for index in own if index is not None]
    if led:
        place = {"before_step": min(led), "until_step": max(led) + 1}
        return turn.model_copy(update={**place, "call_steps": own})
    taken = frozenset(found.values())
    led = [index for index in turn.steps if index not in taken] or [turn.before_step - 1]
    return turn.model_copy(update={"until_step": max(led) + 1})


def _results(turns: Sequence[RecordedTurn]) -> dict[_Place, _Result]:
    """Return the first result of each call, out of the requests that continue its own turn."""
    before = {turn.number: turn for turn in turns}
    found = dict[_Place, _Result]()
    for later in turns:
        if (turn := before.get(-1 if later.after is None else later.after)) is None:
            continue
        parts = [part for each in later.messages for part in dicts_of(each.get("parts"))]
        for part in parts:
            same = (
                (turn.number, place)
                for place, call in enumerate(turn.calls)
                if call.id == part.get("id") and (turn.number, place) not in found
            )
            if "result" in part and (at := next(same, None)) is not None:
                found[at] = _Result(text_of(part["result"]), later.before_step)
    return found


def _wanted(call: ModelCall, tools: Iterable[str]) -> _Form | None:
    """Return the form of a model's call as a step has it; None for another call."""
    given = dict_of(call.arguments)
    named = [tool for tool in tools if re.search(rf"(?:^|\W|_){re.escape(tool)}$", call.name)]
    if not named:
        return None
    tool = max(named, key=len)
    try:
        return tool, _form(tool, given)
    except InvalidAction:
        return None


def _form(tool: str, given: Mapping[str, Any]) -> bytes:
    own = {name: value for name, value in given.items() if name not in _BESIDE}
    if tool == STEP:
        actions = parse_actions(given.get("actions"))
        value: Any = [each.model_dump(mode="json", exclude_none=True) for each in actions]
    elif tool == ACT:
        value = [parse_action(own).model_dump(mode="json", exclude_none=True)]
    elif tool == RESPONSE:
        value = answer_text(given.get("answer"))
    else:
        value = {} if tool == SCREENSHOT else own
    return canonical(masked(value))


def _made(step: TrajectoryStep) -> _Form:
    """Return the form of a step's call."""
    first = step.actions[0] if step.actions else {}
    if step.kind == "tool":
        return text_of(first.get("tool")), _form("", dict_of(first.get("args")))
    value: Any = step.actions
    if step.kind == "response":
        value = text_of(first.get("text"))
    elif step.kind == "screenshot":
        value = {}
    return step.kind, canonical(masked(value))


def _fold(text: str) -> str:
    """Return a text without what JSON and programs change in it."""
    return _FOLDED.sub("", text)

"""The tools `step` and `act`: a step of a session, with a picture or without one."""

import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from hud_mcp.base.reading import Reader
from hud_mcp.environment import Environment
from hud_mcp.errors import SessionEnded
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import ACTION, Argument, list_schema, object_schema, string_schema
from hud_mcp.server.call import PLAIN, VALUES, Call, one_of
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, step_result
from hud_mcp.server.view import View
from hud_mcp.session.caller import LOOK
from hud_mcp.session.receipts import ended_text
from hud_mcp.session.steps import RequestedStep
from hud_mcp.values.action import (
    Action,
    CustomAction,
    ResponseAction,
    ScreenshotFetch,
    parse_action,
    parse_actions,
)
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look

__all__ = ["ACT", "STEP", "as_taken"]

_OBSERVED = ("full", "changes")
_LOOKS = ("text", "image", "both")

_REF = re.compile(r"\W*(?:ref=)?[a-z]+\d\w*\]?(?::\d{1,6})?\s*")

_ALSO = ("observe", "after_step")
"""The arguments of both tools, beside actions and the session."""

_NESTED = dict.fromkeys(("point", "scroll", "offset"), Argument(None))
"""The HUD SDK's form of an action, which the action's parser also takes."""


async def _take_step(
    call: Call, kind: Literal["step", "act"], actions: tuple[Action, ...]
) -> dict[str, Any]:
    """Perform actions in a call's session, and grade an answer among them.

    Args:
        call: The call, with the arguments of both tools.
        kind: The step's name in the record.
        actions: In order.
    """
    session = await call.find()
    if isinstance(session, Receipt):
        return await _repeat_ended(call, session, kind, actions)
    environment = session.environment
    actions = as_taken(actions, environment, call.sessions.environments.values())
    look = _look(call, environment, kind, actions)
    shows, after_step = look.image is not None, call.arguments.get("after_step")
    with call.heartbeat("acting"):
        stepped = await session.step(
            actions, look, kind=kind, deliver_image=shows, after_step=after_step
        )
        if not stepped.answered:
            following = f"Pass after_step={session.steps} with your next call."
            tail = "" if after_step is None else following
            return step_result(stepped, session, tail=tail, is_plain=bool(call.meta.get(PLAIN)))
        answer = next(a.text for a in actions if isinstance(a, ResponseAction))
        receipt = await session.respond(answer, wait_s=call.sessions.limits.reply_s)
    tail = receipt_text(receipt, session.reward_policy, call.then)
    return step_result(stepped, session, tail=tail)


class _Ended(NamedTuple):
    """A session that ended in another process, for a step's reply."""

    id: str
    steps: int
    reward_policy: str


async def _repeat_ended(
    call: Call, receipt: Receipt, kind: Literal["step", "act"], actions: tuple[Action, ...]
) -> dict[str, Any]:
    """Return the recorded reply to the last step of a session that has ended since.

    Raises:
        SessionEnded: This call is not that step.
    """
    after_step: int | None = call.arguments.get("after_step")
    environment = call.sessions.environments.get(receipt.environment)
    if after_step is None or environment is None:
        raise SessionEnded(ended_text(receipt))
    actions = as_taken(actions, environment, call.sessions.environments.values())
    look = _look(call, environment, kind, actions)
    asked = RequestedStep(kind, actions, look, look.image is not None)
    policy = receipt.reward_policy
    stepped = await asked.recall(
        call.sessions.store, receipt.trajectory, after_step, rewards_shown=policy == "per_step"
    )
    if stepped is None:
        raise SessionEnded(ended_text(receipt))
    graded = receipt.outcome is Outcome.GRADED
    tail = receipt_text(receipt, policy, call.then) if graded else ended_text(receipt)
    session = _Ended(call.arguments["session"], after_step + 1, policy)
    return step_result(stepped, session, tail=tail, is_plain=bool(call.meta.get(PLAIN)))


def as_taken(
    actions: tuple[Action, ...], environment: Environment, served: Iterable[Environment] = ()
) -> tuple[Action, ...]:
    """Return the actions without arguments of other actions, which frameworks fill in.

    Args:
        actions: The actions of the call.
        environment: The environment of the world.
        served: The environments whose custom actions are in the schema too.
    """
    taken = list(actions)
    for i, action in enumerate(actions):
        if isinstance(action, CustomAction) and action.args:
            reader = _custom_readers(environment, tuple(served)).get(action.action)
            args = action.args if reader is None else reader.read(action.args)
            if args is not action.args:
                taken[i] = action.model_copy(update={"args": args})
    return tuple(taken)


@lru_cache(maxsize=256)
def _custom_readers(environment: Environment, served: tuple[Environment, ...]) -> dict[str, Reader]:
    """Return a reader for each custom action. They are made once, because each step uses them."""
    schemas = [s for e in (environment, *served) for s in e.world.custom_actions.values()]
    every = frozenset[str]().union(*(each.get("properties", {}) for each in schemas))
    known = environment.world.custom_actions
    return {name: Reader(schema, others=every) for name, schema in known.items()}


def _look(call: Call, environment: Environment, kind: str, actions: Iterable[Action]) -> Look:
    """Return the wanted observation: the parts that the call names, or those of its tool.

    Raises:
        InvalidTask: The call names other parts than there are.
    """
    given = call.arguments
    changes, part = _observed(given, environment) if "observe" in given else (False, "")
    if call.meta.get(VALUES):
        return call.look(values=True, changes=changes)
    asks = any(isinstance(action, ScreenshotFetch) for action in actions)
    usual = "both" if asks else call.sessions.look if kind == "step" else "text"
    parts = one_of(call.meta, LOOK, _LOOKS, usual)
    shows = parts != "text" and environment.world.has_screen
    text = parts != "image" or not shows
    form = environment.world.text_form
    picture = call.image if shows else None
    return call.look(text=text, image=picture, changes=changes, part=part, form=form)


def _observed(given: Mapping[str, Any], environment: Environment) -> tuple[bool, str]:
    """Return whether changes alone are wanted, and the ref of the part that is.

    Raises:
        InvalidTask: The argument is neither of these; the text names the possible ones.
    """
    wanted = given["observe"]
    if isinstance(wanted, str) and _REF.fullmatch(wanted) and "click" in environment.world.actions:
        return False, wanted
    return one_of(given, "observe", _OBSERVED, "full") == "changes", ""


def step(call: Call) -> Awaitable[dict[str, Any]]:
    """Perform actions and look."""
    return _take_step(call, "step", parse_actions(call.arguments.get("actions")))


def _step_description(view: View) -> str:
    if not view.acts:
        return "Return what there is to see in the environment, as text."
    refs = " with refs" if view.points else ""
    picture = " and a picture" if view.pictures else ""
    return (
        f"Perform actions in order, up to a refused one; return text{refs}{picture}. No actions: "
        "only look."
    )


def _step_arguments(view: View) -> Mapping[str, Argument]:
    actions = list_schema(object_schema(view.action, "type"), "At most 50.")
    part = ", or a ref for that part alone" if view.points else ""
    told = f"full (default), or changes since your last look{part}."
    count = "Steps so far: a call repeated with the same count is done once."
    shown = {
        # also one action alone, and the HUD SDK's nested form
        "actions": Argument(actions, has_parser=True),
        "observe": Argument(string_schema(told)),
        "after_step": Argument({"type": "integer", "description": count}),
    }
    if not view.acts:
        shown = {name: replace(each, schema=None) for name, each in shown.items()}
    return {**shown, "session": Argument(view.session)}


STEP = CoreTool(
    run=step,
    title="Act and look",
    description=_step_description,
    arguments=_step_arguments,
    is_step=True,
    destructive=lambda view: view.destructive,
    open_world=lambda view: view.open_world,
)


async def act(call: Call) -> dict[str, Any]:
    """Perform one action."""
    action = parse_action(
        {k: v for k, v in call.arguments.items() if k not in _ALSO and k != "session"}
    )
    return await _take_step(call, "act", (action,))


def _act_description(view: View) -> str:
    bare = ", without a picture" if view.pictures else ""
    return (
        f"Perform one action and return the text that follows{bare}. The fields are those of an "
        "action of step."
    )


def _act_arguments(view: View) -> Mapping[str, Argument]:
    # Step describes them. The parser checks the other fields of an author's own action, which
    # may be shown as a text.
    fields = {
        name: Argument(_undescribed(schema), has_parser=name not in ACTION)
        for name, schema in view.action.items()
    }
    if "args" in fields:  # some clients see the text that can be sent for an object
        fields["args"] = Argument(_undescribed(view.action["args"]), kind="object")
    # Typing nothing empties a field, and an answer may be empty.
    fields["text"] = Argument({"type": "string"}, may_be_empty=True)
    also = {"observe": Argument({"type": "string"}), "after_step": Argument({"type": "integer"})}
    return {**fields, **also, "session": Argument(view.session), **_NESTED}


def _undescribed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without the descriptions in it."""
    kept: dict[str, Any] = {k: v for k, v in schema.items() if k != "description"}
    if "items" in kept:
        kept["items"] = _undescribed(kept["items"])
    if "properties" in kept:
        kept["properties"] = {n: _undescribed(each) for n, each in kept["properties"].items()}
    return kept


ACT = CoreTool(
    run=act,
    title="One action",
    description=_act_description,
    arguments=_act_arguments,
    required=("type",),
    is_step=True,
    needs_actions=True,
    destructive=lambda view: view.destructive,
    open_world=lambda view: view.open_world,
)

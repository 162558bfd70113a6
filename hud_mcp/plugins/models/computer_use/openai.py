"""OpenAI's computer use: the actions of a `computer_call`.

Follows https://developers.openai.com/api/docs/guides/tools-computer-use and the schemas in OpenAI's
SDK for Python 3.54 (`ComputerAction`, `ResponseComputerToolCall`, `ComputerCallOutput`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from hud_mcp.errors import InvalidAction, clipped, did_you_mean
from hud_mcp.plugins.models.computer_use.frame import (
    STAND_IN,
    Computer,
    Frame,
    Json,
    Wanted,
    data_url,
    key_names,
    objects_in,
    pause,
    picture,
    put_tool,
    take,
)
from hud_mcp.values.action import (
    Action,
    ClickAction,
    DragAction,
    MoveAction,
    Point,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
)
from hud_mcp.values.observation import Observation

_BUTTONS = {"left": "left", "right": "right", "wheel": "middle", "back": "back",
            "forward": "forward"}  # fmt: skip
_WAIT_S = 2
"""The duration of a `wait`, which has none itself."""
_ENDS = 2


def openai_computer_tool() -> dict[str, Any]:
    """Return the entry of `tools` that gives a model the computer.

    The entry has no size, because the model's points are in pixels of the pictures sent to it.
    """
    return {"type": "computer"}


def read_openai_computer(call: Mapping[str, Any], frame: Frame) -> Wanted:
    """Read a `computer_call`: all of its `actions` in order, or its one `action`.

    Raises:
        InvalidAction: There is no such action, or it lacks something. Nothing is to be done.
    """
    given: Any = call.get("actions") or ([call["action"]] if call.get("action") else [])
    if not given:
        raise InvalidAction("The computer_call has no action.")
    actions: tuple[Action, ...] = ()
    for each in given:
        reader = _READERS.get(str(each.get("type")))
        if reader is None:
            kind = each.get("type")
            raise InvalidAction(f"There is no action {kind!r}.{did_you_mean(kind, _READERS)}")
        actions += reader(each, frame)
    checks: Sequence[Mapping[str, Any]] = call.get("pending_safety_checks") or ()
    asks = "; ".join(str(c.get("message") or c.get("code") or c.get("id")) for c in checks)
    return Wanted(actions, "picture", asks=asks or None)


def openai_computer_result(
    call: Mapping[str, Any],
    observation: Observation,
    frame: Frame,
    *,
    acknowledged: Sequence[Mapping[str, Any]] = (),
    error: str | None = None,
) -> list[dict[str, Any]]:
    """Return the items of the next input: the picture, then the reason of a refusal.

    `acknowledged` has the safety checks of the call that a person has agreed to.

    Raises:
        InvalidAction: The observation has no picture, which is all that the provider takes.
    """
    shot = picture(observation, frame, Wanted())
    if shot is None:
        raise InvalidAction("OpenAI's computer needs a picture, and this observation has none.")
    output: dict[str, Any] = {
        "type": "computer_call_output",
        "call_id": call["call_id"],
        "output": {"type": "computer_screenshot", "image_url": data_url(shot)},
    }
    if acknowledged:
        output["acknowledged_safety_checks"] = [dict(check) for check in acknowledged]
    if error is None:
        return [output]
    return [output, {"role": "user", "content": [{"type": "input_text", "text": error}]}]


def _modifiers(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    return _keys(given.get("keys")) or None


def _keys(given: Any) -> tuple[str, ...]:
    return tuple(name for chord in given or () for name in key_names(str(chord)))


def _point(given: Mapping[str, Any], frame: Frame) -> Point:
    return frame.point(given.get("x"), given.get("y"))


def _click(given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    button = _BUTTONS.get(str(given.get("button") or "left"))
    if button is None:
        raise InvalidAction(f"There is no button {clipped(given.get('button'))}.")
    clicked = ClickAction(
        point=_point(given, frame),
        button=button,  # pyright: ignore[reportArgumentType]  # one of ours
        hold_keys=_modifiers(given),
    )
    return (clicked,)


def _double_click(given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    return (ClickAction(point=_point(given, frame), pattern=(100,), hold_keys=_modifiers(given)),)


def _drag(given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    path = tuple(_point(each, frame) for each in take(given, "path", list))
    if len(path) < _ENDS:
        raise InvalidAction("drag needs a path of two points or more.")
    return (DragAction(path=path, hold_keys=_modifiers(given)),)


def _keypress(given: Mapping[str, Any], _frame: Frame) -> tuple[Action, ...]:
    keys = _keys(take(given, "keys", list))
    if not keys:
        raise InvalidAction("keypress needs keys.")
    return (PressAction(keys=keys),)


def _scroll(given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    far = Point(x=given.get("scroll_x") or 0, y=given.get("scroll_y") or 0)
    return (ScrollAction(point=_point(given, frame), scroll=far, hold_keys=_modifiers(given)),)


_READERS: Mapping[str, Callable[[Mapping[str, Any], Frame], tuple[Action, ...]]] = {
    "click": _click,
    "double_click": _double_click,
    "drag": _drag,
    "keypress": _keypress,
    "move": lambda given, frame: (MoveAction(point=_point(given, frame)),),
    "screenshot": lambda _given, _frame: (ScreenshotFetch(),),
    "scroll": _scroll,
    "type": lambda given, _frame: (TypeAction(text=take(given, "text", str)),),
    "wait": lambda _given, _frame: pause(_WAIT_S),
}


def _send_openai(body: Json) -> Json:
    put_tool(body)
    items: list[Json] = []
    calls: set[str] = set()
    for item in objects_in(body["input"]):
        if item.get("type") == "function_call" and item["name"] == STAND_IN:
            calls.add(item["call_id"])
            items.append(orjson.loads(item["arguments"]))
        elif item.get("type") == "function_call_output" and item["call_id"] in calls:
            items += _openai_output(item)
        else:
            items.append(item)
    return {**body, "input": items} if calls else body


def _openai_output(item: Json) -> list[Json]:
    given = item["output"]
    parts = objects_in(given) or [{"type": "input_text", "text": str(given)}]
    shots = [part for part in parts if part["type"] == "input_image"]
    texts = [part for part in parts if part["type"] == "input_text"]
    shown = {"type": "computer_screenshot", "image_url": shots[0]["image_url"] if shots else _BLANK}
    output = {"type": "computer_call_output", "call_id": item["call_id"], "output": shown}
    said: list[Json] = [{"role": "user", "content": texts}] if texts else []
    return [output, *said]


_BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""The picture in the place of an omitted picture, if the provider accepts nothing else."""


def _receive_openai(reply: Json) -> Json:
    reply["output"] = [
        {
            "type": "function_call",
            "id": item.get("id"),
            "call_id": item["call_id"],
            "name": STAND_IN,
            "arguments": orjson.dumps(item).decode(),
            "status": "completed",
        }
        if item.get("type") == "computer_call"
        else item
        for item in reply["output"]
    ]
    return reply


OPENAI = Computer(
    names=frozenset({STAND_IN}),
    frame=Frame.same,
    tool=lambda _frame: openai_computer_tool(),
    read=lambda _name, given, frame: read_openai_computer(given, frame),
    send=_send_openai,
    receive=_receive_openai,
)

"""Gemini's computer use: the functions that a `computer_use` tool lets a model call.

Follows https://ai.google.dev/gemini-api/docs/computer-use and Google's reference implementation,
https://github.com/google-gemini/computer-use-preview (`agent.py`), whose two sets of functions are
both here: `click`, `scroll`, `hotkey` …, and the older `click_at`, `scroll_at`,
`key_combination` …. Points and distances go from 0 to 1000, whatever the screen.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from hud_mcp.errors import InvalidAction, did_you_mean
from hud_mcp.plugins.models.computer_use.frame import (
    BUTTONS,
    CLICKS,
    STAND_IN,
    WAYS,
    Computer,
    Frame,
    Json,
    Wanted,
    key_names,
    objects_in,
    pause,
    picture,
    press,
    take,
)
from hud_mcp.values.action import (
    Action,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
)
from hud_mcp.values.observation import Observation

_GRID = 1000
_MISSING = ("mouse_down", "mouse_up", "search")
"""A button cannot be held down here beyond one action, and no search engine is the default one."""
_MAGNITUDE = 800


def gemini_frame(width_px: int, height_px: int) -> Frame:
    """Return the frame of a model that is shown pictures of this size."""
    return Frame((_GRID, _GRID), (width_px, height_px))


def gemini_computer_tool(environment: str = "ENVIRONMENT_BROWSER") -> dict[str, Any]:
    """Return the entry of `tools` that gives a model the computer, without unsupported actions."""
    excluded = list(_MISSING)
    return {"computerUse": {"environment": environment, "excludedPredefinedFunctions": excluded}}


def read_gemini_computer(call: Mapping[str, Any], frame: Frame) -> Wanted:
    """Read a `functionCall`, with its `name` and `args`, in the frame of `gemini_frame`.

    Raises:
        InvalidAction: The function is unknown here, or lacks something. Nothing is to be done.
    """
    name = str(call.get("name"))
    given: Mapping[str, Any] = call.get("args") or {}
    reader = _READERS.get(name)
    if reader is None:
        why = " It is not offered here." if name in _MISSING else did_you_mean(name, _READERS)
        raise InvalidAction(f"There is no {name!r}.{why} Nothing was done.")
    safety: Any = given.get("safety_decision") or {}
    asks = safety.get("explanation") if safety.get("decision") == "require_confirmation" else None
    return Wanted(reader(name, given, frame), "picture", asks=asks)


def gemini_computer_result(
    call: Mapping[str, Any],
    observation: Observation,
    *,
    url: str = "",
    acknowledged: bool = False,
    error: str | None = None,
) -> dict[str, Any]:
    """Return the `functionResponse` for an action, in the form of the REST interface.

    `url` is that of the page shown. `acknowledged` tells that a person has agreed to what the
    call's `safety_decision` asks.
    """
    response: dict[str, Any] = {"url": url}
    if acknowledged:
        response["safety_acknowledgement"] = "true"
    if error is not None:
        response["error"] = error
    result: dict[str, Any] = {"name": call["name"], "response": response}
    if call.get("id"):
        result["id"] = call["id"]
    if observation.image is not None:
        size = observation.image.width_px, observation.image.height_px
        shot = picture(observation, Frame.same(*size), Wanted())
        if shot is not None:
            data = {"mimeType": shot.mime_type, "data": shot.as_base64()}
            result["parts"] = [{"inlineData": data}]
    return result


def _point(given: Mapping[str, Any], frame: Frame, prefix: str = "") -> Point:
    return frame.point(given.get(f"{prefix}x"), given.get(f"{prefix}y"))


def _click(name: str, given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    clicked = ClickAction(
        point=_point(given, frame),
        button=BUTTONS.get(name, "left"),  # pyright: ignore[reportArgumentType]  # one of the three
        pattern=CLICKS.get(name),
    )
    return (clicked,)


def _type_at(_name: str, given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    point, text = _point(given, frame), take(given, "text", str)
    enter = bool(given.get("press_enter", False))
    if given.get("clear_before_typing", True):
        return (TypeAction(point=point, text=text, enter_after=enter),)  # which empties it first
    return (ClickAction(point=point), TypeAction(text=text, enter_after=enter))


def _scroll(_name: str, given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    way = _way(given)
    magnitude: Any = given.get("magnitude") or _MAGNITUDE
    return (ScrollAction(point=_point(given, frame), scroll=_far(way, magnitude, frame)),)


def _scroll_all(_name: str, given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    middle = frame.point(_GRID / 2, _GRID / 2)
    return (ScrollAction(point=middle, scroll=_far(_way(given), _MAGNITUDE, frame)),)


def _way(given: Mapping[str, Any]) -> tuple[int, int]:
    way = WAYS.get(take(given, "direction", str))
    if way is None:
        raise InvalidAction("direction is up, down, left or right.")
    return way


def _far(way: tuple[int, int], magnitude: Any, frame: Frame) -> Point:
    if not isinstance(magnitude, int | float):
        raise InvalidAction("magnitude is a number from 0 to 1000.")
    across, down = (magnitude * side / _GRID for side in frame.screen)
    return Point(x=way[0] * across, y=way[1] * down)


def _chord(_name: str, given: Mapping[str, Any], _frame: Frame) -> tuple[Action, ...]:
    keys: Any = given.get("keys")
    return press("+".join(map(str, keys)) if isinstance(keys, list) else keys)  # pyright: ignore[reportUnknownArgumentType]  # JSON


def _drag(_name: str, given: Mapping[str, Any], frame: Frame) -> tuple[Action, ...]:
    return (DragAction(path=(_point(given, frame), _point(given, frame, "destination_"))),)


_READERS: Mapping[str, Callable[[str, Mapping[str, Any], Frame], tuple[Action, ...]]] = {
    **dict.fromkeys(("click", "click_at", *BUTTONS, *CLICKS), _click),
    **dict.fromkeys(
        ("move", "hover_at"), lambda _name, given, frame: (MoveAction(point=_point(given, frame)),)
    ),
    "type": lambda _name, given, _frame: (
        TypeAction(text=take(given, "text", str), enter_after=bool(given.get("press_enter"))),
    ),
    "type_text_at": _type_at,
    **dict.fromkeys(("scroll", "scroll_at"), _scroll),
    "scroll_document": _scroll_all,
    "wait": lambda _name, given, _frame: pause(given.get("seconds", 1)),
    "wait_5_seconds": lambda _name, _given, _frame: pause(5),
    **dict.fromkeys(
        ("go_back", "go_forward"),
        lambda name, _given, _frame: (CustomAction(action=name.removeprefix("go_")),),
    ),
    "navigate": lambda _name, given, _frame: (
        CustomAction(action="goto", args={"url": take(given, "url", str)}),
    ),
    **dict.fromkeys(("hotkey", "key_combination"), _chord),
    "press_key": lambda _name, given, _frame: press(given.get("key")),
    "key_down": lambda _name, given, _frame: (
        KeyDownAction(keys=key_names(take(given, "key", str))),
    ),
    "key_up": lambda _name, given, _frame: (KeyUpAction(keys=key_names(take(given, "key", str))),),
    "drag_and_drop": _drag,
    **dict.fromkeys(
        ("take_screenshot", "open_web_browser"), lambda _name, _given, _frame: (ScreenshotFetch(),)
    ),
}


def _send_gemini(body: Json) -> Json:
    tools: list[Json] = []
    for tool in body.get("tools", ()):
        declared = objects_in(tool.get("functionDeclarations"))
        others = [each for each in declared if each["name"] != STAND_IN]
        tools += [{**tool, "functionDeclarations": others}] if others or not declared else []
        tools += [orjson.loads(each["description"]) for each in declared if each not in others]
    waiting: list[Json] = []
    moved = [
        {**content, "parts": _gemini_parts(content.get("parts", ()), waiting)}
        for content in body.get("contents", ())
    ]
    return {**body, "tools": tools, "contents": [content for content in moved if content["parts"]]}


def _gemini_parts(parts: Any, waiting: list[Json]) -> list[Json]:
    """Move pictures to the waiting results that they follow, and return all other parts."""
    kept: list[Json] = []
    for part in parts:
        result, text = part.get("functionResponse"), str(part.get("text", ""))
        if result is not None and result["name"] in _READERS:
            said = orjson.dumps(result["response"]).decode()
            waiting += [result] * said.count("See file ")
            error = result["response"].get("error")
            result["response"] = {"url": "", **({} if error is None else {"error": error})}
        elif "inlineData" in part and waiting:  # the library puts it after its result
            waiting.pop(0).setdefault("parts", []).append({"inlineData": part["inlineData"]})
            continue
        elif text.startswith(_TAGS):
            continue
        kept.append(part)
    return kept


_TAGS = ("<pyai:tool_result ", "</pyai:tool_result")
"""Around pictures that are no part of their result."""


GEMINI = Computer(
    names=frozenset(_READERS),
    frame=gemini_frame,
    tool=lambda _frame: gemini_computer_tool(),
    read=lambda name, given, frame: read_gemini_computer({"name": name, "args": given}, frame),
    send=_send_gemini,
    resizes=False,
)

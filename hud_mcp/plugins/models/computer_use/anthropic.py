"""Anthropic's computer use: `computer_20250124`, `computer_20251124`, `computer_toolset_20260801`.

Follows https://platform.claude.com/docs/en/agents-and-tools/tool-use/computer-use-tool and the
schemas in Anthropic's SDK for Python 2.12 (`BetaComputer…Input`,
`BetaToolComputerUse20251124Param`). The first two are one tool whose input names an `action`; of
the toolset, each action is a tool of its own, whose `tool_use` has `toolset_name: "computer"`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from hud_mcp.errors import InvalidAction, did_you_mean
from hud_mcp.plugins.models.computer_use.frame import (
    BUTTONS,
    CLICKS,
    NOTCH_PX,
    STAND_IN,
    WAYS,
    Box,
    Computer,
    Frame,
    Json,
    Wanted,
    block_of,
    hold,
    key_names,
    objects_in,
    pause,
    picture,
    pointer_in,
    press,
    put_tool,
    take,
)
from hud_mcp.values.action import (
    ClickAction,
    DragAction,
    MoveAction,
    Point,
    PositionFetch,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
)
from hud_mcp.values.observation import Look, Observation, fitted_size

POINTED = (*BUTTONS, *CLICKS)
"""The names of clicks, by button or count."""


def clicked(name: str, where: Mapping[str, Any], keys: Any) -> Wanted:
    """Click by the name of a click, with the keys of a chord held."""
    click = ClickAction(
        **where,
        button=BUTTONS.get(name, "left"),  # pyright: ignore[reportArgumentType]  # one of the three
        pattern=CLICKS.get(name),
        hold_keys=modifiers(keys),
    )
    return Wanted((click,))


def modifiers(keys: Any) -> tuple[str, ...] | None:
    """Return the keys of a chord that are held; None for none."""
    return key_names(keys) or None if keys else None


def wheel(given: Mapping[str, Any], notches: Any) -> Point:
    """Return the distance of a scroll, or raise `InvalidAction` if it names no direction."""
    way = WAYS.get(take(given, "scroll_direction", str))
    if way is None:
        raise InvalidAction("scroll_direction is up, down, left or right.")
    return Point(x=way[0] * notches * NOTCH_PX, y=way[1] * notches * NOTCH_PX)


def looked(region: Box | None = None) -> Wanted:
    """Look at the screen, or at a part of it."""
    return Wanted((ScreenshotFetch(),), "picture", region=region)


def refusal(block: Mapping[str, Any], error: str) -> dict[str, Any]:
    """Return the `tool_result` of what was refused."""
    return {
        "type": "tool_result",
        "tool_use_id": block["id"],
        "content": [{"type": "text", "text": error}],
        "is_error": True,
    }


AnthropicComputer = Literal["computer_20250124", "computer_20251124", "computer_toolset_20260801"]
"""The versions of the tool."""

ANTHROPIC_BETAS: Mapping[str, str | None] = {
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "computer_toolset_20260801": None,
    "browser_toolset_20260801": None,
}
"""The beta header that each version needs; None for none."""

_MISSING = ("left_mouse_down", "left_mouse_up")
"""A button cannot be held down here beyond one action."""


def anthropic_computer_tool(version: AnthropicComputer, frame: Frame) -> dict[str, Any]:
    """Return the entry of `tools` that gives a model the computer, in the size `frame.shown`.

    A toolset has no size, because its points are in pixels of the pictures sent to it.
    """
    if version == "computer_toolset_20260801":
        return {"type": version, "configs": {name: {"enabled": False} for name in _MISSING}}
    tool: dict[str, Any] = {
        "type": version,
        "name": "computer",
        "display_width_px": round(frame.shown[0]),
        "display_height_px": round(frame.shown[1]),
    }
    return {**tool, "enable_zoom": True} if version == "computer_20251124" else tool


def read_anthropic_computer(block: Mapping[str, Any], frame: Frame) -> Wanted:
    """Read a `tool_use` block of any version, with its `name` and `input`.

    Raises:
        InvalidAction: The action is unknown here, or lacks something. Nothing is to be done.
    """
    given: Mapping[str, Any] = block.get("input") or {}
    action = given.get("action") if block.get("name") == "computer" else block.get("name")
    reader = _READERS.get(str(action))
    if reader is None:
        why = (
            " A button cannot be held down here; use left_click_drag." if action in _MISSING else ""
        )
        hint = did_you_mean(action, _READERS)
        raise InvalidAction(f"There is no action {action!r}.{why or hint} Nothing was done.")
    return reader(str(action), given, frame)


def anthropic_computer_result(
    block: Mapping[str, Any],
    observation: Observation,
    frame: Frame,
    *,
    error: str | None = None,
) -> dict[str, Any]:
    """Return the `tool_result` of a block: what an action showed, or the reason of a refusal."""
    if error is not None:
        return refusal(block, error)
    wanted = read_anthropic_computer(block, frame)
    content: list[dict[str, Any]] = []
    if wanted.shows == "pointer":
        at = pointer_in(observation)
        x, y = frame.back(at) if at is not None else (0, 0)
        content.append({"type": "text", "text": f"X={x},Y={y}" if at else "It is not known."})
    elif (shot := picture(observation, frame, wanted)) is not None:
        content.append(block_of(shot))
    elif observation.text:
        content.append({"type": "text", "text": observation.text})
    return {"type": "tool_result", "tool_use_id": block["id"], "content": content}


def _at(given: Mapping[str, Any], frame: Frame, name: str = "coordinate") -> Point | None:
    if given.get(name) is None:
        return None
    pair: Any = take(given, name, (list, tuple))
    if len(pair) != 2:  # noqa: PLR2004  # x and y
        raise InvalidAction(f"{name} is [x, y], not {pair!r}.")
    return frame.point(*pair)


def _click(action: str, given: Mapping[str, Any], frame: Frame) -> Wanted:
    return clicked(action, {"point": _at(given, frame)}, given.get("text"))


def _drag(_action: str, given: Mapping[str, Any], frame: Frame) -> Wanted:
    start, end = _at(given, frame, "start_coordinate"), _at(given, frame)
    if start is None or end is None:
        raise InvalidAction("left_click_drag needs start_coordinate and coordinate.")
    return Wanted((DragAction(path=(start, end), hold_keys=modifiers(given.get("text"))),))


def _scroll(_action: str, given: Mapping[str, Any], frame: Frame) -> Wanted:
    far = wheel(given, take(given, "scroll_amount", (int, float)))
    keys = modifiers(given.get("text"))
    return Wanted((ScrollAction(point=_at(given, frame), scroll=far, hold_keys=keys),))


def _move(_action: str, given: Mapping[str, Any], frame: Frame) -> Wanted:
    at = _at(given, frame)
    if at is None:
        raise InvalidAction("mouse_move needs coordinate.")
    return Wanted((MoveAction(point=at),))


SHARED: Mapping[str, Callable[[str, Mapping[str, Any], Any], Wanted]] = {
    "type": lambda _name, given, _place: Wanted((TypeAction(text=take(given, "text", str)),)),
    "hold_key": lambda _name, given, _place: Wanted(hold(given.get("text"), given.get("duration"))),
    "wait": lambda _name, given, _place: Wanted(pause(given.get("duration"))),
    "screenshot": lambda _name, _given, _place: looked(),
}
"""The readers of actions that both toolsets have, by their names."""

_READERS: Mapping[str, Callable[[str, Mapping[str, Any], Frame], Wanted]] = {
    **SHARED,
    **dict.fromkeys(POINTED, _click),
    "left_click_drag": _drag,
    "scroll": _scroll,
    "mouse_move": _move,
    "key": lambda _name, given, _frame: Wanted(press(given.get("text"), given.get("repeat") or 1)),
    "zoom": lambda _name, given, frame: looked(frame.box(given.get("region"))),
    "cursor_position": lambda _name, _given, _frame: Wanted((PositionFetch(),), "pointer"),
}


def anthropic_computer(version: AnthropicComputer) -> Computer:
    """Return the record of one version; each action of the toolset is a function of its own."""
    is_set = version == "computer_toolset_20260801"

    def send(body: Json) -> Json:
        put_tool(body)
        for message in body.get("messages", ()) if is_set else ():
            for block in objects_in(message["content"]):
                if block.get("type") == "tool_use" and block["name"] in _READERS:
                    block["toolset_name"] = STAND_IN
        return body

    beta = ANTHROPIC_BETAS[version]
    return Computer(
        names=frozenset(_READERS if is_set else {STAND_IN}),
        # Anthropic makes larger pictures smaller, and points would be off.
        frame=lambda width, height: Frame(fitted_size(width, height, Look()), (width, height)),
        tool=lambda frame: anthropic_computer_tool(version, frame),
        read=lambda name, given, frame: read_anthropic_computer(
            {"name": name, "input": given}, frame
        ),
        send=send,
        headers={} if beta is None else {"anthropic-beta": beta},
        failures="text",
    )

"""Providers' own computer tools: each action as the providers document it, and what goes back.

The inputs are those of the providers' documents and schemas that the modules name.
"""

import base64
import io
from typing import Any

import pytest
from PIL import Image
from tables import each_of

from hud_mcp.agents.computer_use import (
    ANTHROPIC_BETAS,
    Frame,
    Tab,
    anthropic_browser_result,
    anthropic_browser_tool,
    anthropic_computer_result,
    anthropic_computer_tool,
    gemini_computer_result,
    gemini_computer_tool,
    gemini_frame,
    openai_computer_result,
    openai_computer_tool,
    read_anthropic_browser,
    read_anthropic_computer,
    read_gemini_computer,
    read_openai_computer,
)
from hud_mcp.errors import InvalidAction
from hud_mcp.plugins.models.computer_use.anthropic import anthropic_computer
from hud_mcp.values.action import (
    Action,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.values.observation import Look, Observation, Screenshot, fitted_size

SAME = Frame.same(1280, 800)
HALF = Frame((640, 400), (1280, 800))
"""A model that is told half of our picture's size."""


def at(x: float, y: float) -> Point:
    """A point."""
    return Point(x=x, y=y)


def shot(width: int = 1280, height: int = 800) -> Screenshot:
    """A picture whose left half is red and whose right half is blue."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    out = io.BytesIO()
    image.save(out, "PNG")
    return Screenshot.from_bytes(out.getvalue())


def opened(encoded: str) -> Image.Image:
    """A picture out of base64."""
    return Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB")


COMPUTER: list[tuple[dict[str, Any], tuple[Action, ...]]] = [
    ({"action": "screenshot"}, (ScreenshotFetch(),)),
    ({"action": "left_click", "coordinate": [500, 300]}, (ClickAction(point=at(500, 300)),)),
    ({"action": "left_click"}, (ClickAction(),)),
    (
        {"action": "left_click", "coordinate": [500, 300], "text": "shift"},
        (ClickAction(point=at(500, 300), hold_keys=("shift",)),),
    ),
    (
        {"action": "right_click", "coordinate": [1, 2]},
        (ClickAction(point=at(1, 2), button="right"),),
    ),
    (
        {"action": "middle_click", "coordinate": [1, 2]},
        (ClickAction(point=at(1, 2), button="middle"),),
    ),
    (
        {"action": "double_click", "coordinate": [1, 2]},
        (ClickAction(point=at(1, 2), pattern=(100,)),),
    ),
    (
        {"action": "triple_click", "coordinate": [1, 2]},
        (ClickAction(point=at(1, 2), pattern=(100, 100)),),
    ),
    ({"action": "type", "text": "Hello, world!"}, (TypeAction(text="Hello, world!"),)),
    ({"action": "key", "text": "ctrl+s"}, (PressAction(keys=("ctrl", "s")),)),
    ({"action": "key", "text": "Return"}, (PressAction(keys=("return",)),)),
    ({"action": "key", "text": "Page_Down"}, (PressAction(keys=("pagedown",)),)),
    ({"action": "mouse_move", "coordinate": [10, 20]}, (MoveAction(point=at(10, 20)),)),
    (
        {"action": "scroll", "coordinate": [500, 400], "scroll_direction": "down",
         "scroll_amount": 3},
        (ScrollAction(point=at(500, 400), scroll=at(0, 300)),),
    ),
    (
        {"action": "left_click_drag", "start_coordinate": [100, 100], "coordinate": [200, 250]},
        (DragAction(path=(at(100, 100), at(200, 250))),),
    ),
    (
        {"action": "hold_key", "text": "shift", "duration": 2},
        (KeyDownAction(keys=("shift",)), WaitAction(time=2000), KeyUpAction(keys=("shift",))),
    ),
    ({"action": "wait", "duration": 1}, (WaitAction(time=1000),)),
    ({"action": "wait", "duration": 70}, (
        WaitAction(time=30_000), WaitAction(time=30_000), WaitAction(time=10_000))),
    ({"action": "cursor_position"}, (PositionFetch(),)),
    ({"action": "zoom", "region": [0, 0, 640, 400]}, (ScreenshotFetch(),)),
]  # fmt: skip


@each_of(("given", "wanted"), COMPUTER)
def test_each_action_of_anthropics_computer_is_ours(
    given: dict[str, Any], wanted: tuple[Action, ...]
) -> None:
    """As one tool that names its action, and as a member of the toolset."""
    block = {"type": "tool_use", "id": "t", "name": "computer", "input": given}
    assert read_anthropic_computer(block, SAME).actions == wanted
    rest = {name: value for name, value in given.items() if name != "action"}
    member = {**block, "name": given["action"], "toolset_name": "computer", "input": rest}
    assert read_anthropic_computer(member, SAME).actions == wanted


def test_a_members_key_can_be_repeated() -> None:
    """The toolset has a number for it."""
    block = {"id": "t", "name": "key", "input": {"text": "Tab", "repeat": 3}}
    assert read_anthropic_computer(block, SAME).actions == (PressAction(keys=("tab",)),) * 3


def test_points_are_scaled_to_our_picture() -> None:
    """Of a model that is told another size; its last pixel is our last one at most."""
    block = {"id": "t", "name": "left_click", "input": {"coordinate": [320, 400]}}
    (click,) = read_anthropic_computer(block, HALF).actions
    assert click == ClickAction(point=at(640, 799))


@each_of(
    ("name", "given", "said"),
    [
        ("left_click", {"coordinate": [641, 10]}, "not a point of a screen of 640 x 400"),
        ("left_click", {"coordinate": [-1, 10]}, "not a point"),
        ("left_click", {"coordinate": [1]}, "is \\[x, y\\]"),
        ("left_click", {"coordinate": ["a", 1]}, "not a point"),
        ("left_mouse_down", {}, "use left_click_drag"),
        ("left_clik", {}, "Did you mean 'left_click'"),
        ("left_click_drag", {"coordinate": [1, 1]}, "start_coordinate"),
        ("scroll", {"scroll_direction": "sideways", "scroll_amount": 1}, "up, down"),
        ("key", {"text": ""}, "not a key"),
        ("type", {}, "text"),
        ("wait", {"duration": -1}, "seconds"),
        ("wait", {"duration": 1e9}, "seconds"),
        ("zoom", {"region": [10, 10, 10, 10]}, "nothing in it"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    name: str, given: dict[str, Any], said: str
) -> None:
    """Nothing is done of it; the text is for the model."""
    with pytest.raises(InvalidAction, match=said):
        read_anthropic_computer({"id": "t", "name": name, "input": given}, HALF)


def test_anthropics_tools_are_declared_as_documented() -> None:
    """With the size that the model is told, and without what no world does."""
    assert anthropic_computer_tool("computer_20250124", HALF) == {
        "type": "computer_20250124",
        "name": "computer",
        "display_width_px": 640,
        "display_height_px": 400,
    }
    assert anthropic_computer_tool("computer_20251124", SAME)["enable_zoom"] is True
    toolset = anthropic_computer_tool("computer_toolset_20260801", SAME)
    assert toolset["type"] == "computer_toolset_20260801"
    assert toolset["configs"]["left_mouse_down"] == {"enabled": False}
    assert anthropic_browser_tool()["configs"]["new_tab"] == {"enabled": False}
    assert ANTHROPIC_BETAS["computer_20251124"] == "computer-use-2025-11-24"


def test_a_screenshot_goes_back_in_the_size_that_the_model_is_told() -> None:
    """As an image block of its tool result."""
    block = {"id": "toolu_1", "name": "screenshot", "input": {}}
    result = anthropic_computer_result(block, Observation(image=shot()), HALF)
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    (image,) = result["content"]
    assert image["source"]["media_type"] == "image/png"
    assert opened(image["source"]["data"]).size == (640, 400)


def test_a_zoom_shows_its_region_larger() -> None:
    """The right half of our picture fills the reply, and is blue."""
    block = {"id": "t", "name": "zoom", "input": {"region": [340, 0, 640, 400]}}
    result = anthropic_computer_result(block, Observation(image=shot()), HALF)
    picture = opened(result["content"][0]["source"]["data"])
    assert picture.height == 800
    assert picture.getpixel((5, 5)) == (0, 0, 255)


def test_the_pointers_place_is_told_where_the_model_sees_it() -> None:
    """As X=…,Y=…, in its own pixels."""
    block = {"id": "t", "name": "cursor_position", "input": {}}
    seen = Observation(text="The pointer is at (640, 400).")
    result = anthropic_computer_result(block, seen, HALF)
    assert result["content"] == [{"type": "text", "text": "X=320,Y=200"}]


def test_a_refusal_goes_back_as_an_error() -> None:
    """With its text alone."""
    block = {"id": "t", "name": "left_clik", "input": {}}
    result = anthropic_computer_result(block, Observation(), SAME, error="no such action")
    assert result["is_error"] is True
    assert result["content"] == [{"type": "text", "text": "no such action"}]


TEXT = """Page: http://127.0.0.1/ "Shop"
- textbox "Search" [ref=e3]
- combobox "Size" [ref=e4]
- checkbox "Gift" [checked] [ref=e5]
- button "Add to cart" [ref=e6]
"""
SPOT = {"type": "coordinate", "x": 10, "y": 20}
REF = {"type": "ref", "ref": "e6"}

BROWSER: list[tuple[str, dict[str, Any], tuple[Action, ...]]] = [
    ("navigate", {"url": "example.com"},
     (CustomAction(action="goto", args={"url": "example.com"}),)),
    ("navigate", {"url": "back"}, (CustomAction(action="back"),)),
    ("left_click", {"target": SPOT}, (ClickAction(point=at(10, 20)),)),
    ("left_click", {"target": REF, "modifiers": "ctrl+shift"},
     (ClickAction(ref="e6", hold_keys=("ctrl", "shift")),)),
    ("double_click", {"target": REF}, (ClickAction(ref="e6", pattern=(100,)),)),
    ("hover", {"target": REF}, (MoveAction(ref="e6"),)),
    ("scroll_to", {"target": REF}, (MoveAction(ref="e6"),)),
    ("left_click_drag", {"from": SPOT, "target": {**SPOT, "x": 99}},
     (DragAction(path=(at(10, 20), at(99, 20))),)),
    ("scroll", {"target": SPOT, "scroll_direction": "up"},
     (ScrollAction(point=at(10, 20), scroll=at(0, -300)),)),
    ("type", {"text": "mug"}, (TypeAction(text="mug"),)),
    ("key", {"text": "Backspace Backspace Delete"},
     (PressAction(keys=("backspace",)),) * 2 + (PressAction(keys=("delete",)),)),
    ("key", {"text": "cmd+shift+p"}, (PressAction(keys=("cmd", "shift", "p")),)),
    ("wait", {"duration": 0.5}, (WaitAction(time=500),)),
    ("form_input", {"target": {"type": "ref", "ref": "e3"}, "value": "mug"},
     (TypeAction(ref="e3", text="mug"),)),
    ("form_input", {"target": {"type": "ref", "ref": "e4"}, "value": "Large"},
     (CustomAction(action="select_option", args={"ref": "e4", "values": ["Large"]}),)),
    ("form_input", {"target": {"type": "ref", "ref": "e5"}, "value": True}, ()),
    ("form_input", {"target": {"type": "ref", "ref": "e5"}, "value": False},
     (ClickAction(ref="e5"),)),
    ("screenshot", {}, (ScreenshotFetch(),)),
    ("read_page", {}, ()),
    ("switch_tab", {"tab_id": "2"}, (CustomAction(action="switch_tab", args={"index": 2}),)),
    ("close_tab", {"tab_id": "2"}, (
        CustomAction(action="switch_tab", args={"index": 2}), CustomAction(action="close_tab"))),
    ("type", {"text": "x", "tab_id": "2"}, (
        CustomAction(action="switch_tab", args={"index": 2}), TypeAction(text="x"))),
    ("type", {"text": "x", "tab_id": "1"}, (TypeAction(text="x"),)),
]  # fmt: skip


@each_of(("name", "given", "wanted"), BROWSER)
def test_each_member_of_anthropics_browser_is_ours(
    name: str, given: dict[str, Any], wanted: tuple[Action, ...]
) -> None:
    """By coordinate and by ref; a field is set by what the text says that it is."""
    block = {"id": "t", "name": name, "toolset_name": "browser", "input": given}
    assert read_anthropic_browser(block, SAME, text=TEXT).actions == wanted


@each_of("name", ["new_tab", "left_mouse_down", "javascript_exec", "file_upload"])
def test_members_that_no_world_has_are_refused(name: str) -> None:
    """Also where a model calls them all the same."""
    with pytest.raises(InvalidAction, match="not offered here"):
        read_anthropic_browser({"id": "t", "name": name, "input": {}}, SAME)


def test_a_browser_result_says_which_tabs_there_are() -> None:
    """In a block of its own, beside what the member shows."""
    tabs = [Tab("Shop", "http://127.0.0.1/", active=True), Tab("Help", "http://127.0.0.1/help")]
    block = {"id": "t", "name": "find", "input": {"query": "add to cart button"}}
    result = anthropic_browser_result(block, Observation(text=TEXT), SAME, tabs)
    found, state = result["content"]
    assert found["text"].splitlines()[0] == '- button "Add to cart" [ref=e6]'
    assert state == {
        "type": "browser_state",
        "tabs": [
            {"tab_id": "1", "title": "Shop", "url": "http://127.0.0.1/", "active": True},
            {"tab_id": "2", "title": "Help", "url": "http://127.0.0.1/help"},
        ],
    }
    listed = {"id": "t", "name": "list_tabs", "input": {}}
    assert anthropic_browser_result(listed, Observation(), SAME, tabs)["content"] == [state]


OPENAI: list[tuple[dict[str, Any], Action]] = [
    ({"type": "click", "button": "left", "x": 135, "y": 193}, ClickAction(point=at(135, 193))),
    ({"type": "click", "button": "wheel", "x": 1, "y": 2},
     ClickAction(point=at(1, 2), button="middle")),
    ({"type": "click", "button": "left", "x": 1, "y": 2, "keys": ["CTRL"]},
     ClickAction(point=at(1, 2), hold_keys=("ctrl",))),
    ({"type": "double_click", "x": 1, "y": 2}, ClickAction(point=at(1, 2), pattern=(100,))),
    ({"type": "drag", "path": [{"x": 100, "y": 200}, {"x": 200, "y": 300}]},
     DragAction(path=(at(100, 200), at(200, 300)))),
    ({"type": "keypress", "keys": ["CTRL", "A"]}, PressAction(keys=("ctrl", "A"))),
    ({"type": "keypress", "keys": ["ENTER"]}, PressAction(keys=("enter",))),
    ({"type": "move", "x": 5, "y": 6}, MoveAction(point=at(5, 6))),
    ({"type": "screenshot"}, ScreenshotFetch()),
    ({"type": "scroll", "x": 5, "y": 6, "scroll_x": 0, "scroll_y": 400},
     ScrollAction(point=at(5, 6), scroll=at(0, 400))),
    ({"type": "type", "text": "hello"}, TypeAction(text="hello")),
    ({"type": "wait"}, WaitAction(time=2000)),
]  # fmt: skip


@each_of(("given", "wanted"), OPENAI)
def test_each_action_of_openais_computer_is_ours(given: dict[str, Any], wanted: Action) -> None:
    """Alone, as older models send it, and among others."""
    alone = {"type": "computer_call", "call_id": "c", "action": given}
    assert read_openai_computer(alone, SAME).actions == (wanted,)
    several = {"type": "computer_call", "call_id": "c", "actions": [given, given]}
    assert read_openai_computer(several, SAME).actions == (wanted, wanted)


def test_openais_safety_checks_are_for_a_person() -> None:
    """None is acknowledged by itself."""
    check = {"id": "cu_sc_1", "code": "malicious_instructions", "message": "Odd page."}
    call = {"call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": [check]}
    assert read_openai_computer(call, SAME).asks == "Odd page."
    seen = Observation(image=shot())
    (output,) = openai_computer_result(call, seen, SAME)
    assert "acknowledged_safety_checks" not in output
    (output,) = openai_computer_result(call, seen, SAME, acknowledged=[check])
    assert output["acknowledged_safety_checks"] == [check]


def test_openais_result_is_a_picture_and_then_the_error() -> None:
    """As its reference has it."""
    assert openai_computer_tool() == {"type": "computer"}
    call = {"call_id": "call_9", "action": {"type": "screenshot"}}
    output, told = openai_computer_result(call, Observation(image=shot()), HALF, error="refused")
    assert (output["type"], output["call_id"]) == ("computer_call_output", "call_9")
    assert output["output"]["type"] == "computer_screenshot"
    kind, _, encoded = output["output"]["image_url"].partition("base64,")
    assert kind == "data:image/png;"
    assert opened(encoded).size == (640, 400)
    assert told["content"] == [{"type": "input_text", "text": "refused"}]


def test_anthropics_frame_is_as_large_as_its_models_read() -> None:
    """Points in a larger one would be off, as the picture is made smaller before they see it."""
    computer = anthropic_computer("computer_20251124")
    assert computer.frame(1280, 800) == SAME
    assert computer.frame(1920, 1080).shown == fitted_size(1920, 1080, Look()) != (1920, 1080)


GRID = gemini_frame(1440, 900)

GEMINI: list[tuple[str, dict[str, Any], tuple[Action, ...]]] = [
    ("click_at", {"x": 500, "y": 500}, (ClickAction(point=at(720, 450)),)),
    ("click", {"x": 500, "y": 500}, (ClickAction(point=at(720, 450)),)),
    ("triple_click", {"x": 0, "y": 0}, (ClickAction(point=at(0, 0), pattern=(100, 100)),)),
    ("right_click", {"x": 0, "y": 0}, (ClickAction(point=at(0, 0), button="right"),)),
    ("hover_at", {"x": 250, "y": 100}, (MoveAction(point=at(360, 90)),)),
    ("type_text_at", {"x": 500, "y": 500, "text": "hello", "press_enter": True},
     (TypeAction(point=at(720, 450), text="hello", enter_after=True),)),
    ("type_text_at", {"x": 500, "y": 500, "text": "hello", "clear_before_typing": False},
     (ClickAction(point=at(720, 450)), TypeAction(text="hello"))),
    ("type", {"text": "hello"}, (TypeAction(text="hello"),)),
    ("scroll_document", {"direction": "down"},
     (ScrollAction(point=at(720, 450), scroll=at(0, 720)),)),
    ("scroll_at", {"x": 500, "y": 500, "direction": "left", "magnitude": 500},
     (ScrollAction(point=at(720, 450), scroll=at(-720, 0)),)),
    ("wait_5_seconds", {}, (WaitAction(time=5000),)),
    ("wait", {"seconds": 2}, (WaitAction(time=2000),)),
    ("go_back", {}, (CustomAction(action="back"),)),
    ("navigate", {"url": "https://example.com"},
     (CustomAction(action="goto", args={"url": "https://example.com"}),)),
    ("key_combination", {"keys": "control+a"}, (PressAction(keys=("control", "a")),)),
    ("hotkey", {"keys": ["control", "a"]}, (PressAction(keys=("control", "a")),)),
    ("press_key", {"key": "Enter"}, (PressAction(keys=("enter",)),)),
    ("drag_and_drop", {"x": 100, "y": 100, "destination_x": 500, "destination_y": 500},
     (DragAction(path=(at(144, 90), at(720, 450))),)),
    ("open_web_browser", {}, (ScreenshotFetch(),)),
]  # fmt: skip


@each_of(("name", "args", "wanted"), GEMINI)
def test_each_function_of_geminis_computer_is_ours(
    name: str, args: dict[str, Any], wanted: tuple[Action, ...]
) -> None:
    """Of both sets; places and distances are thousandths of the screen."""
    assert read_gemini_computer({"name": name, "args": args}, GRID).actions == wanted


def test_geminis_safety_decision_is_for_a_person() -> None:
    """Its explanation is what they have to agree to."""
    safety = {"decision": "require_confirmation", "explanation": "It buys something."}
    call = {"name": "click_at", "args": {"x": 1, "y": 1, "safety_decision": safety}}
    assert read_gemini_computer(call, GRID).asks == "It buys something."
    result = gemini_computer_result(call, Observation(), url="http://a/", acknowledged=True)
    assert result["response"] == {"url": "http://a/", "safety_acknowledgement": "true"}


def test_geminis_result_has_the_address_and_the_picture() -> None:
    """As its reference implementation sends it."""
    tool = gemini_computer_tool()["computerUse"]
    assert tool["environment"] == "ENVIRONMENT_BROWSER"
    assert "mouse_down" in tool["excludedPredefinedFunctions"]
    call = {"name": "navigate", "id": "f1", "args": {"url": "x"}}
    result = gemini_computer_result(call, Observation(image=shot(1440, 900)), url="http://x/")
    assert (result["name"], result["id"]) == ("navigate", "f1")
    (part,) = result["parts"]
    assert opened(part["inlineData"]["data"]).size == (1440, 900)
    with pytest.raises(InvalidAction, match="not offered here"):
        read_gemini_computer({"name": "mouse_down", "args": {}}, GRID)

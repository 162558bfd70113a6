"""What counts as an action, in which forms, and what is said of one that does not."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tables import each_of

from hud_mcp.errors import InvalidAction
from hud_mcp.server.arguments import ACTION
from hud_mcp.values.action import (
    ACTION_TYPES,
    MAX_WAIT_MS,
    Action,
    ClickAction,
    CustomAction,
    DragAction,
    MoveAction,
    Point,
    PressAction,
    ResponseAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
    parse_action,
    parse_actions,
    scale_action,
)

FIELDS = [*ACTION, "point", "scroll", "offset", "reasoning", "logs"]
"""The flat form's, the nested form's, and what every action may carry."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "y"]) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
raw_actions = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=6), json_values).flatmap(
    lambda fields: st.sampled_from([*ACTION_TYPES, None, "clik", 3]).map(
        lambda kind: {**fields, "type": kind}
    )
)


@settings(max_examples=60)
@given(raw_actions | json_values)
@example({"type": "wait", "time": 10**400})
@example({"type": "click", "x": 10**400, "y": float("nan")})
@example({"type": []})
@example({"type": "custom", "action": "a", "args": {"": [{}]}})
def test_any_json_is_an_action_or_an_invalid_action(raw: Any) -> None:
    """Whatever a client sends, nothing but InvalidAction is raised, and its text is a sentence."""
    try:
        action = parse_action(raw)
    except InvalidAction as exc:
        assert str(exc).startswith("action: ")  # noqa: PT017  # it may also be valid
        assert str(exc).endswith(".")  # noqa: PT017
    else:
        assert action.type in ACTION_TYPES


@settings(max_examples=60)
@given(raw_actions)
def test_an_action_survives_its_own_json(raw: dict[str, Any]) -> None:
    """What is recorded of an action reads back as the same action."""
    try:
        action = parse_action(raw)
    except InvalidAction:
        return
    row = action.model_dump(mode="json", exclude_none=True)
    if "NaN" in json.dumps(row) or "Infinity" in json.dumps(row):
        return  # in a free field; JSON has no form for it
    assert parse_action(row) == action


@each_of(
    ("raw", "expected"),
    [
        ({"type": "click", "point": {"x": 1, "y": 2}}, ClickAction(point=Point(x=1, y=2))),
        ({"type": "click", "x": 1, "y": 2}, ClickAction(point=Point(x=1, y=2))),
        ({"type": "click", "x": 0, "y": 0}, ClickAction(point=Point(x=0, y=0))),
        ({"type": "click", "ref": "e3"}, ClickAction(ref="e3")),
        ({"type": "click", "selector": "#a"}, ClickAction(selector="#a")),
        (
            {"type": "click", "ref": "e3", "pattern": [100]},
            ClickAction(ref="e3", pattern=(100,)),
        ),
        ({"type": "press", "keys": ["ctrl", "a"]}, PressAction(keys=("ctrl", "a"))),
        ({"type": "type", "text": "hi"}, TypeAction(text="hi")),
        ({"type": "type", "text": "", "ref": "e1"}, TypeAction(text="", ref="e1")),
        ({"type": "scroll", "scroll_y": 300}, ScrollAction(scroll=Point(x=0, y=300))),
        ({"type": "scroll", "scroll_x": -5}, ScrollAction(scroll=Point(x=-5, y=0))),
        (
            {"type": "scroll", "scroll": {"x": 0, "y": 9}, "x": 1, "y": 2},
            ScrollAction(scroll=Point(x=0, y=9), point=Point(x=1, y=2)),
        ),
        ({"type": "move", "offset_x": 5}, MoveAction(offset=Point(x=5, y=0))),
        ({"type": "wait", "time": 500.0}, WaitAction(time=500)),
        (
            {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 9, "y": 9}]},
            DragAction(path=(Point(x=0, y=0), Point(x=9, y=9))),
        ),
        ({"type": "screenshot"}, ScreenshotFetch()),
        ({"type": "response", "text": ""}, ResponseAction(text="")),
        (
            {"type": "custom", "action": "goto", "args": {"url": "/cart"}},
            CustomAction(action="goto", args={"url": "/cart"}),
        ),
    ],
)
def test_both_forms_of_each_action_are_read(raw: dict[str, Any], expected: Action) -> None:
    """The nested form of the HUD SDK and the flat form that models write mean the same."""
    assert parse_action(raw) == expected


@pytest.mark.parametrize("empty", [None, ""])
def test_a_schema_filled_in_to_the_last_property_is_one_click(empty: str | None) -> None:
    """Frameworks that send every property, the others as null or "", are understood."""
    raw: dict[str, Any] = dict.fromkeys(FIELDS, empty) | {"type": "click", "x": 3, "y": 4}
    if empty == "":
        raw["text"] = ""
    assert parse_action(raw) == ClickAction(point=Point(x=3, y=4))


def test_a_ref_beside_a_filled_in_point_is_what_was_meant() -> None:
    """Of x, y, ref and selector sent together in the flat form, the ref is taken."""
    raw = {"type": "click", "x": 0, "y": 0, "ref": "e1", "selector": "#a"}
    assert parse_action(raw) == ClickAction(ref="e1")


def test_a_point_and_a_ref_in_the_nested_form_contradict_each_other() -> None:
    """Nothing fills in a nested point by accident, so two targets are an error."""
    with pytest.raises(InvalidAction, match="give one of point, ref and selector, not point and"):
        parse_action({"type": "click", "point": {"x": 1, "y": 1}, "ref": "e1"})


def test_the_old_name_of_the_middle_button_is_read() -> None:
    """`wheel` was the HUD SDK's word for the middle button."""
    assert parse_action({"type": "click", "ref": "e1", "button": "wheel"}) == ClickAction(
        ref="e1", button="middle"
    )


def test_an_action_passes_through_as_it_is() -> None:
    """Parsing what is an action already returns the same object."""
    action = WaitAction(time=1)
    assert parse_action(action) is action


@each_of(
    ("raw", "said"),
    [
        ({"type": "clik"}, "action: unknown type 'clik'. Did you mean 'click'? The types are"),
        ({}, "action: unknown type None. The types are click, press,"),
        ({"type": ["click"]}, "action: unknown type ['click']. The types are"),
        ("click", "action: expected an object such as {'type': 'screenshot'}, got 'click'."),
        ({"type": "click"}, "'click' needs x and y, a ref, or a selector"),
        ({"type": "click", "x": 3}, "'click' needs y"),
        ({"type": "click", "x": "left", "y": 1}, "x: expected a number such as 10, got 'left'"),
        ({"type": "click", "x": float("inf"), "y": 1}, "x: expected a number such as 10, got inf"),
        ({"type": "click", "ref": "e1", "button": "up"}, "button: expected one of 'left',"),
        ({"type": "click", "ref": "e1", "buton": "left"}, "no field 'buton'. Did you mean 'button"),
        ({"type": "wait", "ms": 300}, "no field 'ms'. Did you mean 'time'?"),
        (
            {"type": "click", "ref": "e1", "pattern": [9999]},
            "pattern[0]: expected a whole number from 0 to 5000, got 9999",
        ),
        ({"type": "press"}, "'press' needs keys"),
        ({"type": "press", "keys": []}, "'press' needs keys"),
        ({"type": "press", "keys": "ctrl, a"}, "keys: expected a list such as ['ctrl', 'a'], got"),
        ({"type": "press", "keys": [1]}, "action: keys[0]: expected a string such as '1', got 1."),
        ({"type": "type"}, "'type' needs text"),
        ({"type": "scroll"}, "'scroll' needs scroll_x or scroll_y"),
        (
            {"type": "scroll", "scroll": "down"},
            "action: scroll: expected an object such as {'x': 10, 'y': 10}, got 'down'",
        ),
        (
            {"type": "scroll", "scroll_y": "down"},
            "action: scroll_y: expected a number such as 10, got 'down'",
        ),
        ({"type": "move"}, "'move' needs x and y, a ref, a selector, or an offset"),
        ({"type": "wait"}, "'wait' needs time"),
        (
            {"type": "wait", "time": MAX_WAIT_MS + 1},
            "expected a whole number from 0 to 30000, got 30001",
        ),
        ({"type": "wait", "time": -1}, "time: expected a whole number from 0 to 30000, got -1"),
        (
            {"type": "drag", "path": [{"x": 0, "y": 0}]},
            "path: expected a list of 2 to 500 items such as [{'x': 10,",
        ),
        ({"type": "response"}, "'response' needs text"),
        ({"type": "custom"}, "'custom' needs action"),
        (
            {"type": "custom", "action": "a", "args": "x"},
            "args: expected an object such as {",
        ),
    ],
)
def test_a_bad_action_is_told_what_came_and_what_was_expected(raw: Any, said: str) -> None:
    """Each text names the field, what came and what belongs there."""
    with pytest.raises(InvalidAction) as caught:
        parse_action(raw)
    assert said in str(caught.value)


def test_a_name_of_another_framework_s_is_told_ours() -> None:
    """Also where another name of ours looks more like it."""
    meant = {
        "scroll": "dy scroll_y, deltaY scroll_y, dx scroll_x, scrollX scroll_x, amount scroll_y",
        "move": "dx offset_x, delta_y offset_y, coordinate x",
        "press": "key keys, combo keys, hotkey keys",
        "type": "content text, value text, pressEnter enter_after, elementId ref",
        "click": "clicks pattern, uid ref, css selector, modifiers hold_keys, buton button",
        "wait": "ms time, seconds time",
        "drag": "points path",
        "custom": "arguments args, name action",
        "left_click": "type click",
        "keypress": "type press",
        "hover": "type move",
        "sleep": "type wait",
        "goto": "type custom",
        "finish": "type response",
        "clik": "type click",
    }
    wrong: list[str] = []
    for kind, pairs in meant.items():
        for pair in pairs.split(", "):
            given, ours = pair.split()
            with pytest.raises(InvalidAction) as caught:
                parse_action({"type": kind, given: kind if given == "type" else 1})
            if f"Did you mean '{ours}'?" not in str(caught.value):
                wrong.append(f"{kind} {pair}: {caught.value}")
    assert wrong == []


def test_an_element_of_a_page_is_named_as_a_person_names_it() -> None:
    """The forms that Playwright writes its locators in are said in words; other selectors stay."""
    said = {
        'internal:label="Full name"s': "the field “Full name”",
        'internal:role=button[name="Buy \\"x\\""i]': 'the button “Buy "x"”',
        'role=link[name="Settings"]': "the link “Settings”",
        "role=button": "the button",
        'internal:role=row[name="Ann"i] >> internal:role=button': "the button in the row “Ann”",
        'internal:role=listitem >> internal:has-text="Ann"i >> nth=-1':
            "the item with the text “Ann” (the last match)",
        'internal:text="Hi"i': "the text “Hi”",
        "text=Buy now": "the text “Buy now”",
        'internal:attr=[placeholder="Find"i]': "the field “Find”",
        'internal:testid=[data-testid="t"s] >> nth=1': "the data-testid “t” (match 2)",
        'button:has-text("Buy")': "the button “Buy”",
        "input[placeholder='City']": "the field “City”",
        '[aria-label="Search"]': "“Search”",
        "internal:unknown=x": "internal:unknown=x",
        "#name": "#name",
        "//a": "//a",
        "nth=99999999999999": "nth=99999999999999",
        "div[role=button] >> text=a": "the text “a” in div[role=button]",
    }  # fmt: skip
    words = {s: parse_action({"type": "click", "selector": s}).words({}) for s in said}
    assert words == {selector: f"click {name}" for selector, name in said.items()}


def test_an_error_does_not_repeat_a_long_value() -> None:
    """A value that was given is clipped, so that an error stays short."""
    with pytest.raises(InvalidAction) as caught:
        parse_action({"type": "x" * 5000})
    assert len(str(caught.value)) < 400


@each_of(
    ("raw", "count"),
    [
        (None, 0),
        ([], 0),
        ("[]", 0),
        ({"type": "screenshot"}, 1),
        ('{"type": "screenshot"}', 1),
        (['{"type": "screenshot"}'], 1),
        ([{"type": "screenshot"}] * 3, 3),
        ('[{"type": "screenshot"}, {"type": "screenshot"}]', 2),
    ],
)
def test_a_list_one_action_and_nothing_are_lists_of_actions(raw: Any, count: int) -> None:
    """One action counts as a list of one, and none as an empty list."""
    assert parse_actions(raw) == (ScreenshotFetch(),) * count


def test_a_bad_action_in_a_list_is_named_by_its_place() -> None:
    """The error says which of the actions was wrong."""
    with pytest.raises(InvalidAction, match=r"^actions\[1\]: unknown type 'jump'"):
        parse_actions([{"type": "screenshot"}, {"type": "jump"}])


@each_of("raw", ["click", "3", "{", b"click", 3, True])
def test_what_is_no_list_of_actions_is_refused(raw: Any) -> None:
    """Text is a sequence to Python, and no list of actions."""
    with pytest.raises(InvalidAction, match=r"actions: expected a list of actions such as .*, got"):
        parse_actions(raw)


finite = st.floats(-1e6, 1e6)
points = st.builds(Point, x=finite, y=finite)


@settings(max_examples=30)
@given(points, points, st.floats(0.1, 10))
def test_places_are_scaled_and_distances_of_the_wheel_are_not(
    place: Point, far: Point, scale: float
) -> None:
    """Points, paths and offsets are pixels of the picture; a scroll is CSS pixels already."""
    scaled = Point(x=place.x * scale, y=place.y * scale)
    assert scale_action(ClickAction(point=place), scale) == ClickAction(point=scaled)
    assert scale_action(MoveAction(offset=place), scale) == MoveAction(offset=scaled)
    drag = scale_action(DragAction(path=(place, place)), scale)
    assert drag == DragAction(path=(scaled, scaled))
    wheel = scale_action(ScrollAction(point=place, scroll=far), scale)
    assert wheel == ScrollAction(point=scaled, scroll=far)


@pytest.mark.parametrize("action", [ClickAction(ref="e1"), WaitAction(time=5)])
def test_an_action_without_a_place_is_not_changed_by_scaling(action: Action) -> None:
    """There is nothing to scale in a ref or a wait."""
    assert scale_action(action, 2.0) is action


def test_an_action_cannot_be_changed() -> None:
    """What was recorded is what was performed."""
    action = WaitAction(time=1)
    with pytest.raises(ValidationError):
        action.time = 2  # pyright: ignore[reportAttributeAccessIssue]  # that is the claim

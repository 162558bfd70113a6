"""Frameworks that fill in every property of a schema reach what those do that fill in none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tables import each_of

from hud_mcp import Browser, Gymnasium, Shell
from hud_mcp.base.reading import Reader, admits
from hud_mcp.environment import Environment
from hud_mcp.errors import InvalidAction
from hud_mcp.server.tools import CORE
from hud_mcp.server.tools.step import as_taken
from hud_mcp.values.action import CustomAction, parse_action

PAGES = Environment("pages", world=Browser(site="."))
POLE = Environment("pole", world=Gymnasium("CartPole-v1"))
FILES = Environment("files", world=Shell())

EVERYTHING: dict[str, Any] = {
    "x": 0, "y": 0, "ref": "", "selector": "", "button": "left", "pattern": [], "hold_keys": [],
    "keys": [], "text": "", "enter_after": False, "scroll_x": 0, "scroll_y": 0, "offset_x": 0,
    "offset_y": 0, "time": 0, "path": [], "action": "", "args": {}, "reasoning": "", "logs": "",
}  # fmt: skip
"""What stands in a flat action where nothing may be null."""
NOTHING = dict.fromkeys(EVERYTHING)
"""And where everything may."""
PAGE_ARGS: dict[str, Any] = {
    "url": "", "index": 0, "ref": "", "selector": "", "values": [], "accept": False, "text": "",
}  # fmt: skip

ACTIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a click on a point", {"type": "click", "x": 3, "y": 4}, {"point": {"x": 3, "y": 4}}),
    ("a click on a ref", {"type": "click", "ref": "e3"}, {"ref": "e3"}),
    ("a click on a selector", {"type": "click", "selector": "#a"}, {"selector": "#a"}),
    ("keys", {"type": "press", "keys": ["a"]}, {"keys": ["a"]}),
    ("a text", {"type": "type", "text": "hi", "ref": "e1"}, {"text": "hi", "ref": "e1"}),
    ("no text", {"type": "type", "text": "", "ref": "e1"}, {"text": "", "ref": "e1"}),
    ("a scroll", {"type": "scroll", "scroll_y": 9, "ref": "e1"}, {"ref": "e1"}),
    ("a wait", {"type": "wait", "time": 5}, {"time": 5}),
    ("a way", {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}, {}),
    ("a look", {"type": "screenshot"}, {}),
    ("an answer", {"type": "response", "text": "42"}, {"text": "42"}),
    ("no answer", {"type": "response", "text": ""}, {"text": ""}),
    ("the nested form", {"type": "click", "point": {"x": 1, "y": 2}}, {"point": {"x": 1, "y": 2}}),
    ("an empty point", {"type": "click", "ref": "e1", "point": {"x": None, "y": None}}, {}),
]


@each_of("filled", [NOTHING, EVERYTHING], ids=["null", "empty"])
@each_of(("given", "meant"), [(a, b) for _, a, b in ACTIONS], ids=[n for n, *_ in ACTIONS])
def test_an_action_is_what_its_own_fields_say(
    filled: dict[str, Any], given: dict[str, Any], meant: dict[str, Any]
) -> None:
    """Whatever a framework puts into the fields that belong to other types of action."""
    read = parse_action({**filled, **given}).model_dump(mode="json")
    assert {name: read[name] for name in meant} == meant
    assert read["type"] == given["type"]
    alone = parse_action({k: v for k, v in given.items() if v is not None}).model_dump(mode="json")
    told = {k: v for k, v in read.items() if v and k not in ("point", "offset")}
    assert told == {k: v for k, v in alone.items() if v and k not in ("point", "offset")}


@each_of(
    ("given", "said"),
    [
        ({"type": "press", "keys": []}, "'press' needs keys"),
        ({"type": "drag", "path": []}, "'drag' needs path"),
        ({"type": "custom", "action": ""}, "'custom' needs action"),
        ({"type": "wait", "time": None}, "'wait' needs time"),
        ({"type": "wait", "time": ""}, "'wait' needs time"),
        ({"type": "type", "text": None, "ref": "e1"}, "'type' needs text"),
        ({"type": "response", "text": None}, "'response' needs text"),
        ({"type": "click", "ref": "", "selector": ""}, "'click' needs x and y, a ref"),
        ({"type": "click", "x": 1, "y": None}, "'click' needs y"),
    ],
)
def test_what_an_action_needs_is_asked_for_where_nothing_stands_in_it(
    given: dict[str, Any], said: str
) -> None:
    """Absent is absent, in whatever way a framework writes it."""
    with pytest.raises(InvalidAction) as caught:
        parse_action(given)
    assert said in str(caught.value)


CUSTOM: list[tuple[Environment, str, dict[str, Any], dict[str, Any]]] = [
    (PAGES, "goto", {**dict.fromkeys(PAGE_ARGS), "url": "/a"}, {"url": "/a"}),
    (PAGES, "goto", {**PAGE_ARGS, "url": "/a"}, {"url": "/a"}),
    (PAGES, "goto", {**PAGE_ARGS, "url": "/a", "accept": True, "index": 4}, {"url": "/a"}),
    (PAGES, "back", PAGE_ARGS, {}),
    (PAGES, "switch_tab", {**PAGE_ARGS, "index": 2}, {"index": 2}),
    (PAGES, "select_option", {**PAGE_ARGS, "ref": "e1", "values": ["x"]},
     {"ref": "e1", "values": ["x"]}),
    (PAGES, "select_option", {**PAGE_ARGS, "ref": "e1"}, {"ref": "e1", "values": []}),
    (PAGES, "answer_dialogs", PAGE_ARGS, {"accept": False, "text": ""}),
    (PAGES, "answer_dialogs", {"accept": None, "text": None}, {}),
    (PAGES, "goto", {"url": "/a", "zzz": ""}, {"url": "/a", "zzz": ""}),
    (PAGES, "zzz", {"url": None}, {"url": None}),
    (POLE, "step", {"action": 1, "actions": None, "repeat": None}, {"action": 1}),
    (POLE, "step", {"action": 1, "actions": [], "repeat": 2}, {"action": 1, "repeat": 2}),
    (POLE, "step", {"action": None, "actions": [0, 1], "repeat": None}, {"actions": [0, 1]}),
    (POLE, "step", {"action": 0}, {"action": 0}),
    (FILES, "run", {"command": "ls", "timeout_s": None, "path": "", "every": False},
     {"command": "ls"}),
    (FILES, "write", {"path": "a", "content": "", "old": "", "new": ""},
     {"path": "a", "content": ""}),
]  # fmt: skip


@each_of(("environment", "name", "given", "kept"), CUSTOM)
def test_a_world_s_own_action_has_the_arguments_that_were_meant(
    environment: Environment, name: str, given: dict[str, Any], kept: dict[str, Any]
) -> None:
    """Of the arguments of all its actions, side by side; what nobody knows is for it to refuse."""
    (taken,) = as_taken((CustomAction(action=name, args=given),), environment)
    assert isinstance(taken, CustomAction)
    assert taken.args == kept


EMPTIES: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "string"}, [""]),
    ({"type": "string", "minLength": 1}, []),
    ({"type": "string", "enum": ["a"]}, []),
    ({"type": "string", "enum": ["", "a"]}, [""]),
    ({"type": "string", "format": "date"}, []),
    ({"type": "string", "pattern": "^a"}, []),
    ({"type": "string", "pattern": "^a*$"}, [""]),
    ({"const": ""}, [""]),
    ({"type": "integer"}, []),
    ({"type": "array", "items": {}}, [[]]),
    ({"type": "array", "minItems": 1}, []),
    ({"type": "object"}, [{}]),
    ({"type": "object", "required": ["a"]}, []),
    ({"type": "object", "minProperties": 1}, []),
    ({"type": ["string", "null"]}, [None, ""]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [None]),
    ({"oneOf": [{"type": "array"}, {"type": "string"}]}, ["", []]),
    ({}, [None, "", [], {}]),
]


@each_of(("schema", "admitted"), EMPTIES)
def test_a_schema_says_what_of_nothing_is_a_value(
    schema: dict[str, Any], admitted: list[Any]
) -> None:
    """As the standard has it, but that a format and a pattern mean something."""
    assert [each for each in (None, "", [], {}) if admits(schema, each)] == admitted
    if "format" not in schema:
        valid = Draft202012Validator(schema)
        assert [each for each in (None, "", [], {}) if valid.is_valid(each)] == admitted


ONE = {"type": "object", "properties": {"a": {"type": "integer"}}}
SEVERAL = {"type": "object", "properties": {"b": {"type": "array", "minItems": 1}}}
NESTED = {
    "type": "object",
    "properties": {
        "where": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "note": {"type": "string"}},
            "required": ["x"],
        },
        "many": {"type": "array", "items": ONE},
        "maybe": {"anyOf": [SEVERAL, {"type": "null"}]},
        "needed": {"type": "integer"},
    },
    "required": ["needed"],
}  # fmt: skip


@each_of(
    ("given", "kept"),
    [
        ({"needed": 1, "where": None, "many": None}, {"needed": 1}),
        ({"needed": 1, "where": {}, "many": []}, {"needed": 1, "many": []}),
        ({"needed": 1, "where": {"x": 1, "note": None}}, {"needed": 1, "where": {"x": 1}}),
        (
            {"needed": 1, "where": {"x": 1, "note": ""}},
            {"needed": 1, "where": {"x": 1, "note": ""}},
        ),
        ({"needed": 1, "where": {"x": None}}, {"needed": 1, "where": {"x": None}}),
        ({"needed": 1, "many": [{"a": None}, {"a": 0}]}, {"needed": 1, "many": [{}, {"a": 0}]}),
        ({"needed": 1, "maybe": None}, {"needed": 1, "maybe": None}),
        ({"needed": 1, "maybe": {"b": []}}, {"needed": 1, "maybe": {}}),
        ({"needed": None}, {"needed": None}),
        ({"needed": 1, "other": None}, {"needed": 1, "other": None}),
    ],
)
def test_nested_objects_lose_what_is_absent_in_them(
    given: dict[str, Any], kept: dict[str, Any]
) -> None:
    """What is required stays, so that its reader can name it."""
    assert Reader(NESTED).read(given) == kept


REFERRED = {
    "type": "object",
    "properties": {
        "one": {"$ref": "#/$defs/One"},
        "by": {"type": "object", "additionalProperties": {"$ref": "#/$defs/One"}},
        "count": {"$ref": "#/$defs/Count"},
    },
    "$defs": {"One": ONE, "Count": {"type": "integer"}},
}


@each_of(
    ("given", "kept"),
    [
        ({"one": {"a": None}}, {"one": {}}),
        ({"by": {"x": {"a": None}, "y": {"a": 0}}}, {"by": {"x": {}, "y": {"a": 0}}}),
        ({"count": ""}, {}),
        ({"count": 0}, {"count": 0}),
    ],
)
def test_what_a_schema_refers_to_counts(given: dict[str, Any], kept: dict[str, Any]) -> None:
    """As of the arguments of an author that are models, and of objects by name."""
    assert Reader(REFERRED).read(given) == kept


@each_of(
    ("tool", "given", "kept"),
    [
        ("start_task", {"task": "a", "arguments": {}}, {"task": "a", "arguments": {}}),
        ("start_task", {"task": "a", "arguments": None, "template": "", "context": None,
                        "environment": "", "seed": None, "session": ""}, {"task": "a"}),
        ("start_task", {"task": "a", "arguments": [], "seed": "", "context": ""}, {"task": "a"}),
        ("step", {"actions": {}, "observe": "", "after_step": None}, {}),
        ("step", {"actions": [], "session": []}, {"actions": []}),
        ("screenshot", {"format": None, "session": ""}, {}),
        ("list_tasks", {"environment": "", "filter": "", "offset": 0, "template": ""},
         {"offset": 0}),
        ("act", {"type": "wait", "time": 1, "x": "", "keys": {}, "pattern": []},
         {"type": "wait", "time": 1, "pattern": []}),
        ("response", {"answer": "", "session": None}, {"answer": ""}),
    ],
)  # fmt: skip
def test_a_core_tool_s_arguments_are_those_that_were_meant(
    tool: str, given: dict[str, Any], kept: dict[str, Any]
) -> None:
    """An empty answer is one, and what cannot be empty is absent."""
    assert CORE[tool].parse(given, max_bytes=10_000) == kept


@given(
    st.dictionaries(
        st.sampled_from(sorted(NESTED["properties"])),  # type: ignore[arg-type]
        st.sampled_from([None, "", [], {}, 1, {"x": None}, [{"a": ""}]]),
    )
)
def test_what_is_dropped_is_dropped_once(drawn: dict[str, Any]) -> None:
    """Nothing is left that would be dropped again, and nothing is added."""
    kept = Reader(NESTED).read(drawn)
    assert set(kept) <= set(drawn)
    assert Reader(NESTED).read(kept).keys() <= kept.keys()

"""A core tool's arguments: frameworks are understood, and a model is told what it got wrong."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.errors import InvalidTask, LimitReached
from hud_mcp.server.tools import CORE
from hud_mcp.server.view import View

SCHEMAS: dict[str, dict[str, Any]] = {name: tool.schema(View.of()) for name, tool in CORE.items()}


def clean(tool: str, given: dict[str, Any], *, max_bytes: int = 100_000) -> dict[str, Any]:
    """Clean a call of a core tool."""
    return CORE[tool].parse(given, max_bytes=max_bytes)


@pytest.mark.parametrize("empty", [None, ""])
def test_every_optional_argument_may_be_null_or_empty(empty: str | None) -> None:
    """Some frameworks send all properties of a schema; the others count as absent."""
    for tool, schema in SCHEMAS.items():
        required = schema.get("required", [])
        optional = [name for name in schema["properties"] if name not in (*required, "text")]
        needed = dict.fromkeys(required, "click")
        assert clean(tool, dict.fromkeys(optional, empty) | needed) == needed


@each_of(
    ("tool", "given", "kept"),
    [
        ("response", {"answer": ""}, {"answer": ""}),
        ("act", {"type": "type", "text": ""}, {"type": "type", "text": ""}),
        ("act", {"type": "type", "text": None}, {"type": "type"}),
        ("act", {"type": "wait", "time": 500.0}, {"type": "wait", "time": 500}),
        ("list_tasks", {"offset": 100.0}, {"offset": 100}),
        ("act", {"type": "click", "x": 1, "y": 2.5}, {"type": "click", "x": 1, "y": 2.5}),
        ("start_task", {"seed": 0}, {"seed": 0}),
        ("start_task", {"arguments": {}}, {"arguments": {}}),
        ("act", {"type": "type", "text": "a", "enter_after": False}, None),
        ("act", {"type": "click", "point": {"x": 1, "y": 2}}, None),
        ("act", {"type": "scroll", "scroll": {"x": 1, "y": 2}}, None),
        ("act", {"type": "move", "offset": {"x": 1, "y": 2}}, None),
        ("step", {"actions": {"type": "screenshot"}}, None),
        ("step", {"actions": []}, None),
    ],
)
def test_what_was_meant_is_kept(
    tool: str, given: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    """Falsy values are values, and the nested form of an action passes to its parser."""
    cleaned = clean(tool, given)
    assert cleaned == (given if kept is None else kept)
    assert [type(v) for v in cleaned.values()] == [type(v) for v in (kept or given).values()]


@each_of(
    ("tool", "given", "said"),
    [
        ("response", {}, "response: argument 'answer' is required."),
        ("response", {"answer": None}, "'answer' is required"),
        ("response", {"answer": 5}, "answer: expected a string such as '5', got 5"),
        ("response", {"answer": ["a"]}, "answer: expected a string, got ['a']"),
        ("response", {"anwser": "5"}, "no argument 'anwser'. Did you mean 'answer'? It takes: ans"),
        ("act", {}, "'type' is required"),
        ("act", {"type": 3}, "type: expected one of 13 values such as 'click'"),
        ("act", {"type": "click", "x": "12px"}, "x: expected a number such as 10, got '12px'"),
        ("act", {"type": "click", "x": True}, "x: expected a number such as 10, got True"),
        (
            "act",
            {"type": "press", "keys": "[a]"},
            "keys: expected a list such as ['a'], got '[a]'",
        ),
        ("act", {"type": "wait", "time": 0.5}, "time: expected a whole number such as 10, got 0.5"),
        (
            "act",
            {"type": "wait", "time": float("inf")},
            "time: expected a whole number such as 10, got inf",
        ),
        ("act", {"type": "type", "enter_after": 1}, "enter_after: expected true or false, got 1"),
        ("step", {"point": {"x": 1, "y": 1}}, "there is no argument 'point'"),
        ("start_task", {"seed": "7.5"}, "seed: expected a whole number such as 10, got '7.5'"),
        ("start_task", {"seed": True}, "seed: expected a whole number such as 10, got True"),
        ("start_task", {"seed": 2**70}, "start_task: seed: a whole number has at most 64 bits"),
        ("start_task", {"context": {"a": 2**70}}, "context: a whole number has at most 64 bits"),
        (
            "start_task",
            {"arguments": "{"},
            "arguments: expected an object such as {'name': 'a'}, got '{'",
        ),
        (
            "start_task",
            {"arguments": "[1]"},
            "arguments: expected an object such as {'name': 'a'}, got '[1]'",
        ),
        ("list_tasks", {"offset": -1}, "offset: expected a whole number of at least 0, got -1"),
        ("cancel_task", {"session": 5}, "session: expected a string such as '5', got 5"),
        (
            "task_status",
            {"session": "\ud800"},
            "task_status: session: a text has half of a character",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_what_came(
    tool: str, given: dict[str, Any], said: str
) -> None:
    """The text is enough for a model to correct its call."""
    with pytest.raises(InvalidTask) as caught:
        clean(tool, given)
    assert said in str(caught.value)


def test_several_wrong_arguments_are_named_at_once() -> None:
    """And only a few of very many."""
    with pytest.raises(InvalidTask) as caught:
        clean("act", {"x": "a", "y": "b", **{f"nope{i}": 1 for i in range(50)}})
    assert "x: expected" in str(caught.value)
    assert "y: expected" in str(caught.value)
    assert str(caught.value).count("; ") == 4


def test_arguments_that_are_too_large_are_refused_by_their_size() -> None:
    """The text says how large they are and how large they may be."""
    with pytest.raises(
        LimitReached, match="response: the arguments have 1013 bytes; the limit is 100"
    ):
        clean("response", {"answer": "x" * 1000}, max_bytes=100)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(data=st.data(), tool=st.sampled_from(sorted(SCHEMAS)))
def test_any_json_is_cleaned_or_refused(data: st.DataObject, tool: str) -> None:
    """No other exception leaves, cleaning is done once and for all, and kinds are the schema's."""
    names = st.sampled_from(sorted(SCHEMAS[tool]["properties"])) | st.text(max_size=4)
    given_arguments = data.draw(st.dictionaries(names, json_values, max_size=5))
    try:
        kept = clean(tool, given_arguments)
    except InvalidTask:
        return
    assert clean(tool, kept) == kept
    assert set(kept) <= set(given_arguments)
    assert set(SCHEMAS[tool].get("required", ())) <= set(kept)
    for name, value in kept.items():
        kind = SCHEMAS[tool]["properties"].get(name, {}).get("type")
        assert kind != "integer" or type(value) is int
        assert kind != "boolean" or type(value) is bool


def test_what_is_no_text_may_come_as_its_json_text() -> None:
    """Several frameworks send nested arguments, numbers and flags as text; the meaning is clear."""
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("start_task", {"arguments": '{"a": 1}'}, {"arguments": {"a": 1}}),
        ("start_task", {"seed": "7"}, {"seed": 7}),
        ("start_task", {"task": "7"}, {"task": "7"}),
        ("list_tasks", {"offset": "100.0"}, {"offset": 100}),
        ("response", {"answer": "[1]"}, {"answer": "[1]"}),
        ("response", {"answer": "true"}, {"answer": "true"}),
        ("act", {"type": "click", "x": "12", "y": "0.5"}, {"type": "click", "x": 12, "y": 0.5}),
        ("act", {"type": "press", "keys": '["a"]'}, {"type": "press", "keys": ["a"]}),
        ("act", {"type": "click", "pattern": '["9"]'}, {"type": "click", "pattern": [9]}),
        ("act", {"type": "drag", "path": '[{"x": "1"}]'}, {"type": "drag", "path": [{"x": 1}]}),
        ("act", {"type": "type", "enter_after": "True"}, {"type": "type", "enter_after": True}),
        ("act", {"type": "type", "text": "[1]"}, {"type": "type", "text": "[1]"}),
        ("act", {"type": "custom", "args": '{"a": "1"}'}, {"type": "custom", "args": {"a": "1"}}),
    ]
    wrong = [(tool, sent) for tool, sent, meant in cases if clean(tool, sent) != meant]
    assert not wrong

"""An author's signature becomes a schema, and JSON that does not fit it is told why."""

import enum
from collections.abc import AsyncGenerator, Callable
from datetime import date
from typing import Annotated, Any, Literal, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from tables import each_of

from hud_mcp.environment.arguments import Arguments, source_line
from hud_mcp.environment.spec import EmptyWorld
from hud_mcp.errors import InvalidTask, InvalidTemplate
from hud_mcp.world import World

# What functions of this module take; none of them is ever called.


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


class Node(BaseModel):
    """A tree."""

    value: int
    children: list["Node"] = []


class Colour(enum.StrEnum):
    """Three of them."""

    RED = "red"
    BLUE = "blue"


async def every_kind(
    word: str,
    count: int,
    ratio: float = 0.5,
    *,
    strict: bool = False,
    size: Literal["s", "m"] = "s",
    colour: Colour = Colour.RED,
    items: tuple[str, ...] = (),
    place: Point | None = None,
    day: date = date(2026, 1, 2),
    limit: Annotated[int, Field(ge=1, description="At most.")] = 3,
    extra: dict[str, int] | None = None,
) -> None:
    """Take an argument of every kind."""


def arguments(function: Callable[..., Any]) -> Arguments:
    """Read a signature."""
    return Arguments(function, noun="template 't'")


EVERY = arguments(every_kind)


def test_the_schema_says_what_each_argument_is() -> None:
    """Types, defaults, choices and descriptions are the signature's, in its order."""
    properties = EVERY.schema["properties"]
    assert list(properties) == list(EVERY.names)
    assert EVERY.required == {"word", "count"}
    assert EVERY.schema["additionalProperties"] is False
    assert properties["word"] == {"type": "string"}
    assert properties["ratio"] == {"type": "number", "default": 0.5}
    assert properties["size"] == {"type": "string", "enum": ["s", "m"], "default": "s"}
    assert properties["colour"]["enum"] == ["red", "blue"]
    assert properties["day"]["default"] == "2026-01-02"
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "description": "At most.",
        "default": 3,
    }


def refs(node: Any) -> list[str]:
    """Every `$ref` and `$defs` in a schema."""
    if isinstance(node, dict):
        return [k for k in node if k in ("$ref", "$defs")] + [
            r for v in node.values() for r in refs(v)
        ]
    return [r for v in node for r in refs(v)] if isinstance(node, list) else []


def test_a_schema_refers_to_nothing_outside_itself() -> None:
    """Hosts reject `$ref`, so models are inlined, and one that contains itself comes to an end."""

    def tree(root: Node, place: Point) -> None: ...

    schema = arguments(tree).schema
    assert refs(schema) == []
    assert schema["properties"]["place"]["properties"]["x"] == {"type": "integer"}


def test_a_default_is_data_even_where_it_looks_like_a_schema() -> None:
    """Titles are left out of schemas, not out of values."""

    def about(item: dict[str, str] = {"title": "a", "properties": "b"}) -> None: ...  # noqa: B006

    properties = arguments(about).schema["properties"]
    assert properties["item"]["default"] == {"title": "a", "properties": "b"}


@each_of("name", ["schema", "copy", "json", "_x", "model_config", "model_fields", "self", "title"])
def test_an_argument_may_have_any_name(name: str) -> None:
    """What a library uses for itself is no concern of an author's."""
    scope: dict[str, Any] = {}
    exec(f"def f({name}: int, other: str = 'a'): ...", scope)  # names are the point
    read = arguments(scope["f"])
    assert read.names == (name, "other")
    assert read.parse({name: 3}) == {name: 3, "other": "a"}
    with pytest.raises(InvalidTask, match=f"argument '{name}' is required"):
        read.parse({})


def test_values_arrive_as_the_annotated_types() -> None:
    """A function is called with what it asked for, not with JSON."""
    parsed = EVERY.parse(
        {
            "word": "w",
            "count": 2,
            "ratio": 1,
            "colour": "blue",
            "items": ["a"],
            "place": {"x": 1},
            "day": "2026-02-03",
        }
    )
    assert parsed["colour"] is Colour.BLUE
    assert parsed["items"] == ("a",)
    assert parsed["place"] == Point(x=1)
    assert parsed["day"] == date(2026, 2, 3)
    assert parsed["limit"] == 3


@each_of(
    ("given", "said"),
    [
        ({"count": 1}, "argument 'word' is required"),
        ({"word": 5}, "word: expected a string such as '5', got 5"),
        ({"word": None}, "word: expected a string, got None"),
        ({"count": "3"}, "count: expected a whole number such as 10, got '3'"),
        ({"count": 3.0}, "count: expected a whole number such as 10, got 3.0"),
        ({"count": True}, "count: expected a whole number such as 10, got True"),
        ({"ratio": "1"}, "ratio: expected a number such as 10, got '1'"),
        ({"ratio": float("nan")}, "ratio: expected finite numbers, got nan"),
        ({"strict": 1}, "strict: expected true or false, got 1"),
        ({"strict": "true"}, "strict: expected true or false, got 'true'"),
        ({"size": "l"}, "size: expected one of 's', 'm', got 'l'"),
        ({"colour": "green"}, "colour: expected one of 'red', 'blue', got 'green'"),
        ({"items": "a"}, "items: expected a list such as ['a'], got 'a'"),
        ({"items": [1]}, "items[0]: expected a string such as '1', got 1"),
        ({"place": []}, "place: expected an object such as {'x': 10}, got []"),
        ({"place": {"x": "1"}}, "place.x: expected a whole number such as 10, got '1'"),
        ({"place": {}}, "argument 'place.x' is required"),
        ({"day": "tomorrow"}, "day: expected a date such as '2026-03-14'"),
        ({"limit": 0}, "limit: expected a whole number of at least 1, got 0"),
        ({"extra": {"a": "b"}}, "extra.a: expected a whole number such as 10, got 'b'"),
        ({"wrod": "w"}, "there is no argument 'wrod'. Did you mean 'word'? It takes: word, count,"),
        ({"count": 2**70}, "count: a whole number has at most 64 bits"),
        ({"word": "\ud800"}, "word: a text has half of a character"),
        ({"word": object()}, "word: it is no value of JSON"),
    ],
)
def test_a_wrong_argument_is_told_what_came_and_what_was_expected(
    given: dict[str, Any], said: str
) -> None:
    """Checking is strict: nothing is coerced, and the text names the argument."""
    full = {"word": "w", "count": 1} | given
    if "required" in said and "word" in said:
        del full["word"]
    with pytest.raises(InvalidTask) as caught:
        EVERY.parse(full)
    assert str(caught.value).startswith("template 't': ")
    assert said in str(caught.value)


def test_several_wrong_arguments_are_named_at_once() -> None:
    """One error is enough to correct a call."""
    with pytest.raises(InvalidTask) as caught:
        EVERY.parse({"count": "x", "ratio": "y"})
    for name in ("argument 'word' is required", "count: expected", "ratio: expected"):
        assert name in str(caught.value)


def test_a_long_value_is_clipped_in_the_error() -> None:
    """An error does not repeat a megabyte."""
    with pytest.raises(InvalidTask) as caught:
        EVERY.parse({"word": "w", "count": "9" * 100_000})
    assert len(str(caught.value)) < 300


@each_of(
    ("name", "text", "value"),
    [
        ("word", "5", "5"),
        ("word", '"quoted"', '"quoted"'),
        ("word", "true", "true"),
        ("count", "5", 5),
        ("ratio", "2", 2),
        ("strict", "True", True),
        ("strict", "false", False),
        ("size", "m", "m"),
        ("colour", "blue", "blue"),
        ("items", '["a", "b"]', ["a", "b"]),
        ("place", '{"x": 1}', {"x": 1}),
        ("day", "2026-02-03", "2026-02-03"),
        ("extra", "null", None),
    ],
)
def test_text_of_a_prompt_becomes_the_json_that_was_meant(name: str, text: str, value: Any) -> None:
    """A prompt's arguments are strings; one that fits as it is stays text."""
    read = EVERY.parse_text({"word": "w", "count": "1", name: text})
    assert read[name] == value
    assert type(read[name]) is type(value)


def test_text_that_an_optional_text_takes_stays_text() -> None:
    """Digits given for `str | None` are not a number."""

    def search(word: str | None = None, anything: Any = None) -> None: ...

    read = arguments(search).parse_text({"word": "5", "anything": "5"})
    assert read == {"word": "5", "anything": "5"}


def test_empty_text_of_an_argument_with_a_default_is_absent() -> None:
    """Hosts send every field of a prompt's form, also those left blank."""
    read = EVERY.parse_text({"word": "", "count": "1", "ratio": "", "items": ""})
    assert read == {"word": "", "count": 1}


@each_of(
    ("given", "said"),
    [
        ({"word": "w", "count": "three"}, "count: expected a whole number such as 10, got 'three"),
        ({"word": "w", "count": ""}, "count: expected a whole number such as 10, got ''"),
        ({"word": "w", "count": "1", "strict": "yes"}, "strict: expected true or false, got 'yes'"),
        ({"word": "w", "count": "1", "nope": "1"}, "there is no argument 'nope'"),
        ({"word": "\ud800", "count": "1"}, "word: a text has half of a character"),
    ],
)
def test_text_that_fits_no_argument_is_told_why(given: dict[str, str], said: str) -> None:
    """What cannot be read is shown as it came."""
    with pytest.raises(InvalidTask) as caught:
        EVERY.parse_text(given)
    assert said in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(EVERY.names) | st.text(max_size=3), json_values))
def test_any_json_is_taken_or_refused_as_an_invalid_task(given: dict[str, Any]) -> None:
    """No other exception leaves, and what is taken names every parameter."""
    try:
        parsed = EVERY.parse(given)
    except InvalidTask:
        return
    assert tuple(parsed) == EVERY.names


def test_a_parameter_annotated_with_a_world_is_no_argument() -> None:
    """The session hands its world over; a client can neither see nor give it."""

    def with_worlds(name: str, world: World, empty: EmptyWorld) -> None: ...

    read = arguments(with_worlds)
    assert read.names == ("name",)
    assert read.world_types == {"world": World, "empty": EmptyWorld}
    with pytest.raises(InvalidTask, match="there is no argument 'world'"):
        read.parse({"name": "a", "world": {}})


class Unrelated(Protocol):
    """A protocol that is not a world's."""


def positional(a: int, /) -> None:
    """Its argument has no name to be given by."""


def variadic(*names: str) -> None:
    """Nor have these."""


def keywords(**names: str) -> None:
    """These are not named in advance."""


def no_schema(f: Callable[[], None]) -> None:
    """Its type is not JSON."""


def a_protocol(f: Unrelated) -> None:
    """Nor is this."""


def an_object(f: object = object()) -> None:  # the mistake
    """Its default is not JSON."""


def missing_name(a: "Missing") -> None:  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
    """Its type is not imported."""


def missing_attribute(a: "Any.Missing") -> None:  # pyright: ignore[reportAttributeAccessIssue]
    """Its type is not there."""


def no_annotation(a: "int |") -> None:  # noqa: F722
    """Its type is no expression."""


async def unannotated(browser, product="lamp") -> None:  # noqa: ANN001  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    """Its first parameter was meant to be the world."""


def test_an_argument_without_annotation_is_of_its_default_s_type() -> None:
    """A simple default says which type was meant."""

    def buy(product="lamp", count=2, *, gift=False) -> None: ...  # noqa: ANN001  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]

    kinds = {n: p["type"] for n, p in arguments(buy).schema["properties"].items()}
    assert kinds == {"product": "string", "count": "integer", "gift": "boolean"}


@each_of(
    ("function", "said"),
    [
        (unannotated, "the parameter 'browser' has no annotation; annotate it with its type, or"),
        (positional, "takes a: int (positional-only); arguments are given by name"),
        (variadic, "takes *names: str (variadic positional)"),
        (keywords, "takes **names: str (variadic keyword)"),
        (no_schema, "an argument's type has no JSON schema"),
        (a_protocol, "an argument's type has no JSON schema"),
        (an_object, "the default of 'f' is not a JSON value: <object object"),
        (missing_name, "name 'Missing' is not defined; annotations must be importable"),
        (missing_attribute, "has no attribute 'Missing'; annotations must be importable"),
        (no_annotation, "annotations must be importable"),
    ],
)
def test_a_signature_that_cannot_be_described_is_an_error_with_its_line(
    function: Callable[..., Any], said: str
) -> None:
    """The author is told the file and the line, and nothing is registered."""
    with pytest.raises(InvalidTemplate) as caught:
        arguments(function)
    line = function.__code__.co_firstlineno
    assert str(caught.value).startswith(f"{__file__}:{line}: template 't'")
    assert said in str(caught.value)


def test_the_line_of_a_decorated_function_is_its_own() -> None:
    """A wrapper that keeps the signature does not hide where the function is."""
    assert source_line(positional) == f"{__file__}:{positional.__code__.co_firstlineno}"
    assert "built-in function print" in source_line(print)


@pytest.mark.parametrize("depth", [300, 5000])
def test_arguments_that_are_nested_too_deeply_are_refused(depth: int) -> None:
    """As what they are, and not as a fault of this package."""

    async def template(word: str) -> AsyncGenerator[Any, Any]:
        yield word
        yield 1.0

    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    with pytest.raises(InvalidTask, match="word: it is nested too deeply"):
        arguments(template).parse({"word": deep})


@each_of(
    ("given", "read"),
    [
        ({"word": "tea"}, {"word": "tea", "count": 2, "hot": True}),
        ({"word": "thé", "count": 2**60}, {"word": "thé", "count": 2**60, "hot": True}),
        ({"hot": False, "word": ""}, {"word": "", "count": 2, "hot": False}),
        ({"word": 3}, "word: expected a string such as '3', got 3"),
        ({"word": "tea", "count": True}, "count: expected a whole number such as 10, got True"),
        ({"word": "tea", "hot": 1}, "hot: expected true or false, got 1"),
        ({"word": "tea", "cold": 1}, "there is no argument 'cold'. It takes: word, count, hot"),
        ({"count": 1}, "argument 'word' is required"),
        ({"word": "\ud800"}, "word: a text has half of a character"),
    ],
)
def test_plain_arguments_are_read_as_all_others(given: dict[str, Any], read: Any) -> None:
    """Texts, whole numbers and flags take a short way; what is wrong is told as ever."""

    def make(word: str, count: int = 2, hot: bool = True) -> None:  # noqa: FBT001, FBT002  # arguments
        del word, count, hot

    arguments = Arguments(make, noun="tool 'make'")
    if isinstance(read, dict):
        assert list(arguments.parse(given).items()) == list(read.items())
        return
    with pytest.raises(InvalidTask) as caught:
        arguments.parse(given)
    assert read in str(caught.value)

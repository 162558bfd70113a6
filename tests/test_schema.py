"""Schemas have nothing that a host refuses, and what hosts send as text is read by them."""

from datetime import date
from typing import Any, Literal, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter
from refused_schemas import refused

from hud_mcp.base.reading import Reader
from hud_mcp.base.schema import plain_field, plain_schema


class Row(NamedTuple):
    """A tuple whose places have names."""

    name: str
    amount: int


class Part(BaseModel):
    """A model with arrays of every kind."""

    size: tuple[int, int]
    rows: list[Row] = []
    parts: list["Part"] = []
    any_of: list[Any] | None = None
    sets: set[frozenset[int]] = set()
    named: dict[str, tuple[str, ...]] = {}
    free: dict[str, Any] = Field(default={}, json_schema_extra={"type": ["object", "null"]})


TYPES: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "pair": tuple[int, int],
    "unlike pair": tuple[str, int],
    "empty": tuple[()],
    "long": tuple[int, ...],
    "nested": list[dict[str, list[tuple[str, list[int]]]]],
    "row": Row,
    "model": Part,
    "either": list[int] | dict[str, list[str]] | None,
    "choices": list[Literal["a", "b"]],
    "object": dict[str, Any],
}
WRITTEN: dict[str, dict[str, Any]] = {
    "an array alone": {"type": "array"},
    "the older tuple": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
    "no place": {"type": "array", "prefixItems": []},
    "a tuple with more": {"type": "array", "prefixItems": [{"type": "string"}]},
    "a list of types": {"type": ["array", "string", "null"], "minItems": 1, "minLength": 2},
    "a list of one type": {"type": ["array"]},
    "a flag": {"type": "object", "properties": {"x": True, "y": {"type": "array", "items": True}}},
    "beside a reference": {
        "properties": {"a": {"$ref": "#/$defs/a", "description": "One."}},
        "$defs": {"a": {"type": ["array", "null"]}},
    },
    "without end": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "a title": {"type": "object", "properties": {"title": {"title": "T", "type": "array"}}},
    "data": {"type": "object", "default": {"type": "array"}, "examples": [{"type": ["array"]}]},
}
SCHEMAS = {name: TypeAdapter[Any](kind).json_schema() for name, kind in TYPES.items()} | WRITTEN


def test_a_plain_schema_has_nothing_that_a_host_refuses() -> None:
    """Whatever its author wrote, an array has items, an object properties, a type is one."""
    wrong = {name: refused(plain_schema(schema)) for name, schema in SCHEMAS.items()}
    assert {name: said for name, said in wrong.items() if said} == {}
    again = [n for n, s in SCHEMAS.items() if plain_schema(plain_schema(s)) != plain_schema(s)]
    assert again == []
    assert plain_schema(WRITTEN["data"])["default"] == {"type": "array"}
    assert [n for n, s in SCHEMAS.items() if refused(plain_field(plain_schema(s)))] == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=5,
)


@settings(max_examples=100)
@given(st.sampled_from(sorted(set(SCHEMAS) - {"without end", "the older tuple"})), json_values)
def test_a_plain_schema_admits_the_same_values(name: str, value: Any) -> None:
    """What a host may send is what the author declared."""
    admits = Draft202012Validator(SCHEMAS[name]).is_valid(value)  # pyright: ignore[reportUnknownMemberType]
    plain = Draft202012Validator(plain_schema(SCHEMAS[name])).is_valid(value)  # pyright: ignore[reportUnknownMemberType]
    assert plain == admits


class Everything(BaseModel):
    """A field of every kind."""

    text: str = ""
    day: date = date(2026, 1, 2)
    count: int = 0
    ratio: float = 0
    flag: bool = False
    maybe: int | None = None
    words: str | int = ""
    listed: list[int] = []
    places: list[Row] = []
    parts: list[dict[str, int]] = []
    pair: tuple[str, int] = ("", 0)
    inner: dict[str, list[float]] = {}
    part: Part | None = None
    anything: Any = None
    one: Literal[1, 2] = 1


READ: tuple[tuple[str, Any, Any], ...] = (
    ("text", "[1]", "[1]"),
    ("text", "5", "5"),
    ("text", "null", "null"),
    ("day", "2026", "2026"),
    ("words", "5", "5"),
    ("anything", "[1]", "[1]"),
    ("count", "5", 5),
    ("count", " 5 ", 5),
    ("count", "5.0", 5),
    ("count", 5.0, 5),
    ("count", "5.5", "5.5"),
    ("count", "five", "five"),
    ("count", "true", "true"),
    ("count", True, True),
    ("count", "NaN", "NaN"),
    ("count", "", ""),
    ("ratio", "1e3", 1000.0),
    ("ratio", 2.0, 2.0),
    ("flag", "true", True),
    ("flag", "False", False),
    ("flag", "yes", "yes"),
    ("flag", "1", "1"),
    ("maybe", "null", None),
    ("maybe", "None", None),
    ("maybe", "7", 7),
    ("listed", "[1, 2]", [1, 2]),
    ("listed", ["1", 2], [1, 2]),
    ("listed", '["1"]', [1]),
    ("listed", "{", "{"),
    ("listed", "a, b", "a, b"),
    ("places", '[["a", "1"]]', [["a", 1]]),
    ("parts", '{"x": "1"}', [{"x": 1}]),
    ("parts", ['{"x": 1}'], [{"x": 1}]),
    ("pair", '["1", "2"]', ["1", 2]),
    ("inner", '{"a": "[1.5]"}', {"a": [1.5]}),
    ("part", '{"size": "[1, 2]"}', {"size": [1, 2]}),
    ("part", {"size": [1, "2"], "parts": '[{"size": [3, "4"]}]'},
     {"size": [1, 2], "parts": [{"size": [3, 4]}]}),
    ("one", "2", 2),
    ("unknown", "[1]", "[1]"),
)  # fmt: skip


def test_what_came_as_text_is_read_where_the_schema_has_no_texts() -> None:
    """At every depth; a text stays one wherever a text is admitted, whatever it looks like."""
    schemas = (Everything.model_json_schema(), plain_schema(Everything.model_json_schema()))
    wrong = [
        f"{name} {sent!r}: {read!r}"
        for schema in schemas
        for name, sent, meant in READ
        if repr(read := Reader(schema).at(name).read(sent)) != repr(meant)
    ]
    assert wrong == []


@settings(max_examples=100)
@given(st.sampled_from(sorted(Everything.model_fields)), json_values | st.text(max_size=6))
def test_what_a_schema_admits_stays_as_it_came(name: str, value: Any) -> None:
    """Reading changes only what would be refused, and once."""
    schema = Everything.model_json_schema()
    place = Reader(schema).at(name)
    read = place.read(value)
    assert place.read(read) == read
    if Draft202012Validator(schema).is_valid({name: value}):  # pyright: ignore[reportUnknownMemberType]
        assert read == value

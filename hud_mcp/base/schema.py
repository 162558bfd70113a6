"""JSON schemas in the form of every host, and values in the forms of clients.

Hosts refuse `$ref`, a list of types, and `true` in place of a schema. They refuse an array without
`items` and an object without `properties`. Several send a list, an object, a number or a flag as
its JSON text.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import orjson
from pydantic_core import ErrorDetails

Schema: TypeAlias = Mapping[str, Any]

_MOST_REFERENCES = 8
"""The most references in one path: a type that contains itself ends there."""
_MOST_DEPTH = 64
"""The deepest value that is read from texts; deeper ones stay unchanged."""

_DATA = frozenset({"const", "default", "enum", "examples"})
"""The value of one of these keywords is data, not a schema."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""The value of one of these keywords is an object of schemas, by name."""
_OF_KIND: Mapping[str, frozenset[str]] = {
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset(
        {"properties", "required", "additionalProperties", "minProperties", "maxProperties"}
    ),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
}
"""The keywords that concern only one kind of value."""

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"),
    (dict, "object"), (list, "array"), (type(None), "null"),
)  # fmt: skip
"""The JSON names of kinds; a boolean is an integer to Python, so it comes first."""
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None, "none": None}
"""Texts of values, in any case: Python writes `True` and `None`."""


def plain_schema(schema: Schema) -> dict[str, Any]:
    """Return the same schema without titles, references, and parts that some hosts refuse."""
    schema = dict(schema)
    definitions: Schema = schema.pop("$defs", {})
    return _plain(schema, definitions, 0)


def _plain(node: Any, definitions: Schema, depth: int) -> dict[str, Any]:
    if not isinstance(node, Mapping):
        return {"not": {}} if node is False else {}
    known = dict(cast("Schema", node))
    while "$ref" in known:
        name = str(known.pop("$ref")).rsplit("/", 1)[-1]
        depth += 1
        if depth > _MOST_REFERENCES:
            return {"type": "object", "properties": {}}
        known = {**definitions.get(name, {}), **known}
    plain = {
        keyword: _plain_value(keyword, value, definitions, depth)
        for keyword, value in known.items()
        if keyword != "title" or not isinstance(value, str)
    }
    return _of_one_kind(plain)


def _plain_value(keyword: str, value: Any, definitions: Schema, depth: int) -> Any:
    if keyword in _DATA:
        return value
    if keyword in _NAMED and isinstance(value, Mapping):
        named = cast("Schema", value)
        return {name: _plain(each, definitions, depth) for name, each in named.items()}
    if isinstance(value, Mapping) or (keyword == "items" and isinstance(value, bool)):
        return _plain(value, definitions, depth)
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return [_plain(e, definitions, depth) if isinstance(e, Mapping) else e for e in several]
    return value


def _of_one_kind(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with one `type`, and with schemas of its items and properties."""
    kinds = plain.get("type")
    if isinstance(kinds, list):
        several = cast("list[str]", kinds)
        if len(several) > 1 and "anyOf" not in plain:
            return _choice(plain, several)
        plain = {**plain, "type": several[0]} if len(several) == 1 else _without(plain, "type")
    if plain.get("type") == "array":
        return _with_items(plain)
    if plain.get("type") == "object":
        return {**plain, "properties": plain.get("properties", {})}
    return plain


def _choice(plain: Schema, kinds: list[str]) -> dict[str, Any]:
    """Return the schema of a list of types: one choice for each, with the keywords of its kind."""
    moved = frozenset[str]().union(*(_OF_KIND.get(kind, ()) for kind in kinds))
    choices = [
        _of_one_kind({"type": kind, **_only(plain, _OF_KIND.get(kind, frozenset()))})
        for kind in kinds
    ]
    return {**_without(plain, "type", *moved), "anyOf": choices}


def _with_items(plain: Schema) -> dict[str, Any]:
    """Return an array with the kind of its items, even if each place has its own."""
    places = plain.get("prefixItems", plain.get("items"))
    if not isinstance(places, list) or not places:
        items: Any = {} if isinstance(places, list) else plain.get("items", {})
        return {**_without(plain, "prefixItems"), "items": items}
    several = cast("list[dict[str, Any]]", places)
    choices = [each for i, each in enumerate(several) if each not in several[:i]]
    one = choices[0] if len(choices) == 1 else {"anyOf": choices}
    if plain.get("maxItems") != len(several):  # there may be more items, of another kind
        rest = plain.get("items") if "prefixItems" in plain else None
        return {**plain, "prefixItems": several, "items": rest or {}}
    if len(choices) == 1:
        return {**_without(plain, "prefixItems"), "items": one}
    return {**plain, "prefixItems": several, "items": one}


def _without(schema: Schema, *keywords: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in keywords}


def _only(schema: Schema, keywords: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name in keywords}


_PLAIN = ("type", "enum", "minimum", "maximum", "items", "properties", "required")


def plain_field(schema: Schema) -> dict[str, Any]:
    """Return a field's schema that all model APIs accept; a refused one becomes a JSON text."""
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    one = choices[0] if len(choices) == 1 else schema
    kind = one.get("type")
    if "anyOf" in one or "oneOf" in one or not isinstance(kind, str) or "const" in one:
        return {"type": "string"}
    kept = {name: one[name] for name in _PLAIN if name in one}
    if kind == "array":
        items = one.get("items")
        if not isinstance(items, Mapping) or "type" not in items:
            return {"type": "string"}
        return {**kept, "items": plain_field(cast("Schema", items))}
    if kind != "object":
        return kept
    fields: Schema = one.get("properties", {})
    if not fields:
        return {"type": "string"}
    kept["properties"] = {
        name: {**plain_field(each), "description": each.get("description", name)}
        for name, each in fields.items()
    }
    return {**kept, "additionalProperties": False}


def read_texts(given: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Read the fields of an object as `TextReader` does."""
    return TextReader(schema).read(given)


class TextReader:
    """Reads values from their JSON texts, at any depth where a schema has no texts.

    A text stays a text wherever the schema admits one, even if it looks like JSON. The whole number
    5.0 becomes 5, and one object in place of a list becomes a list of one. A value that cannot be
    read as anything in the schema stays unchanged, for its reader to refuse.
    """

    def __init__(self, schema: Schema) -> None:
        self._root = _Node(schema, schema.get("$defs", {}))

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Read the fields of an object, as a client sent them."""
        return cast("dict[str, Any]", self._root.read(dict(given), 0))

    def read_field(self, name: str, value: Any) -> Any:
        """Read one field of an object."""
        return self._root.at(name).read(value, 1)

    def types_kept(self, name: str) -> frozenset[type]:
        """The types of plain values that stay unchanged in a field."""
        return _SCALARS - self._root.at(name).types_read


class _Node:
    """One place of a schema. Places inside it are made as values come for them."""

    __slots__ = ("_definitions", "_inside", "_kinds", "_schema", "types_read")

    def __init__(self, schema: Any, definitions: Schema) -> None:
        self._schema = _resolved(schema, definitions)
        self._definitions = definitions
        self._kinds = _kinds(self._schema, definitions)
        self._inside: dict[str | int, _Node] = {}
        has_inside = not _INSIDE.isdisjoint(self._schema)
        self.types_read = _odd_types(self._kinds)
        if has_inside:
            self.types_read |= _HOLDERS

    def read(self, value: Any, depth: int) -> Any:
        if type(value) not in self.types_read:
            return value
        if self._kinds is not None:
            value = _of_kinds(value, self._kinds)
        if depth > _MOST_DEPTH or not isinstance(value, dict | list):
            return value
        depth += 1
        if isinstance(value, dict):
            known = cast("dict[str, Any]", value)
            return {name: self.at(name).read(each, depth) for name, each in known.items()}
        several = cast("list[Any]", value)
        return [self.at(i).read(each, depth) for i, each in enumerate(several)]

    def at(self, place: str | int) -> "_Node":
        """Return the place of a field or an item. Unnamed ones share one place."""
        found = self._inside.get(place)
        if found is not None:
            return found
        is_field = isinstance(place, str)
        schema = _chosen(self._schema, "object" if is_field else "array", self._definitions)
        if isinstance(place, str):
            rest, named = schema.get("additionalProperties"), schema.get("properties", {})
            known = place in named
        else:
            rest, named = schema.get("items"), schema.get("prefixItems", [])
            known = place < len(named)
        key = place if known else ("" if is_field else -1)
        node = self._inside.get(key)
        if node is None:
            node = self._inside[key] = _Node(named[place] if known else rest, self._definitions)
        return node


_INSIDE = frozenset(
    {"properties", "additionalProperties", "items", "prefixItems", "anyOf", "oneOf"}
)
"""The keywords that concern the inside of a value."""
_HOLDERS: frozenset[type] = frozenset((dict, list))
_SCALARS: frozenset[type] = frozenset((str, int, float, bool))


def _odd_types(kinds: frozenset[str] | None) -> frozenset[type]:
    """Return the types of values that may be read as another kind, for these kinds."""
    if kinds is None:
        return frozenset()
    odd = {str: "string" not in kinds, float: "number" not in kinds, dict: "array" in kinds}
    return frozenset(kind for kind, is_odd in odd.items() if is_odd)


def _of_kinds(value: Any, kinds: frozenset[str]) -> Any:
    """Return a value as one of these kinds, if it can be read as one; else unchanged."""
    if isinstance(value, str) and "string" not in kinds:
        value = _from_text(value, kinds)
    if isinstance(value, float) and value.is_integer() and "number" not in kinds:
        return int(value) if "integer" in kinds else value
    if isinstance(value, dict) and "array" in kinds and "object" not in kinds:
        return [cast("Any", value)]
    return cast("Any", value)


def _from_text(text: str, kinds: frozenset[str]) -> Any:
    stripped = text.strip()
    try:
        read: Any = _WORDS[stripped.lower()]
    except KeyError:
        try:
            read = orjson.loads(stripped)
        except orjson.JSONDecodeError:
            return text
    fits = _kind(read) in kinds or (isinstance(read, int | float) and _is_number(read, kinds))
    fits = fits or (isinstance(read, dict) and "array" in kinds)
    return cast("Any", read) if fits else text


def _is_number(read: float, kinds: frozenset[str]) -> bool:
    if isinstance(read, bool):
        return False
    return "number" in kinds or ("integer" in kinds and float(read).is_integer())


def _kind(value: Any) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "")


def _kinds(schema: Schema, definitions: Schema) -> frozenset[str] | None:
    """Return the kinds of values that a schema admits; None for all of them."""
    kind = schema.get("type")
    if kind is not None:
        return frozenset([kind] if isinstance(kind, str) else kind)
    if "enum" in schema:
        return frozenset(map(_kind, schema["enum"]))
    if "const" in schema:
        return frozenset([_kind(schema["const"])])
    choices = _choices(schema, definitions)
    each = [_kinds(choice, definitions) for choice in choices]
    known = [kinds for kinds in each if kinds is not None]
    return frozenset[str]().union(*known) if known and len(known) == len(each) else None


def _choices(schema: Schema, definitions: Schema) -> list[Schema]:
    several = schema.get("anyOf") or schema.get("oneOf") or ()
    return [_resolved(each, definitions) for each in several]


def _chosen(schema: Schema, kind: str, definitions: Schema) -> Schema:
    """Return the only choice of a schema with a kind; the schema itself without one."""
    choices = _choices(schema, definitions)
    if not choices:
        return schema
    fitting = [each for each in choices if kind in (_kinds(each, definitions) or ())]
    return fitting[0] if len(fitting) == 1 else {}


def _resolved(schema: Any, definitions: Schema) -> Schema:
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        name = str(cast("Schema", schema)["$ref"]).rsplit("/", 1)[-1]
        schema = definitions.get(name)
    return cast("Schema", schema) if isinstance(schema, Mapping) else {}


_LISTS = frozenset({"list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"})
_OBJECTS = frozenset({"dict_type", "model_type", "model_attributes_type", "dataclass_type",
                      "mapping_type", "arguments_type"})  # fmt: skip


def fault_words(error: ErrorDetails) -> str:
    """Say how a value is wrong in JSON's words, after its name, as in `should be an array`."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _LISTS:
        return f"should be an array{such_as(error['input'])}"
    if kind in _OBJECTS:
        return "should be an object"
    if kind in ("too_short", "too_long"):
        most = kind == "too_long"
        count = context["max_length" if most else "min_length"]
        unit = "item" if count == 1 else "items"
        return f"should have at {'most' if most else 'least'} {count} {unit}"
    return error["msg"].removeprefix("Input ").removeprefix("Value error, ").strip()


def such_as(value: object) -> str:
    """Show a short text as the only item of a list in its place; nothing for a long one."""
    if not isinstance(value, str) or not value.strip() or len(value) > _SHORT_CHARS:
        return ""
    return "" if value.strip()[0] in "[{" else f", such as {orjson.dumps([value]).decode()}"


_SHORT_CHARS = 40
"""The longest text that is shown a second time."""

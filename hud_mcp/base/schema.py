"""JSON schemas in the form of every host, and in words.

Hosts refuse `$ref`, a list of types, and `true` in place of a schema. They refuse an array without
`items` and an object without `properties`.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

Schema: TypeAlias = Mapping[str, Any]

_MOST_REFERENCES = 8
"""The most references in one path: a type that contains itself ends there."""

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


def plain_schema(schema: Schema, *, closed: bool = False) -> dict[str, Any]:
    """Return the same schema without titles, references, and parts that some hosts refuse.

    If it is closed, objects with fields have no others, as strict hosts demand, unless their own
    schemas say so.
    """
    schema = dict(schema)
    definitions: Schema = schema.pop("$defs", {})
    return _plain(schema, definitions, 0, closed=closed)


def _plain(node: Any, definitions: Schema, depth: int, *, closed: bool) -> dict[str, Any]:
    if not isinstance(node, Mapping):
        return {"not": {}} if node is False else {}
    known = dict(cast("Schema", node))
    while "$ref" in known:
        name = str(known.pop("$ref")).rsplit("/", 1)[-1]
        depth += 1
        if depth > _MOST_REFERENCES:
            return {"type": "object", "properties": {}}
        known = {**definitions.get(name, {}), **known}
    read = partial(_plain, definitions=definitions, depth=depth, closed=closed)
    plain = {
        keyword: _plain_value(keyword, value, read)
        for keyword, value in known.items()
        if keyword != "title" or not isinstance(value, str)
    }
    return _of_one_kind(plain, closed=closed)


def _plain_value(keyword: str, value: Any, read: Callable[[Any], dict[str, Any]]) -> Any:
    if keyword in _DATA:
        return value
    if keyword in _NAMED and isinstance(value, Mapping):
        return {name: read(each) for name, each in cast("Schema", value).items()}
    if isinstance(value, Mapping) or (keyword == "items" and isinstance(value, bool)):
        return read(value)
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return [read(each) if isinstance(each, Mapping) else each for each in several]
    return value


def _of_one_kind(plain: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    """Return a schema with one `type`, and with schemas of its items and properties."""
    kinds = plain.get("type")
    if isinstance(kinds, list):
        several = cast("list[str]", kinds)
        if len(several) > 1 and "anyOf" not in plain:
            return _choice(plain, several, closed=closed)
        plain = {**plain, "type": several[0]} if len(several) == 1 else _without(plain, "type")
    if plain.get("type") == "array":
        return _with_items(plain)
    if plain.get("type") == "object":
        rest = {"additionalProperties": False} if closed and plain.get("properties") else {}
        return {**rest, **plain, "properties": plain.get("properties", {})}
    return plain


def _choice(plain: Schema, kinds: list[str], *, closed: bool) -> dict[str, Any]:
    """Return the schema of a list of types: one choice for each, with the keywords of its kind."""
    moved = frozenset[str]().union(*(_OF_KIND.get(kind, ()) for kind in kinds))
    choices = [
        _of_one_kind({"type": kind, **_only(plain, _OF_KIND.get(kind, frozenset()))}, closed=closed)
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


def choices_of(schema: Schema) -> Sequence[Any]:
    """Return the schemas that a schema chooses from; none if it is of one kind."""
    return schema.get("anyOf") or schema.get("oneOf") or ()


def kind_of(value: Any) -> str:
    """Return JSON's name of a value's kind; a whole number is an `integer`."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), type(value).__name__)


_FORMATS: Mapping[str, str] = {
    "date": "a date such as '2026-03-14'",
    "date-time": "a time such as '2026-03-14T09:30:00Z'",
    "time": "a time of day such as '09:30:00'",
    "uuid": "a UUID such as '3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b'",
    "uri": "an address such as 'https://example.com/'",
}
_MOST_CHOICES = 8
_PAST = 2.0**63
"""The least whole number that has more than 64 bits."""
_FEW = 5
_SHORT_CHARS = 40
"""The longest text that is shown a second time."""
_MOST_DEPTH = 3
"""The deepest example; deeper parts are left out."""


def expected(schema: Schema, given: Any = None) -> str:
    """Describe a plain schema's values with an example, of the words of a wrong one if possible."""
    choices = [each for each in choices_of(schema) if each.get("type") != "null"]
    if choices:
        words = dict.fromkeys(expected(each, given) for each in choices)
        return " or ".join(filter(None, list(words)[:_FEW]))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return _one_of(values)
    kind = str(schema.get("type"))
    if kind in ("integer", "number"):
        is_huge = kind == "integer" and isinstance(given, float) and _PAST <= abs(given) < math.inf
        return "a whole number of 64 bits" if is_huge else _number_words(schema, kind)
    if kind == "string":
        return _string_words(schema, given)
    count = _count_words(schema) if isinstance(given, list) else ""
    nouns = {"array": f"a list{count}", "object": "an object"}
    if kind in nouns and (made := example(schema, given)):
        return f"{nouns[kind]} such as {_shown(made)}"
    return {**nouns, "boolean": "true or false", "null": "null"}.get(kind, "")


def _one_of(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return _shown(values[0])
    if len(values) <= _MOST_CHOICES:
        return f"one of {', '.join(map(_shown, values))}"
    return f"one of {len(values)} values such as {', '.join(map(_shown, values[:_FEW]))}"


def _number_words(schema: Schema, kind: str) -> str:
    noun = "a whole number" if kind == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{noun} from {low} to {high}"
    if low is not None or high is not None:
        return f"{noun} of at least {low}" if high is None else f"{noun} of at most {high}"
    above = f" above {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else ""
    below = f" below {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else ""
    return f"{noun}{above}{below}" if above or below else f"{noun} such as {example(schema)}"


def _string_words(schema: Schema, given: Any) -> str:
    if (known := _FORMATS.get(schema.get("format", ""))) is not None:
        return known
    if "pattern" in schema:
        return f"a string that matches {schema['pattern']}"
    if isinstance(given, str) and ("maxLength" in schema or schema.get("minLength")):
        return f"a string{_count_words(schema, 'Length', ' characters')}"
    is_short = isinstance(given, int | float) and not isinstance(given, bool)
    return f"a string such as '{given}'" if is_short else "a string"


def _count_words(schema: Schema, of: str = "Items", unit: str = " items") -> str:
    low, high = schema.get(f"min{of}", 0), schema.get(f"max{of}")
    if low == high:
        return f" of {low}{unit}"
    if high is not None:
        return f" of {low} to {high}{unit}" if low else f" of at most {high}{unit}"
    return f" of at least {low}{unit}" if low > (of == "Items") else ""


def example(schema: Schema, given: Any = None, depth: int = 0) -> Any:
    """Return a value of a plain schema, made of the words of a wrong text where it has strings."""
    named = [*schema.get("examples", ()), *schema.get("enum", ())]
    if named or "const" in schema:
        return named[0] if named else schema["const"]
    choices = [each for each in choices_of(schema) if each.get("type") != "null"]
    if choices or depth > _MOST_DEPTH:
        return example(choices[0], given, depth) if choices else {}
    kind = schema.get("type", "string")
    if kind == "array":
        return _example_list(schema, given, depth)
    if kind == "object":
        fields: Schema = schema.get("properties", {})
        names = schema.get("required") or list(fields)[:1]
        made = {name: example(fields.get(name, {}), None, depth + 1) for name in names}
        rest = schema.get("additionalProperties", {})
        other: Schema = cast("Schema", rest) if isinstance(rest, Mapping) else {}
        return made if fields or rest is False else {"name": example(other, None, depth + 1)}
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 10), min(schema.get("maximum", 10), 10))
    return {"boolean": True, "null": None}.get(kind, "a")


def _example_list(schema: Schema, given: Any, depth: int) -> list[Any]:
    if places := schema.get("prefixItems"):
        return [example(each, None, depth + 1) for each in places]
    made = example(schema.get("items") or {}, None, depth + 1)
    most = min(schema.get("maxItems", _FEW), _FEW)
    words = re.findall(r"[\w+.-]+", given if isinstance(given, str) else "")
    if made == "a" and 0 < len(words) <= most and len(given) <= _SHORT_CHARS:
        return words
    return [made] * min(max(1, schema.get("minItems", 1)), _FEW)


def _shown(value: Any) -> str:
    """Return a value as JSON with single quotes: a reply's JSON escapes double ones."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if "'" in text or "\\" in text else text.replace('"', "'")

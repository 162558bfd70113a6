"""Absent values in what a client sent: frameworks fill in every property of a schema.

`null` counts as absent if the field is optional and its schema has no null. `""`, `[]` and `{}` do
if the schema does not admit them. Every value of another kind's field does.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from hud_mcp.base.schema import TextReader

Schema = Mapping[str, Any]

_LEAST: Mapping[type, tuple[str, str]] = {
    str: ("string", "minLength"),
    list: ("array", "minItems"),
    dict: ("object", "minProperties"),
}
"""JSON Schema's name of each kind that can be empty, and the bound that forbids it."""


def is_empty(value: Any) -> bool:
    """Whether a value is `null`, `""`, `[]` or `{}`, which frameworks send for nothing."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def admits(schema: Any, empty: Any, definitions: Schema | None = None) -> bool:
    """Whether a schema admits one of the empty values; a missing keyword forbids nothing."""
    if not isinstance(schema, Mapping):
        return True
    known = cast("Schema", schema)
    if "$ref" in known:
        return admits(_definition(known, definitions), empty, definitions)
    if "const" in known:
        return known["const"] == empty
    if "enum" in known:
        return empty in known["enum"]
    for several in ("anyOf", "oneOf"):
        if several in known:
            return any(admits(each, empty, definitions) for each in known[several])
    return _is_of_kind(known, empty) and _is_within(known, empty)


class ObjectReader:
    """The reader of one kind of objects from clients: texts of values, and absent ones."""

    def __init__(self, schema: Schema, *, others: Collection[str] = ()) -> None:
        self._schema = schema
        self._others = others
        self._texts = TextReader(schema)
        self._plain = {name: self._texts.types_kept(name) for name in schema.get("properties", {})}

    def read(self, given: Mapping[str, Any], *, others: Collection[str] = ()) -> dict[str, Any]:
        """Read the fields of an object; `others` are more names of other kinds' fields."""
        for name, value in given.items():
            if value == "" or type(value) not in self._plain.get(name, ()):
                break
        else:
            return dict(given)
        return drop_absent(self._texts.read(given), self._schema, others={*self._others, *others})


def drop_absent(
    given: Mapping[str, Any], schema: Schema, *, others: Collection[str] = ()
) -> dict[str, Any]:
    """Drop absent values from an object, and from the objects and lists in it.

    Fields of the names in `others`, of other kinds, are dropped with any value. Those of unknown
    names stay, for the reader to refuse.
    """
    return _dropped(given, schema, others, schema.get("$defs", {}))


def _dropped(
    given: Mapping[str, Any], schema: Schema, others: Collection[str], definitions: Schema
) -> dict[str, Any]:
    fields: Schema = schema.get("properties", {})
    required = schema.get("required", ())
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if name in fields:
            needed = name in required or not is_empty(value)
            if needed or admits(fields[name], value, definitions):
                kept[name] = _without_absent(value, fields[name], definitions)
        elif name not in others:
            kept[name] = _without_absent(value, schema.get("additionalProperties"), definitions)
    return kept


def _without_absent(value: Any, schema: Any, definitions: Schema) -> Any:
    if not isinstance(schema, Mapping) or not isinstance(value, dict | list):
        return value
    known = cast("Schema", schema)
    if "$ref" in known:
        return _without_absent(value, _definition(known, definitions), definitions)
    choices = [each for each in known.get("anyOf", ()) if each.get("type") != "null"]
    if len(choices) == 1:
        return _without_absent(value, choices[0], definitions)
    if isinstance(value, dict):
        return _dropped(cast("dict[str, Any]", value), known, (), definitions)
    items = known.get("items")
    return [_without_absent(item, items, definitions) for item in cast("list[Any]", value)]


def _definition(schema: Schema, definitions: Schema | None) -> Any:
    """Return the target of a reference; an unknown target admits anything."""
    return (definitions or {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {})


def _is_of_kind(schema: Schema, empty: Any) -> bool:
    kinds = schema.get("type")
    if kinds is None:
        return True
    kind = "null" if empty is None else _LEAST[type(empty)][0]
    return kind in kinds if isinstance(kinds, list) else kind == kinds


def _is_within(schema: Schema, empty: Any) -> bool:
    if empty is None:
        return True
    if schema.get(_LEAST[type(empty)][1], 0) > 0:
        return False
    if isinstance(empty, dict):
        return not schema.get("required")
    if isinstance(empty, str):
        return "format" not in schema and _matches(schema.get("pattern"), empty)
    return True


def _matches(pattern: str | None, text: str) -> bool:
    try:
        return pattern is None or re.search(pattern, text) is not None
    except re.error:  # of another dialect of patterns
        return True

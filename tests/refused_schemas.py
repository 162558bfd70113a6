"""Whatever of a JSON schema some host refuses."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from jsonschema import Draft202012Validator

__all__ = ["refused"]


def nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and every schema in it; what is data is none."""
    if isinstance(schema, Mapping):
        known = cast("Mapping[str, Any]", schema)
        yield known
        for keyword, value in known.items():
            if keyword in ("properties", "patternProperties"):
                for each in value.values():
                    yield from nodes(each)
            elif keyword not in ("default", "enum", "const", "examples"):
                yield from nodes(value)
    elif isinstance(schema, list):
        for each in cast("list[Any]", schema):
            yield from nodes(each)


def refused(schema: Any) -> list[str]:
    """Whatever of a schema some host refuses."""
    Draft202012Validator.check_schema(schema)
    found: list[str] = []
    for node in nodes(schema):
        kind = node.get("type")
        if isinstance(kind, list) or "$ref" in node or "$defs" in node:
            found.append(f"a reference or a list of types: {node}")
        if kind == "array" and not isinstance(node.get("items"), Mapping):
            found.append(f"an array without items: {node}")
        if kind == "object" and "properties" not in node:
            found.append(f"an object without properties: {node}")
        if any(isinstance(each, bool) for each in node.get("properties", {}).values()):
            found.append(f"a flag in place of a schema: {node}")
    return found

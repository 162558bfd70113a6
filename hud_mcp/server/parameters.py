"""The arguments of templates and the features of contexts, as schemas and as lines of text."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from hud_mcp.base.schema import plain_field
from hud_mcp.base.text import clip
from hud_mcp.environment.template import Template
from hud_mcp.server.arguments import either_field, object_schema, string_schema
from hud_mcp.server.view import View
from hud_mcp.values.context import ContextFeature, ContextSpace

__all__ = [
    "argument_lines",
    "arguments_schema",
    "context_schema",
    "feature_lines",
    "features_schema",
]

MOST_BYTES = 600
"""The largest of these schemas in a list of tools: hosts send it with every turn."""
_SAID_CHARS = 160
_FEATURE_CHARS = 300
_MOST_CHARS = 1000

_BOUNDS = ("enum", "minimum", "maximum")

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def arguments_schema(view: View) -> dict[str, Any] | None:
    """Return the arguments of all templates, each once; None without arguments.

    If two templates differ in an argument, or some model APIs reject its kind, it is a text that
    may be JSON. If the whole is too long, it is a text too. Choices and bounds stand in
    descriptions: a client that has to send every argument needs an empty value.
    """
    kinds: dict[str, dict[str, Any]] = {}
    said: dict[str, dict[str, list[str]]] = {}
    several = sum(len(e.templates) for e in view.environments) > 1
    for environment in view.environments:
        for template in environment.templates.values():
            for name, schema in template.arguments.schema["properties"].items():
                kind = _free(plain_field(schema))
                kinds[name] = either_field(kinds[name], kind) if name in kinds else kind
                told = clip(_said(schema), _SAID_CHARS)
                said.setdefault(name, {}).setdefault(told, []).append(template.id)
    if not kinds:
        return None
    fields = {
        name: {**kind, "description": _by_template(said[name], several=several)}
        for name, kind in kinds.items()
    }
    told = "The template's, or its defaults."
    return _bounded(object_schema(fields), told)


def context_schema(view: View) -> dict[str, Any] | None:
    """Return the features of all environments' contexts; None without features.

    Choices and bounds stand in descriptions, as for arguments.
    """
    fields: dict[str, dict[str, Any]] = {}
    for environment in view.environments:
        for feature in environment.context_space.features:
            shown = _feature(feature)
            if fields.setdefault(feature.name, shown) != shown:
                fields[feature.name] = either_field(fields[feature.name], shown)
    if not fields:
        return None
    return _bounded(object_schema(fields), "Features to change.")


def features_schema(space: ContextSpace) -> dict[str, Any]:
    """Return the schema of one environment's context."""
    return object_schema({feature.name: _feature(feature) for feature in space.features})


def argument_lines(template: Template) -> list[str]:
    """Return a line for each argument of a template: its name, kind, bounds and default."""
    return [_line(n, s) for n, s in template.arguments.schema["properties"].items()]


def feature_lines(space: ContextSpace) -> list[str]:
    """Return a line for each feature of a context."""
    return [
        f"context {f.name}: {_TYPES[type(f.default)]}. {_feature(f)['description']}"
        for f in space.features
    ]


def _line(name: str, schema: Mapping[str, Any]) -> str:
    plain = plain_field(schema)
    nested = plain["type"] in ("array", "object") or _is_json(schema)
    kind = orjson.dumps(_free(schema, "description", "default")) if nested else None
    said = _said(schema, as_json=False)
    told = plain["type"] if kind is None else kind.decode()
    return f"{name}: {told}. {said}" if said else f"{name}: {told}."


def _is_json(schema: Mapping[str, Any]) -> bool:
    """Whether an argument of another kind is shown as a text."""
    return plain_field(schema) == {"type": "string"} and schema.get("type") != "string"


def _said(schema: Mapping[str, Any], *, as_json: bool = True) -> str:
    """Return the description of an argument, with its default and its bounds."""
    parts = [" ".join(str(schema.get("description", "")).split())]
    if "default" in schema:
        default = clip(orjson.dumps(schema["default"]).decode(), _SAID_CHARS // 4)
        parts.append(f"{default} by default.")
    elif as_json and _is_json(schema):
        parts.append("As JSON text.")
    parts.append(_bounds(plain_field(schema)))
    return " ".join(filter(None, parts))


def _by_template(said: Mapping[str, Iterable[str]], *, several: bool) -> str:
    """Return the descriptions of an argument, after the templates that they are of."""
    return clip(" ".join(_named(said, several=several)), _MOST_CHARS - 1) or "See list_tasks."


def _named(said: Mapping[str, Iterable[str]], *, several: bool) -> Iterator[str]:
    for told, templates in said.items():
        names = f"{', '.join(dict.fromkeys(templates))}: " if several else ""
        yield f"{names}{told or 'what the template asks for.'}"


def _free(schema: Mapping[str, Any], *more: str) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name not in (*_BOUNDS, *more)}


def _bounds(plain: Mapping[str, Any]) -> str:
    if "enum" in plain:
        return f"One of {orjson.dumps(plain['enum']).decode()[1:-1].replace(',', ', ')}."
    low, high = plain.get("minimum"), plain.get("maximum")
    if low is not None and high is not None:
        return f"From {low} to {high}."
    return f"At least {low}." if low is not None else f"At most {high}." if high is not None else ""


def _feature(feature: ContextFeature) -> dict[str, Any]:
    default = orjson.dumps(feature.default).decode()
    low, high = feature.lower, feature.upper
    bounds: dict[str, Any] = {} if feature.choices is None else {"enum": list(feature.choices)}
    bounds |= {} if low is None else {"minimum": f"{low:g}"}
    bounds |= {} if high is None else {"maximum": f"{high:g}"}
    said = f"{feature.description} {default} by default. {_bounds(bounds)}".strip()
    return {"type": _TYPES[type(feature.default)], "description": clip(said, _FEATURE_CHARS)}


def _bounded(schema: dict[str, Any], told: str) -> dict[str, Any]:
    """Return a schema, or the text in its place if it is too long."""
    if len(orjson.dumps(schema)) <= MOST_BYTES:
        return {**schema, "description": told}
    return string_schema(f"{told} A JSON object: list_tasks with `template` tells it.")

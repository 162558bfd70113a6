"""What `start_task` takes in what is served: the arguments of templates, the context's features."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from hud_mcp.clipping import clip
from hud_mcp.context import ContextFeature
from hud_mcp.schema import plain_field
from hud_mcp.server.schemas import either_field, object_schema, string_schema
from hud_mcp.server.view import View

__all__ = ["arguments_schema", "context_schema"]

_MOST_BYTES = 8000
"""Of one of these schemas: hosts send them to their models with every turn."""
_SAID_CHARS = 160
_MOST_CHARS = 1000

_BOUNDS = ("enum", "minimum", "maximum")

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def arguments_schema(view: View) -> dict[str, Any] | None:
    """The arguments of all templates, each once; None where none takes any.

    Where two templates differ in one, or it is of a kind that some model APIs reject, it is a
    text, which may be JSON; where all are too long to be shown, so is the whole. Choices and
    bounds are told in words: a client that has to send all of it must have something to send that
    says nothing.
    """
    kinds: dict[str, dict[str, Any]] = {}
    said: dict[str, list[str]] = {}
    several = sum(len(e.templates) for e in view.environments) > 1
    for environment in view.environments:
        for template in environment.templates.values():
            for name, schema in template.arguments.schema["properties"].items():
                kind = _free(plain_field(schema))
                kinds[name] = either_field(kinds[name], kind) if name in kinds else kind
                said.setdefault(name, []).append(_argument(template.id, schema, several=several))
    if not kinds:
        return None
    fields = {name: {**kind, "description": _said(said[name])} for name, kind in kinds.items()}
    told = "The template's arguments, none of another's; left out, they are its defaults."
    return _bounded({**object_schema(fields), "description": told})


def context_schema(view: View) -> dict[str, Any] | None:
    """The features of all environments' contexts; None where there are none.

    Choices and bounds are told in words, as those of arguments are.
    """
    fields: dict[str, dict[str, Any]] = {}
    for environment in view.environments:
        for feature in environment.context_space.features:
            shown = _feature(feature)
            if fields.setdefault(feature.name, shown) != shown:
                fields[feature.name] = either_field(fields[feature.name], shown)
    if not fields:
        return None
    told = "Features of the environment to change; those left out are as they are by default."
    return _bounded({**object_schema(fields), "description": told})


def _argument(template: str, schema: Mapping[str, Any], *, several: bool) -> str:
    told = " ".join(str(schema.get("description", "")).split())
    if "default" in schema:
        default = clip(orjson.dumps(schema["default"]).decode(), _SAID_CHARS // 4)
        told = f"{told} {default} by default." if told else f"{default} by default."
    elif plain_field(schema) == {"type": "string"} and schema.get("type") != "string":
        told = f"{told} As JSON text."
    if bounds := _bounds(plain_field(schema)):
        told = f"{told} {bounds}"
    told = clip(told.strip() or "what the template asks for.", _SAID_CHARS)
    return f"{template}: {told}" if several else told


def _free(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name not in _BOUNDS}


def _bounds(plain: Mapping[str, Any]) -> str:
    if "enum" in plain:
        return f"One of {orjson.dumps(plain['enum']).decode()[1:-1].replace(',', ', ')}."
    low, high = plain.get("minimum"), plain.get("maximum")
    if low is not None and high is not None:
        return f"From {low} to {high}."
    return f"At least {low}." if low is not None else f"At most {high}." if high is not None else ""


def _said(parts: Iterable[str]) -> str:
    return clip(" ".join(dict.fromkeys(parts)), _MOST_CHARS - 1)


def _feature(feature: ContextFeature) -> dict[str, Any]:
    default = orjson.dumps(feature.default).decode()
    low, high = feature.lower, feature.upper
    bounds: dict[str, Any] = {} if feature.choices is None else {"enum": list(feature.choices)}
    bounds |= {} if low is None else {"minimum": f"{low:g}"}
    bounds |= {} if high is None else {"maximum": f"{high:g}"}
    said = f"{feature.description} {default} by default. {_bounds(bounds)}".strip()
    return {"type": _TYPES[type(feature.default)], "description": clip(said, 300)}


def _bounded(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema, or the text that takes its place where it is too long."""
    if len(orjson.dumps(schema)) <= _MOST_BYTES:
        return schema
    return string_schema(f"{schema['description']} A JSON object, as text.")

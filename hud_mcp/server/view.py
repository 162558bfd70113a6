"""The view of one kind of clients: actions, arguments and contexts, and who begins sessions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from hud_mcp.base.schema import plain_field
from hud_mcp.base.text import clip
from hud_mcp.environment import Environment
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.environment.template import Template
from hud_mcp.server.arguments import (
    ACTION,
    Argument,
    either_field,
    fillable,
    object_schema,
    string_schema,
)
from hud_mcp.values.action import ACTION_TYPES, flat_fields, flat_schemas
from hud_mcp.values.context import ContextFeature, ContextSpace

__all__ = [
    "View",
    "argument_lines",
    "arguments_schema",
    "context_schema",
    "feature_lines",
    "features_schema",
]

_MOST_CHARS = 1000
"""The longest description; hosts take little more."""


@dataclass(frozen=True)
class View:
    """The facts behind the texts and schemas of a server.

    Attributes:
        one_session: Whether it is for an agent that has one session, and begins none.
        types: The actions that the worlds take, by type.
        screen: Whether a world has a screen.
        pictures: Whether a step shows it unasked.
        talks: Whether a template has a user to talk to.
        tools: The names of tools that can do all of `custom` in some world.
        destructive: Whether an action may undo something.
        open_world: Whether an action may reach outside of the server.
        environments: The served environments.
        custom: The worlds' own actions with their schemas; None if unknown.
    """

    one_session: bool
    types: tuple[str, ...]
    screen: bool
    custom: Mapping[str, Any] | None
    tools: tuple[str, ...] = ()
    destructive: bool = True
    open_world: bool = True
    environments: tuple[Environment, ...] = ()
    pictures: bool = True
    talks: bool = True

    @classmethod
    def of(
        cls, served: Iterable[Environment] = (), *, one_session: bool = False, look: str = "both"
    ) -> "View":
        """Return the view of these environments; without any, of everything."""
        environments = tuple(served)
        worlds = [environment.world for environment in environments]
        screen = not worlds or any(world.has_screen for world in worlds)
        taken = frozenset[str]().union(*map(_shown_actions, worlds)) | {"response"}
        own = [world.custom_actions for world in worlds if "custom" in _shown_actions(world)]
        return cls(
            one_session=one_session,
            types=tuple(
                kind
                for kind in ACTION_TYPES
                if not worlds or (kind in taken and (screen or kind != "screenshot"))
            ),
            screen=screen,
            custom=_merged(own) if own and all(own) else None,
            tools=tuple({t.name: None for w in worlds if w.tools_suffice for t in w.tools}),
            destructive=not worlds or any(world.is_destructive for world in worlds),
            open_world=not worlds or any(world.open_world for world in worlds),
            environments=environments,
            pictures=screen and look != "text",
            talks=not worlds or any(t.user for e in environments for t in e.templates.values()),
        )

    @property
    def points(self) -> bool:
        """Whether an action has a place to point at."""
        return "click" in self.types

    @property
    def session(self) -> dict[str, Any]:
        """The schema of the argument `session`."""
        one = "Your session's id; may be left out."
        return string_schema(one if self.one_session else "From start_task.")

    def environment(self, told: str) -> Argument:
        """Return the argument `environment`, hidden where there is one environment."""
        return Argument(None if len(self.environments) == 1 else string_schema(told), kind="string")

    @property
    def acts(self) -> bool:
        """Whether a world takes an action beside waiting and answering."""
        return not frozenset(self.types) <= {"wait", "response"}

    @property
    def action(self) -> dict[str, Any]:
        """The fields of one action, each with its schema."""
        names = frozenset[str]().union(*map(flat_fields, self.types))
        fields = {name: schema for name, schema in ACTION.items() if name in names}
        fields["type"] = {**ACTION["type"], "enum": list(self.types)}
        for kind in self.types:  # the other fields of an author's own action
            fields |= {k: v for k, v in flat_schemas(kind).items() if k not in fields}
        if "type" not in self.types:
            fields["text"] = string_schema("response: the final answer.")
        if "custom" in self.types and self.custom is not None:
            del fields["args"]
            fields |= _custom_fields(self.custom)
        elif "args" in fields and self.environments:  # some clients refuse an object without fields
            fields["args"] = string_schema(f"{ACTION['args']['description']} As JSON text.")
        return fields


def _shown_actions(world: WorldSpec) -> frozenset[str]:
    """Return the types of a world's actions, without those that its tools can do."""
    return world.actions - {"custom"} if world.tools_suffice else world.actions


def _merged(own: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the custom actions of several worlds. One that two worlds declare takes both forms."""
    merged: dict[str, Any] = {}
    for actions in own:
        for name, schema in actions.items():
            merged[name] = _joined(merged[name], schema) if name in merged else schema
    return merged


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    if one == other:
        return one
    fields: dict[str, Any] = dict(one.get("properties", {}))
    for name, schema in other.get("properties", {}).items():
        fields[name] = either_field(fields[name], schema) if name in fields else schema
    return {**one, "properties": fields}


def _custom_fields(custom: Mapping[str, Any]) -> dict[str, Any]:
    """Return `action` and `args` for these actions, with the fields of each side by side."""
    said = [f"{name}: {schema.get('description', 'see args.')}" for name, schema in custom.items()]
    taken: dict[str, Any] = {}
    for name, schema in custom.items():
        for field, what in schema.get("properties", {}).items():
            shown = fillable(what)
            if len(custom) > 1:
                shown["description"] = f"{name}: {what.get('description', 'see there.')}"
            taken[field] = either_field(taken[field], shown) if field in taken else shown
    action = string_schema(f"custom: {' '.join(said)}"[:_MOST_CHARS], enum=list(custom))
    if not taken:
        return {"action": action}
    return {
        "action": action,
        "args": object_schema(taken),
    }


_MOST_BYTES = 600
"""The largest of these schemas in a list of tools: hosts send it with every turn."""
_SAID_CHARS = 160
_FEATURE_CHARS = 300
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
    return [_argument_line(n, s) for n, s in template.arguments.schema["properties"].items()]


def feature_lines(space: ContextSpace) -> list[str]:
    """Return a line for each feature of a context."""
    return [
        f"context {f.name}: {_TYPES[type(f.default)]}. {_feature(f)['description']}"
        for f in space.features
    ]


def _argument_line(name: str, schema: Mapping[str, Any]) -> str:
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
    named = (
        (f"{', '.join(dict.fromkeys(templates))}: " if several else "")
        + (told or "what the template asks for.")
        for told, templates in said.items()
    )
    return clip(" ".join(named), _MOST_CHARS - 1)


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
    if len(orjson.dumps(schema)) <= _MOST_BYTES:
        return {**schema, "description": told}
    return string_schema(f"{told} A JSON object: list_tasks with `template` tells it.")

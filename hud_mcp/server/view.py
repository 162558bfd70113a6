"""The view of one kind of clients: the actions, and whether they begin sessions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.server.arguments import (
    ACTION,
    Argument,
    either_field,
    fillable,
    object_schema,
    string_schema,
)
from hud_mcp.values.action import ACTION_TYPES, flat_fields, flat_schemas

__all__ = ["View"]

_MOST_CHARS = 1000
"""The longest description; hosts take little more."""


@dataclass(frozen=True)
class View:
    """The facts behind the texts and schemas of a server.

    Attributes:
        one_session: Whether it is for an agent that has one session, and begins none.
        types: The actions that the worlds take, by type.
        screen: Whether a world has a screen.
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

    @classmethod
    def of(cls, environments: Iterable[Environment] = (), *, one_session: bool = False) -> "View":
        """Return the view of these environments; without any, of everything."""
        served = tuple(environments)
        worlds = [environment.world for environment in served]
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
            environments=served,
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

"""What clients of one kind are shown: which actions there are, and whether they begin sessions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hud_mcp.action import ACTION_TYPES, flat_fields, flat_schemas
from hud_mcp.environment import Environment
from hud_mcp.server.schemas import ACTION, object_schema, string_schema

__all__ = ["View"]

_MOST_CHARS = 1000
"""Of one description; hosts take little more."""


@dataclass(frozen=True)
class View:
    """What the texts and schemas of a server are written for.

    Attributes:
        one_session: Whether it is for an agent that has one session, and begins none.
        types: The actions that the worlds take, by type.
        screen: Whether a world has a screen.
        custom: The worlds' own actions with their schemas; None where they are not known.
    """

    one_session: bool
    types: tuple[str, ...]
    screen: bool
    custom: Mapping[str, Any] | None

    @classmethod
    def of(cls, environments: Iterable[Environment] = (), *, one_session: bool = False) -> "View":
        """The view of these environments; of everything, where there are none."""
        worlds = [environment.world for environment in environments]
        taken = frozenset[str]().union(*(world.actions for world in worlds)) | {"response"}
        own: list[Mapping[str, Any]] = [
            world.custom_actions for world in worlds if "custom" in world.actions
        ]
        return cls(
            one_session=one_session,
            types=tuple(kind for kind in ACTION_TYPES if not worlds or kind in taken),
            screen=not worlds or any(world.has_screen for world in worlds),
            custom=_merged(own) if own and all(own) else None,
        )

    @property
    def points(self) -> bool:
        """Whether there is something to point at."""
        return "click" in self.types

    @property
    def session(self) -> dict[str, Any]:
        """The schema of the argument `session`."""
        if self.one_session:
            return string_schema("Your session's id. May be left out: you have just one.")
        return string_schema(
            "The id that start_task returned. May be left out if you hold just one."
        )

    @property
    def action(self) -> dict[str, Any]:
        """The fields of one action, each with its schema."""
        names = frozenset[str]().union(*map(flat_fields, self.types))
        fields = {name: schema for name, schema in ACTION.items() if name in names}
        fields["type"] = {**ACTION["type"], "enum": list(self.types)}
        for kind in self.types:  # what an author's own action has besides
            fields |= {k: v for k, v in flat_schemas(kind).items() if k not in fields}
        if "type" not in self.types:
            fields["text"] = string_schema("response: the final answer.")
        if "custom" in self.types and self.custom is not None:
            fields |= _custom_fields(self.custom)
        return fields


def _merged(own: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The custom actions of several worlds; None where two differ in one of the same name."""
    merged: dict[str, Any] = {}
    for actions in own:
        for name, schema in actions.items():
            if merged.setdefault(name, schema) != schema:
                return None
    return merged


def _custom_fields(custom: Mapping[str, Any]) -> dict[str, Any]:
    """`action` and `args` for these actions: what each takes, side by side."""
    said = [f"{name}: {schema.get('description', 'see args.')}" for name, schema in custom.items()]
    taken: dict[str, Any] = {}
    for name, schema in custom.items():
        for field, what in schema.get("properties", {}).items():
            named = what if len(custom) == 1 else {**what, "description": _of(name, what)}
            if field in taken and len(custom) > 1:
                if {**taken[field], "description": ""} != {**named, "description": ""}:
                    return {"action": _custom_name(custom, said)}
                named["description"] = f"{taken[field]['description']} {named['description']}"
            taken[field] = named
    args = object_schema(taken) | {"description": "custom: what the action takes."}
    return {"action": _custom_name(custom, said), "args": args}


def _custom_name(custom: Mapping[str, Any], said: list[str]) -> dict[str, Any]:
    return string_schema(f"custom: {' '.join(said)}"[:_MOST_CHARS], enum=list(custom))


def _of(name: str, what: Mapping[str, Any]) -> str:
    return f"{name}: {what.get('description', 'see there.')}"

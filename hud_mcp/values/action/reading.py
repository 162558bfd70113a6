"""The reading of actions: in the HUD form, nested, and in the flat form that models write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

import orjson
from pydantic import ValidationError

from hud_mcp.base.reading import Fault, Reader, is_empty, tell
from hud_mcp.base.schema import plain_field, plain_schema
from hud_mcp.base.text import clip_repr
from hud_mcp.errors import InvalidAction, did_you_mean
from hud_mcp.values.action.action import ACTION_CLASSES, ACTION_TYPES, Action, Point, needs_target


def parse_action(
    raw: Mapping[str, Any] | str | Action, *, where: str = "action", pointed: bool = True
) -> Action:
    """Read one action in the HUD form (`point: {x, y}`) or the flat form (`x`, `y`).

    `None` counts as absent, and so do `""`, `[]` and `{}` if the field does not admit them. Fields
    of another type of action are ignored, because several frameworks fill in every property of a
    schema. A field without texts may come as its JSON text. Without `pointed`, the caller follows
    the pointer, and a click needs no place.

    Raises:
        InvalidAction: The action has no known type, lacks a field, or has one of the wrong kind.
    """
    if isinstance(raw, Action):
        return raw
    if isinstance(raw, str):
        (raw, *_) = action_rows([raw])
    kind = raw.get("type") if isinstance(raw, Mapping) else None
    known = ACTION_CLASSES.get(kind) if isinstance(kind, str) else None
    if known is None or not isinstance(raw, Mapping):
        raise InvalidAction(f"{where}: {no_type(raw)}")
    form = _form(known)
    if not raw.keys() <= form.both:
        _refuse_unknown(raw, known, where)
    fields = form.reader.read(form.nested_of(raw))
    try:
        try:  # strictly, as JSON: a list is a tuple there, and 1 is no flag
            action = known.model_validate_json(orjson.dumps(fields), strict=True)
        except TypeError:  # a Python program's own values
            action = known.model_validate(fields)
    except ValidationError as exc:
        raise InvalidAction(f"{where}: {_explain(exc, known, fields)}") from None
    if pointed and form.is_aimed and action.is_aimless:
        raise InvalidAction(f"{where}: {needs_target(action.type)}.")
    return action


def no_type(raw: Any) -> str:
    """Return the fault of a value that is no action, or of no known type."""
    if not isinstance(raw, Mapping):
        return f"expected an object such as {{'type': 'screenshot'}}, got {clip_repr(raw)}."
    kind = cast("Mapping[str, Any]", raw).get("type")
    return (
        f"unknown type {clip_repr(kind)}.{did_you_mean(kind, ACTION_TYPES)} "
        f"The types are {', '.join(ACTION_TYPES)}."
    )


def _refuse_unknown(raw: Mapping[str, Any], known: type[Action], where: str) -> None:
    """Raise InvalidAction for a field that no action has; fields of other actions pass."""
    form = _form(known)
    every = frozenset[str]().union(*(_form(each).both for each in ACTION_CLASSES.values()))
    if unknown := sorted(raw.keys() - form.both - every):
        takes = form.flat - {*Action.model_fields, "type"}
        raise InvalidAction(
            f"{where}: {raw['type']!r} has no field {unknown[0]!r}."
            f"{did_you_mean(unknown[0], takes)} "
            f"It takes {', '.join(sorted(takes)) or 'no field'}."
        )


_ROWS = Reader(
    {"properties": {"actions": {"type": "array", "items": {"type": "object"}}}}
)  # fmt: skip


def action_rows(raw: Any) -> Sequence[Any]:
    """Return the actions of a list, or of its JSON text, unread; one alone is a list of one.

    Raises:
        InvalidAction: It is neither.
    """
    given = _ROWS.read({"actions": raw}).get("actions", ())
    if isinstance(given, Action):
        return (given,)
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidAction(
            "actions: expected a list of actions such as [{'type': 'screenshot'}], "
            f"got {clip_repr(given)}."
        )
    return cast("Sequence[Any]", given)


def parse_actions(raw: Any, *, pointed: bool = True) -> tuple[Action, ...]:
    """Read a list of actions, or its JSON text. One alone is a list of one, None an empty one.

    Raises:
        InvalidAction: An action is bad; the text names the first as ``actions[i]``. None was
            performed.
    """
    actions: list[Action] = []
    for i, item in enumerate(action_rows(raw)):
        actions.append(parse_action(item, where=f"actions[{i}]", pointed=pointed))
    return tuple(actions)


def flat_fields(kind: str) -> frozenset[str]:
    """Return the fields of one type of action in the flat form, with its type."""
    return _form(ACTION_CLASSES[kind]).flat


def flat_schemas(kind: str) -> dict[str, dict[str, Any]]:
    """Return a JSON schema for each of an action type's own fields in the flat form."""
    known = ACTION_CLASSES[kind]
    form = _form(known)
    given = plain_schema(known.model_json_schema())["properties"]
    found: dict[str, dict[str, Any]] = {}
    for name in known.model_fields:
        if name == "type" or name in Action.model_fields:
            continue
        said = f"{kind}: {given[name].get('description', name)}"
        axes = next((axes for place, *axes in form.places if place == name), None)
        if axes is not None:
            found |= {axis: {"type": "number", "description": said} for axis in axes}
        else:
            found[name] = {**plain_field(given[name]), "description": said}
    return found


@dataclass(frozen=True)
class _Form:
    """The forms of one class of action.

    Attributes:
        nested: Its fields.
        flat: Its fields in the flat form, in which a place is two numbers.
        both: The fields of either form.
        places: Its fields that are places, each with the names of the two numbers.
        is_aimed: Whether it acts at the pointer if it names no place.
        reader: Reads its fields.
    """

    nested: frozenset[str]
    flat: frozenset[str]
    both: frozenset[str]
    places: tuple[tuple[str, str, str], ...]
    is_aimed: bool
    reader: Reader

    def nested_of(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Drop absent fields and those of another type; fold x and y into a point."""
        kept = {
            name: value
            for name, value in raw.items()
            if name in self.nested and not self._is_absent(name, value)
        }
        for name, _x, _y in self.places:
            if name in kept and _is_filler(kept[name]):
                del kept[name]
        is_pointed = "point" in kept
        for name, x, y in self.places:
            given = {a: raw[k] for a, k in (("x", x), ("y", y)) if not is_empty(raw.get(k))}
            if not given or name in kept:
                continue
            # Half a place is an error that pydantic names; half a distance is zero on the other
            # axis.
            kept[name] = given if name == "point" else {"x": 0, "y": 0, **given}
        if filled := {"ref", "selector"} & kept.keys():
            # A model that fills in every property sends a point beside the ref it means.
            if "point" in kept and not is_pointed:
                del kept["point"]
            if len(filled) == 2:  # noqa: PLR2004  # both of the two
                del kept["selector"]
        return kept

    def _is_absent(self, name: str, value: Any) -> bool:
        is_note = name in Action.model_fields and is_empty(value)
        return value is None or is_note or self.reader.at(name).is_absent(value)


def _is_filler(place: Any) -> bool:
    """Whether a place is an object that a framework filled in with nothing."""
    return isinstance(place, Mapping) and all(
        map(is_empty, cast("Mapping[str, Any]", place).values())
    )


@cache
def _form(known: type[Action]) -> _Form:
    fields = known.model_fields
    names = [name for name, field in fields.items() if _is_place(field.annotation)]
    places = tuple((name, *_axes(name)) for name in names)
    nested = frozenset(fields)
    flat = (nested - set(names)) | {axis for _, *axes in places for axis in axes}
    is_aimed = known.is_aimless is not Action.is_aimless
    reader = Reader(plain_schema(known.model_json_schema()))
    return _Form(nested, flat, nested | flat, places, is_aimed, reader)


def _axes(name: str) -> tuple[str, str]:
    """Return the two numbers of a place in the flat form; for the place itself, `x` and `y`."""
    return ("x", "y") if name == "point" else (f"{name}_x", f"{name}_y")


def _is_place(annotation: Any) -> bool:
    """Whether a field is a point, or a point or None; several points are a way."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return Point in get_args(annotation) if is_union else annotation is Point


def _explain(exc: ValidationError, known: type[Action], fields: Mapping[str, Any]) -> str:
    form, kind = _form(known), known.model_fields["type"].default
    flat = {f"{name}.{axis}": each for name, x, y in form.places
            for axis, each in (("x", x), ("y", y))}  # fmt: skip
    found: list[Fault] = []
    for fault in form.reader.faults(exc, fields):
        path = flat.get(fault.path, fault.path)
        needs = Fault("", f"{kind!r} needs {path}")
        found.append(needs if fault.is_missing else fault._replace(path=path))
    return tell(found)

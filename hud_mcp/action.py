"""The Common Language Actions: what an agent may do, one typed value each.

Field names are the HUD SDK's. This module owns the shapes and the forms in which
they may be written; it does not perform anything (a world does).
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from hud_mcp.errors import InvalidAction, did_you_mean

__all__ = [
    "ACTION_TYPES",
    "CLA",
    "MAX_WAIT_MS",
    "NO_TARGET",
    "Action",
    "ActionEffect",
    "ClickAction",
    "CustomAction",
    "DragAction",
    "KeyDownAction",
    "KeyUpAction",
    "MoveAction",
    "Point",
    "PositionFetch",
    "PressAction",
    "Response",
    "ResponseAction",
    "ScreenshotFetch",
    "ScrollAction",
    "TypeAction",
    "WaitAction",
    "flat_fields",
    "parse_action",
    "parse_actions",
    "scale_action",
]

MAX_WAIT_MS = 30_000
"""The longest `wait`: hosts give up on a call after about a minute."""

Button = Literal["left", "right", "middle", "back", "forward"]

NO_TARGET = "'click' needs x and y, a ref, or a selector"
"""What is wrong with a click that does not say where, before the pointer was put anywhere."""


def _button(given: Any) -> Any:
    """The HUD SDK's first releases spelled the middle button `wheel`."""
    return "middle" if given == "wheel" else given


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(Value):
    """A place on the screenshot last shown, in its pixels, from its top left corner."""

    x: float = Field(description="Pixels from the left edge.", allow_inf_nan=False)
    y: float = Field(description="Pixels from the top edge.", allow_inf_nan=False)


class Described(Value):
    """What every action may carry for the record: it changes nothing in the world."""

    reasoning: str | None = Field(default=None, description="Why the agent does this.")
    logs: str | dict[str, Any] | list[Any] | None = Field(default=None, description="A note.")


class Targeted(Described):
    """An action on one place: a point, a `ref` of the last text observation, or a selector."""

    point: Point | None = Field(default=None, description="Where, in screenshot pixels.")
    ref: str | None = Field(default=None, description="A ref of the last text, such as 'e12'.")
    selector: str | None = Field(default=None, description="A CSS or Playwright selector.")

    @model_validator(mode="after")
    def _one_target(self) -> "Targeted":
        given = [n for n in ("point", "ref", "selector") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ValueError(f"give one of point, ref and selector, not {' and '.join(given)}")
        return self


class ClickAction(Targeted):
    """Click; `pattern` holds the pauses in ms between clicks: [100] is a double click."""

    type: Literal["click"] = "click"
    button: Annotated[Button, BeforeValidator(_button)] = "left"
    pattern: tuple[Annotated[int, Field(ge=0, le=5000)], ...] | None = Field(
        default=None,
        max_length=9,
        description="Pauses between clicks, ms; [100] is a double click.",
    )
    hold_keys: tuple[str, ...] | None = None

    @property
    def has_target(self) -> bool:
        """Whether it says where; else it clicks where the pointer is, where that is known."""
        return any(place is not None for place in (self.point, self.ref, self.selector))


class PressAction(Described):
    """Press one key, or a chord: all keys go down in order and up in reverse order."""

    type: Literal["press"] = "press"
    keys: tuple[str, ...] = Field(min_length=1, max_length=16)


class KeyDownAction(Described):
    """Hold keys down until a `keyup`."""

    type: Literal["keydown"] = "keydown"
    keys: tuple[str, ...] = Field(min_length=1, max_length=16)


class KeyUpAction(Described):
    """Let keys go that a `keydown` holds."""

    type: Literal["keyup"] = "keyup"
    keys: tuple[str, ...] = Field(min_length=1, max_length=16)


class TypeAction(Targeted):
    """Type text where the focus is, or into the target, which it clicks and empties first."""

    type: Literal["type"] = "type"
    text: str = Field(description="What to type.")
    enter_after: bool | None = Field(default=False, description="Press Enter afterwards.")


class ScrollAction(Targeted):
    """Turn the wheel, at the target or where the pointer is."""

    type: Literal["scroll"] = "scroll"
    scroll: Point | None = Field(
        default=None, description="How far, in CSS pixels: +y down, +x right."
    )
    hold_keys: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _has_distance(self) -> "ScrollAction":
        if self.scroll is None:
            raise ValueError("'scroll' needs scroll_x or scroll_y, in pixels (+y is down)")
        return self


class MoveAction(Targeted):
    """Move the pointer to a target, or by an offset from where it is."""

    type: Literal["move"] = "move"
    offset: Point | None = None

    @model_validator(mode="after")
    def _has_target(self) -> "MoveAction":
        if all(v is None for v in (self.point, self.ref, self.selector, self.offset)):
            raise ValueError("'move' needs x and y, a ref, a selector, or an offset")
        return self


class WaitAction(Described):
    """Wait; the world goes on meanwhile."""

    type: Literal["wait"] = "wait"
    time: int = Field(ge=0, le=MAX_WAIT_MS, description="How long, ms.")


class DragAction(Described):
    """Press the left button at the first point, go along the path, let go at the last."""

    type: Literal["drag"] = "drag"
    path: tuple[Point, ...] = Field(min_length=2, max_length=500)
    pattern: tuple[Annotated[int, Field(ge=0, le=5000)], ...] | None = Field(
        default=None, description="Pauses between the points, ms; the last one repeats."
    )
    hold_keys: tuple[str, ...] | None = None


class ScreenshotFetch(Described):
    """Look, without doing anything."""

    type: Literal["screenshot"] = "screenshot"


class PositionFetch(Described):
    """Ask where the pointer is."""

    type: Literal["position"] = "position"


class ResponseAction(Described):
    """Submit the final answer: the task ends and is graded."""

    type: Literal["response"] = "response"
    text: str = Field(description="The answer; JSON text where the task returns a type.")


Response = ResponseAction
"""The HUD SDK's name at its top."""


class CustomAction(Described):
    """An action of the environment's own."""

    type: Literal["custom"] = "custom"
    action: str = Field(min_length=1, description="Its name.")
    args: dict[str, Any] | None = Field(default=None, description="Its arguments.")


Action = Annotated[
    ClickAction
    | PressAction
    | KeyDownAction
    | KeyUpAction
    | TypeAction
    | ScrollAction
    | MoveAction
    | WaitAction
    | DragAction
    | ScreenshotFetch
    | PositionFetch
    | ResponseAction
    | CustomAction,
    Field(discriminator="type"),
]
"""Any one action; the field `type` says which."""

CLA = Action
"""The HUD SDK's name: Common Language Action."""

_CLASSES: tuple[type[Described], ...] = get_args(get_args(Action)[0])
_FIELDS = {c.model_fields["type"].default: frozenset(c.model_fields) for c in _CLASSES}
ACTION_TYPES: tuple[str, ...] = tuple(_FIELDS)
"""Every value of `type`."""

_ADAPTER: TypeAdapter[Action] = TypeAdapter(Action)
_KNOWN: frozenset[str] = frozenset[str]().union(*_FIELDS.values()) | {
    "x", "y", "scroll_x", "scroll_y", "offset_x", "offset_y",
}  # fmt: skip


class ActionEffect(Value):
    """What one performed action did, beyond what the next observation shows."""

    text: str | None = Field(default=None, description="A sentence for the agent, or None.")
    reward: float | None = Field(
        default=None, allow_inf_nan=False, description="A reward of this step alone, or None."
    )
    terminated: bool = Field(default=False, description="The episode reached its end.")
    truncated: bool = Field(default=False, description="The episode was cut off by a limit.")
    info: dict[str, Any] = Field(default_factory=dict, description="Whatever the world adds.")
    place: Point | None = Field(
        default=None,
        description="Where what was named was, in CSS pixels; None where it was out of view.",
    )
    target: str | None = Field(
        default=None,
        description="What it hit, in the world's own form: for functions, never for an agent.",
    )


def parse_action(
    raw: Mapping[str, Any] | Described, *, where: str = "action", pointed: bool = True
) -> Action:
    """Read one action in the HUD form (`point: {x, y}`) or the flat form (`x`, `y`).

    `None` and `""` count as absent where the field is optional, and fields that
    belong to another type of action are ignored: several frameworks fill in every
    property of a schema.

    Args:
        raw: The action's fields, or an action, which is returned as it is.
        where: What to call it in an error, such as ``actions[2]``.
        pointed: Whether a click must say where; a caller that follows the pointer knows.

    Raises:
        InvalidAction: It has no known type, lacks a field, or one is of the wrong kind.
    """
    if isinstance(raw, Described):
        return raw  # pyright: ignore[reportReturnType]  # every subclass of Described is an Action
    if not isinstance(raw, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # it is JSON from outside
        raise InvalidAction(f"{where}: expected an object with a 'type', got {_clip(raw)}.")
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        hint = did_you_mean(kind, ACTION_TYPES) if isinstance(kind, str) else ""
        raise InvalidAction(
            f"{where}: unknown type {_clip(kind)}.{hint} The types are {', '.join(ACTION_TYPES)}."
        )
    unknown = sorted(set(raw) - _KNOWN)
    if unknown:
        takes = flat_fields(kind) - set(Described.model_fields) - {"type"}
        raise InvalidAction(
            f"{where}: {kind!r} has no field {unknown[0]!r}.{did_you_mean(unknown[0], takes)} "
            f"It takes {', '.join(sorted(takes)) or 'no field'}."
        )
    try:
        action = _ADAPTER.validate_python(_nested(raw, _FIELDS[kind]))
    except ValidationError as exc:
        raise InvalidAction(f"{where}: {_explain(exc, kind)}") from None
    if pointed and isinstance(action, ClickAction) and not action.has_target:
        raise InvalidAction(f"{where}: {NO_TARGET}.")
    return action


def parse_actions(raw: Any, *, pointed: bool = True) -> tuple[Action, ...]:
    """Read a list of actions; one action alone counts as a list of one, None as an empty one.

    Args:
        raw: What was given.
        pointed: As for `parse_action`.

    Raises:
        InvalidAction: Naming the first bad one as ``actions[i]``. None was performed.
    """
    if raw is None:
        return ()
    if isinstance(raw, Mapping | Described):
        return (parse_action(cast("Mapping[str, Any] | Described", raw), pointed=pointed),)
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        raise InvalidAction(f"actions: expected a list of actions, got {_clip(raw)}.")
    items = cast("Sequence[Any]", raw)
    return tuple(
        parse_action(item, where=f"actions[{i}]", pointed=pointed) for i, item in enumerate(items)
    )


def scale_action(action: Action, scale: float) -> Action:
    """Map an action's places from screenshot pixels to CSS pixels.

    Args:
        action: What the agent sent, in pixels of the picture that it was shown.
        scale: CSS pixels per pixel of that picture; scroll distances are not scaled.
    """
    if scale == 1:
        return action
    changes: dict[str, Any] = {}
    for name in ("point", "offset"):
        place = getattr(action, name, None)
        if place is not None:
            changes[name] = Point(x=place.x * scale, y=place.y * scale)
    if isinstance(action, DragAction):
        changes["path"] = tuple(Point(x=p.x * scale, y=p.y * scale) for p in action.path)
    return action.model_copy(update=changes) if changes else action


_PAIRS = (
    ("point", "x", "y"),
    ("scroll", "scroll_x", "scroll_y"),
    ("offset", "offset_x", "offset_y"),
)


def _nested(raw: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    """Drop what is absent or belongs to another type; fold x and y into a point."""
    kept = {
        k: v for k, v in raw.items() if k in fields and v is not None and (v != "" or k == "text")
    }
    for name, x, y in _PAIRS:
        given = {a: raw[k] for a, k in (("x", x), ("y", y)) if raw.get(k) not in (None, "")}
        if name not in fields or not given or name in kept:
            continue
        # Half a place is an error that pydantic names; half a distance is zero on the other axis.
        kept[name] = given if name == "point" else {"x": 0, "y": 0, **given}
    if name_filled := {"ref", "selector"} & set(kept):
        # A model that fills in every property sends a point beside the ref it means.
        if "point" in kept and "point" not in raw:
            del kept["point"]
        if len(name_filled) == 2:  # noqa: PLR2004  # both of the two
            del kept["selector"]
    return kept


def flat_fields(kind: str) -> frozenset[str]:
    """The fields of one type of action in the flat form, with its type."""
    nested = {name: {x, y} for name, x, y in _PAIRS}
    return frozenset[str]().union(*(nested.get(name, {name}) for name in _FIELDS[kind]))


_FLAT = {f"{name}.{axis}": flat for name, x, y in _PAIRS for axis, flat in (("x", x), ("y", y))}
"""A nested field's name, as the flat form has it."""


def _explain(exc: ValidationError, kind: str) -> str:
    parts: list[str] = []
    for error in exc.errors(include_url=False)[:5]:
        path = ".".join(str(p) for p in error["loc"][1:])  # the first names the type
        path = _FLAT.get(path, path)
        if error["type"] == "missing":
            parts.append(f"{kind!r} needs {path}")
        elif error["type"] == "value_error":
            parts.append(str(error["ctx"]["error"]) if "ctx" in error else error["msg"])
        else:
            parts.append(f"{path}: {error['msg'].lower()}, got {_clip(error['input'])}")
    return "; ".join(parts) + "."


def _clip(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"

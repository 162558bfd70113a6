"""The base of all actions: a typed value with its own reading, words and mark."""

import inspect
from collections.abc import KeysView, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from hud_mcp.base.text import clip_json
from hud_mcp.values.refs import selector_words


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(Value):
    """A place on the screenshot last shown, in its pixels, from its top left corner."""

    x: float = Field(description="Pixels from the left edge.", allow_inf_nan=False)
    y: float = Field(description="Pixels from the top edge.", allow_inf_nan=False)

    def __str__(self) -> str:
        """Both numbers, for people."""
        return f"{round(self.x, 2):.12g}, {round(self.y, 2):.12g}"

    def scaled(self, scale: float) -> "Point":
        """Return the same place on a picture that is larger by this factor."""
        return Point(x=self.x * scale, y=self.y * scale)


@dataclass(frozen=True)
class Mark:
    """The mark of an action on the picture that the agent acted on.

    Attributes:
        point: The place; None if the action names none.
        path: The path of a drag.
        scroll: The distance of the wheel, in CSS pixels.
        clicks: The number of clicks there.
        typed: The text beside the mark.
        presses: Whether the action presses there, or only moves there.
    """

    point: Point | None = None
    path: tuple[Point, ...] = ()
    scroll: Point | None = None
    clicks: int = 1
    typed: str | None = None
    presses: bool = True

    def on_page(self, scale: float, reached: Point | None) -> "Mark":
        """Return the mark in CSS pixels, at the named element if that was reached."""
        point = reached if self.point is None else self.point.scaled(scale)
        return replace(self, point=point, path=tuple(each.scaled(scale) for each in self.path))


ACTION_CLASSES: dict[str, type["Action"]] = {}
"""Every class of action by its `type`; declaring one adds it."""

ACTION_TYPES: KeysView[str] = ACTION_CLASSES.keys()
"""Every value of `type`: of the Common Language Actions first, then of added ones."""


def _read_any(given: Any) -> "Action":
    if isinstance(given, Action):
        return given
    kind = given.get("type") if isinstance(given, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # JSON
    if not isinstance(kind, str) or kind not in ACTION_CLASSES:
        raise ValueError(f"an action has a 'type', one of {', '.join(ACTION_TYPES)}")
    return ACTION_CLASSES[kind].model_validate(given)


class Action(Value):
    """Any one action, by its field `type`.

    A subclass that declares ``type: Literal["hover"] = "hover"`` becomes an action everywhere:
    agents can send it, and pages show it. A pydantic field of the type `Action` accepts every
    action.
    """

    reasoning: str | None = Field(default=None, description="Why the agent does this.")
    logs: str | dict[str, Any] | list[Any] | None = Field(default=None, description="A note.")

    if TYPE_CHECKING:  # a text; each class has it as a field, in its own place in what is stored
        type: Any

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Add a class that declares a `type` of its own; TypeError if another class has it."""
        if "type" not in inspect.get_annotations(cls):
            return
        kind = cls.model_fields["type"].default
        other = ACTION_CLASSES.get(kind, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"{cls.__qualname__}: {other.__qualname__} has the action type {kind!r} "
                "already; declare another one."
            )
        ACTION_CLASSES[kind] = cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read any action in a field of this class itself."""
        if cls.__base__ is not Value:
            return handler(source)
        return core_schema.no_info_plain_validator_function(_read_any)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe all actions in a field of this class itself."""
        if cls.__base__ is not Value:
            return handler(schema)
        return {
            "oneOf": [handler(known.__pydantic_core_schema__) for known in ACTION_CLASSES.values()]
        }

    @property
    def note(self) -> str | None:
        """The agent's words about this action, or None."""
        logs = self.logs if isinstance(self.logs, str) else clip_json(self.logs)
        return "\n".join(part for part in (self.reasoning, logs) if part) or None

    @property
    def is_aimless(self) -> bool:
        """Whether the action acts at the pointer, because it needs a place and names none."""
        return False

    @property
    def moves_pointer(self) -> bool:
        """Whether the action moves the pointer."""
        return False

    @property
    def mark(self) -> Mark | None:
        """The mark of the action on a picture, in the picture's pixels; None for no mark."""
        return None

    def words(self, names: Mapping[str, str]) -> str:
        """Describe the action, such as `click the button “Buy”`, by the names of refs."""
        del names
        beside = {"type", *Action.model_fields}
        given = self.model_dump(mode="json", exclude_none=True, exclude=beside)
        return f"{self.type} {clip_json(given) or ''}".rstrip()

    def scaled(self, scale: float) -> Self:
        """Return the action for a picture that is larger by this factor; scroll distances stay."""
        del scale
        return self

    def pointer_after(self, before: Point | None, reached: Point | None) -> Point | None:
        """Return the pointer's place after the action; None if unknown.

        Args:
            before: The pointer's place before, if known.
            reached: The place of the named element, if known.
        """
        return reached if self.moves_pointer else before


class Targeted(Action):
    """An action on one place: a point, a `ref` of the last text observation, or a selector."""

    point: Point | None = Field(default=None, description="Where, in screenshot pixels.")
    ref: str | None = Field(
        default=None, min_length=1, description="A ref of the last text, such as 'e12'."
    )
    selector: str | None = Field(
        default=None, min_length=1, description="A CSS or Playwright selector."
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        given = [n for n in ("point", "ref", "selector") if getattr(self, n) is not None]
        if len(given) > 1:
            raise ValueError(f"give one of point, ref and selector, not {' and '.join(given)}")
        return self

    @property
    def has_target(self) -> bool:
        """Whether the action names a place."""
        return any(place is not None for place in (self.point, self.ref, self.selector))

    @property
    def moves_pointer(self) -> bool:
        """Whether the action moves the pointer: only if it names a place."""
        return self.has_target

    @property
    def mark(self) -> Mark | None:
        """The mark: a spot at its place."""
        return Mark(point=self.point)

    def words(self, names: Mapping[str, str]) -> str:
        """Describe the action in words: its type and place."""
        return f"{self.type}{place_words(self, names)}"

    def scaled(self, scale: float) -> Self:
        """Return the action for a picture that is larger by this factor."""
        if self.point is None:
            return self
        return self.model_copy(update={"point": self.point.scaled(scale)})

    def pointer_after(self, before: Point | None, reached: Point | None) -> Point | None:
        """Return the pointer's place then: the point, or the named element's."""
        if not self.moves_pointer:
            return before
        return reached if self.point is None else self.point


CLA = Action
"""The HUD SDK's name: Common Language Action."""


class ActionEffect(Value):
    """The effect of one performed action, beyond what the next observation shows."""

    text: str | None = Field(default=None, description="A sentence for the agent, or None.")
    reward: float | None = Field(
        default=None, allow_inf_nan=False, description="A reward of this step alone, or None."
    )
    terminated: bool = Field(default=False, description="The episode reached its end.")
    truncated: bool = Field(default=False, description="The episode was cut off by a limit.")
    info: dict[str, Any] = Field(default_factory=dict, description="Further facts from the world.")
    place: Point | None = Field(
        default=None,
        description="Where the named element was, in CSS pixels; None if it was out of view.",
    )
    target: str | None = Field(
        default=None,
        description="The element that it hit, in the world's own form; only functions see it, "
        "agents do not.",
    )


def scale_action(action: Action, scale: float) -> Action:
    """Map an action's places from screenshot pixels to CSS pixels; scroll distances stay."""
    return action if scale == 1 else action.scaled(scale)


def place_words(
    action: Targeted, names: Mapping[str, str], *, point: str = "at ", other: str = ""
) -> str:
    """Return the place of an action in words, after a space; empty without a place.

    The elements behind refs have names. `point` and `other` are words before a point, or a ref or
    selector.
    """
    if action.point is not None:
        return f" {point}{action.point}"
    if action.ref is not None:
        return f" {other}{names.get(action.ref) or f'the element {action.ref}'}"
    return "" if action.selector is None else f" {other}{selector_words(action.selector)}"


def needs_target(kind: str) -> str:
    """Return the error for an action without a place, before the pointer was placed anywhere."""
    return f"{kind!r} needs x and y, a ref, or a selector"

"""The Common Language Actions, one typed value each, with all facts and the HUD SDK's names."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from hud_mcp.base.text import clip_json
from hud_mcp.values.action.action import ACTION_TYPES, Action, Mark, Point, Targeted, place_words
from hud_mcp.values.refs import quoted, said_alone, selector_words

MAX_WAIT_MS = 30_000
"""The longest `wait`: hosts give up on a call after about a minute."""

Button = Literal["left", "right", "middle", "back", "forward"]

_CLICKS = {1: "click", 2: "double-click", 3: "triple-click"}


def _button(given: Any) -> Any:
    """Read `wheel` as the middle button, as the HUD SDK's first releases spelled it."""
    return "middle" if given == "wheel" else given


def _while_holding(words: str, keys: tuple[str, ...] | None) -> str:
    return f"{words} while holding {_chord(keys)}" if keys else words


def _chord(keys: tuple[str, ...]) -> str:
    return "+".join(key if len(key) == 1 else key[:1].upper() + key[1:] for key in keys)


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
    def is_aimless(self) -> bool:
        """Whether the click names no place; it then clicks at the pointer's known place."""
        return not self.has_target

    @property
    def mark(self) -> Mark | None:
        """The mark of a click: its place, once for each click."""
        return Mark(point=self.point, clicks=self._clicks)

    def words(self, names: Mapping[str, str]) -> str:
        """Describe the click with its button and its count."""
        words = _CLICKS.get(self._clicks) or f"click {self._clicks} times"
        button = "" if self.button == "left" else f"{self.button}-"
        return _while_holding(f"{button}{words}{place_words(self, names)}", self.hold_keys)

    @property
    def _clicks(self) -> int:
        return 1 + len(self.pattern or ())


class PressAction(Action):
    """Press one key, or a chord: all keys go down in order and up in reverse order."""

    type: Literal["press"] = "press"
    keys: tuple[str, ...] = Field(min_length=1, max_length=16)

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe the press with its keys."""
        return f"press {_chord(self.keys)}"


class KeyDownAction(Action):
    """Hold keys down until a `keyup`."""

    type: Literal["keydown"] = "keydown"
    keys: tuple[str, ...] = Field(min_length=1, max_length=16)

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe it with its keys."""
        return f"hold {_chord(self.keys)} down"


class KeyUpAction(Action):
    """Release keys that a `keydown` holds."""

    type: Literal["keyup"] = "keyup"
    keys: tuple[str, ...] = Field(min_length=1, max_length=16)

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe it with its keys."""
        return f"let {_chord(self.keys)} go"


class TypeAction(Targeted):
    """Type text at the focus, or into the target, which it clicks and empties first."""

    type: Literal["type"] = "type"
    text: str = Field(description="What to type.")
    enter_after: bool | None = Field(default=False, description="Press Enter afterwards.")

    @property
    def moves_pointer(self) -> bool:
        """Whether it moves the pointer: never, because keys focus the element."""
        return self.point is not None

    @property
    def mark(self) -> Mark | None:
        """The mark: the text, at its place."""
        return Mark(point=self.point, typed=self.text)

    def words(self, names: Mapping[str, str]) -> str:
        """Describe it with its text."""
        then = ", then press Enter" if self.enter_after else ""
        if not self.text and self.has_target:
            return f"empty{place_words(self, names, point='the field at ')}{then}"
        return f"type “{self.text}”{place_words(self, names, other='into ')}{then}"


class ScrollAction(Targeted):
    """Turn the wheel, at the target or at the pointer."""

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

    @property
    def mark(self) -> Mark | None:
        """The mark: an arrow from its place."""
        return Mark(point=self.point, scroll=self.scroll)

    def words(self, names: Mapping[str, str]) -> str:
        """Describe it with its distance, down and up first."""
        far = self.scroll or Point(x=0, y=0)
        parts = [f"{'down' if far.y > 0 else 'up'} {_px(far.y)}"] if far.y or not far.x else []
        parts += [f"{'right' if far.x > 0 else 'left'} {_px(far.x)}"] if far.x else []
        words = f"scroll {' and '.join(parts)}{place_words(self, names, other='in ')}"
        return _while_holding(words, self.hold_keys)


class MoveAction(Targeted):
    """Move the pointer to a target, or by an offset."""

    type: Literal["move"] = "move"
    offset: Point | None = None

    @model_validator(mode="after")
    def _has_target(self) -> "MoveAction":
        if all(v is None for v in (self.point, self.ref, self.selector, self.offset)):
            raise ValueError("'move' needs x and y, a ref, a selector, or an offset")
        return self

    @property
    def moves_pointer(self) -> bool:
        """Whether it moves the pointer: always."""
        return True

    @property
    def mark(self) -> Mark | None:
        """The mark: a spot without a press."""
        return Mark(point=self.point, presses=False)

    def words(self, names: Mapping[str, str]) -> str:
        """Describe it with its target or distance."""
        if self.offset is not None:
            return f"move the pointer by {self.offset}"
        return f"move the pointer{place_words(self, names, point='to ', other='to ')}"

    def scaled(self, scale: float) -> Self:
        """Return the action for a picture larger by this factor; its offset is in pixels too."""
        moved = super().scaled(scale)
        if moved.offset is None:
            return moved
        return moved.model_copy(update={"offset": moved.offset.scaled(scale)})

    def pointer_after(self, before: Point | None, reached: Point | None) -> Point | None:
        """Return the pointer's place then; after an offset, only if it was known before."""
        by = self.offset
        if by is None:
            return super().pointer_after(before, reached)
        return None if before is None else Point(x=before.x + by.x, y=before.y + by.y)


class WaitAction(Action):
    """Wait; the world continues meanwhile."""

    type: Literal["wait"] = "wait"
    time: int = Field(ge=0, le=MAX_WAIT_MS, description="How long, ms.")

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe it in seconds."""
        return f"wait {_number(self.time / 1000)} s"


class DragAction(Action):
    """Press the left button at the first point, go along the path, let go at the last."""

    type: Literal["drag"] = "drag"
    path: tuple[Point, ...] = Field(min_length=2, max_length=500)
    pattern: tuple[Annotated[int, Field(ge=0, le=5000)], ...] | None = Field(
        default=None, description="Pauses between the points, ms; the last one repeats."
    )
    hold_keys: tuple[str, ...] | None = None

    @property
    def moves_pointer(self) -> bool:
        """Whether it moves the pointer: to the end of its path."""
        return True

    @property
    def mark(self) -> Mark | None:
        """The mark: its path."""
        return Mark(path=self.path)

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe it with both ends, and the number of points between them."""
        first, *between, last = self.path
        through = f" through {len(between)} more" if between else ""
        return _while_holding(f"drag from {first} to {last}{through}", self.hold_keys)

    def scaled(self, scale: float) -> Self:
        """Return the action for a picture that is larger by this factor."""
        return self.model_copy(update={"path": tuple(point.scaled(scale) for point in self.path)})

    def pointer_after(self, before: Point | None, reached: Point | None) -> Point | None:  # noqa: ARG002  # as all actions are asked
        """Return the pointer's place then: the last point."""
        return self.path[-1]


class ScreenshotFetch(Action):
    """Look, without doing anything."""

    type: Literal["screenshot"] = "screenshot"

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe the look."""
        return "take a screenshot"


class PositionFetch(Action):
    """Ask for the pointer's place."""

    type: Literal["position"] = "position"

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe the question."""
        return "ask where the pointer is"


class ResponseAction(Action):
    """Submit the final answer: the task ends and is graded."""

    type: Literal["response"] = "response"
    text: str = Field(description="The answer; JSON text if the task returns a type.")

    def words(self, names: Mapping[str, str]) -> str:  # noqa: ARG002  # as all actions are asked
        """Describe it with the answer."""
        return f"answer “{self.text}”" if self.text else "give an empty answer"


Response = ResponseAction
"""The HUD SDK's name at its top."""


class CustomAction(Action):
    """An own action of the environment."""

    type: Literal["custom"] = "custom"
    action: str = Field(min_length=1, description="Its name.")
    args: dict[str, Any] | None = Field(default=None, description="Its arguments.")

    def words(self, names: Mapping[str, str]) -> str:
        """Describe it with its name and arguments."""
        args = self.args or {}
        if self.action == "select_option" and isinstance(args.get("values"), list):
            return f"choose {_chosen(args, names)}"
        said = _SAID.get(self.action)
        if said is not None and args.keys() == set(_FIELD.findall(said)):
            return said.format(**args)
        return f"{self.action} {clip_json(args) or ''}".strip()


_SAID = {
    "goto": "go to {url}",
    "back": "go back",
    "forward": "go forward",
    "reload": "load the page again",
    "switch_tab": "go to tab {index}",
    "close_tab": "close the tab",
}
"""A browser's own actions in words: a record is told without its environment."""
_FIELD = re.compile(r"{(\w+)}")


def _chosen(args: Mapping[str, Any], names: Mapping[str, str]) -> str:
    ref, selector = args.get("ref"), args.get("selector")
    place = names.get(str(ref)) or f"the element {ref}" if ref else selector_words(str(selector))
    return f"{', '.join(quoted(str(each)) for each in args['values'])} in {said_alone(place)}"


INPUT_TYPES = frozenset(ACTION_TYPES) - {"response"}
"""The types of the Common Language Actions that a world performs; the session takes answers."""


def is_answer(recorded: Mapping[str, Any]) -> bool:
    """Whether a recorded action submits the answer."""
    return recorded.get("type") == "response"


def _px(distance: float) -> str:
    return f"{_number(abs(distance))} px"


def _number(value: float) -> str:
    return f"{round(value, 2):.12g}"

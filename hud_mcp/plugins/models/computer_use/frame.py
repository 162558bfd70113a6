"""The shared part of all adapters: scaled points, names of keys, and the wanted actions."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import orjson

from hud_mcp.errors import InvalidAction, clipped
from hud_mcp.values.action import (
    MAX_WAIT_MS,
    Action,
    KeyDownAction,
    KeyUpAction,
    Point,
    PressAction,
    WaitAction,
)
from hud_mcp.values.observation import Observation, Screenshot, crop_screenshot, resize_screenshot
from hud_mcp.values.refs import refs_in

NOTCH_PX = 100
"""The distance of one notch of a wheel, in CSS pixels, as in Chromium on most systems."""

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels of our picture."""

BUTTONS = {"left_click": "left", "right_click": "right", "middle_click": "middle"}
"""The names of clicks by button."""

CLICKS = {"double_click": (100,), "triple_click": (100, 100)}
"""The names of several clicks, and the pauses between them in ms."""

WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
"""The directions of a wheel."""

_MS = 1000

_NAMES = {
    "period": ".", "comma": ",", "minus": "-", "plus": "+", "equal": "=", "slash": "/",
    "backslash": "\\", "semicolon": ";", "apostrophe": "'", "grave": "`", "underscore": "_",
    "bracketleft": "[", "bracketright": "]", "kpenter": "enter", "superl": "winleft",
    "superr": "winright", "controll": "ctrlleft", "controlr": "ctrlright", "shiftl": "shiftleft",
    "shiftr": "shiftright", "altl": "altleft", "altr": "altright", "metal": "winleft",
    "prior": "pageup", "next": "pagedown",
}  # fmt: skip
"""X11's names of keys that are none of ours, in lower case and without underscores."""


@dataclass(frozen=True)
class Frame:
    """Two sizes of one screen: the size that a model knows, and the size of our pictures.

    Attributes:
        shown: Width and height that the model's points are in.
        screen: Width and height of our pictures, in whose pixels our actions are.
    """

    shown: tuple[float, float]
    screen: tuple[float, float]

    @classmethod
    def same(cls, width_px: int, height_px: int) -> "Frame":
        """Return the frame of a model that is shown our pictures as they are."""
        return cls((width_px, height_px), (width_px, height_px))

    def point(self, x: Any, y: Any) -> Point:
        """Return a point in pixels of our picture, or raise `InvalidAction` if it is outside."""
        numbers = isinstance(x, int | float) and isinstance(y, int | float)
        if not numbers or not (0 <= x <= self.shown[0] and 0 <= y <= self.shown[1]):
            raise InvalidAction(
                f"({x}, {y}) is not a point of a screen of {self.shown[0]:g} x "
                f"{self.shown[1]:g}. Nothing was done."
            )
        return Point(
            x=min(x * self.screen[0] / self.shown[0], self.screen[0] - 1),
            y=min(y * self.screen[1] / self.shown[1], self.screen[1] - 1),
        )

    def back(self, point: Point) -> tuple[int, int]:
        """Return the model's point for a point of our picture."""
        return (
            round(point.x * self.shown[0] / self.screen[0]),
            round(point.y * self.shown[1] / self.screen[1]),
        )

    def box(self, given: Any) -> Box:
        """Return a region in pixels of our picture, or raise `InvalidAction` if it is none."""
        corners = cast("Sequence[Any]", given) if isinstance(given, list | tuple) else ()
        if len(corners) != 4:  # noqa: PLR2004  # two points
            raise InvalidAction(f"A region is [x0, y0, x1, y1], not {clipped(corners)}.")
        first, last = self.point(*corners[:2]), self.point(*corners[2:])
        if last.x <= first.x or last.y <= first.y:
            raise InvalidAction(f"The region {clipped(corners)} has nothing in it.")
        return (first.x, first.y, last.x, last.y)


@dataclass(frozen=True)
class Wanted:
    """The effect of a model's action on a world.

    Attributes:
        actions: The actions to perform, in order; empty if the model only looks.
        shows: The part of the observation that the reply is to show.
        region: The part of the picture to show, larger; None for all of it.
        query: The words to look for in the text; None for all of the text.
        asks: The provider's words about what a person has to agree to first; None for nothing.
    """

    actions: tuple[Action, ...] = ()
    shows: Literal["done", "picture", "text", "pointer", "tabs"] = "done"
    region: Box | None = None
    query: str | None = None
    asks: str | None = None


Json = dict[str, Any]

STAND_IN = "computer"
"""The function that stands for the tool in a job: to the models' library it is a function.

Its description is the tool as its provider names it. `send` puts that in its place, and `receive`
makes functions of the reply.
"""


@dataclass(frozen=True)
class Computer:
    """The computer tool of one provider, by the functions that a model calls.

    `send` and `receive` rewrite bodies on the wire. `resizes` gives pictures the size that points
    are in. `failures` is the content of a refused call's reply.
    """

    names: frozenset[str]
    frame: Callable[[int, int], Frame]
    tool: Callable[[Frame], Json]
    read: Callable[[str, Mapping[str, Any], Frame], Wanted]
    send: Callable[[Json], Json]
    receive: Callable[[Json], Json] | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    resizes: bool = True
    failures: Literal["text", "picture"] = "picture"


def put_tool(body: Json) -> None:
    """Put the tool where its function stands."""
    body["tools"] = [
        orjson.loads(tool["description"]) if tool.get("name") == STAND_IN else tool
        for tool in body.get("tools", ())
    ]


def objects_in(given: Any) -> list[Json]:
    """Return the objects of a list; none for anything else."""
    items = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def key_names(chord: str) -> tuple[str, ...]:
    """Return the keys of a chord such as `ctrl+Page_Down`, by our names."""
    stem = chord.removesuffix("++")
    parts = [part for part in stem.split("+") if part] + (["+"] if stem != chord else [])
    if not parts:
        parts = ["+"] if chord else []
    return tuple(_key(part.strip()) for part in parts)


def _key(name: str) -> str:
    if len(name) == 1:
        return name
    plain = name.lower().replace("_", "").replace(" ", "")
    return _NAMES.get(plain, plain)


def press(chord: Any, times: Any = 1) -> tuple[Action, ...]:
    """Press a chord, at most fifty times, or raise `InvalidAction` if it names no key."""
    keys = key_names(chord) if isinstance(chord, str) else ()
    if not keys or not isinstance(times, int) or not 1 <= times <= 50:  # noqa: PLR2004  # a step's
        raise InvalidAction(f"{clipped(chord)}, {clipped(times)} times, is not a key to press.")
    return (PressAction(keys=keys),) * times


def hold(chord: Any, seconds: Any) -> tuple[Action, ...]:
    """Hold a chord down for a while, or raise `InvalidAction` if it names no key or no time."""
    keys = key_names(chord) if isinstance(chord, str) else ()
    if not keys:
        raise InvalidAction(f"{clipped(chord)} is not a key to hold.")
    return (KeyDownAction(keys=keys), *pause(seconds), KeyUpAction(keys=keys))


def pause(seconds: Any) -> tuple[Action, ...]:
    """Return the waits for at most five minutes, or raise `InvalidAction`; one wait is short."""
    if not isinstance(seconds, int | float) or not 0 <= seconds <= 300:  # noqa: PLR2004  # 5 minutes
        raise InvalidAction(f"{clipped(seconds)} is not a number of seconds to wait.")
    left, waits = round(seconds * _MS), list[Action]()
    while left > 0:
        waits.append(WaitAction(time=min(left, MAX_WAIT_MS)))
        left -= MAX_WAIT_MS
    return tuple(waits)


def take(given: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """Return a field that an action must have, or raise `InvalidAction`."""
    value = given.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidAction(f"{name}: {clipped(value)} does not fit the action.")
    return value


def picture(observation: Observation, frame: Frame, wanted: Wanted) -> Screenshot | None:
    """Return an observation's picture in the size that the model knows; None if it has none."""
    shot = observation.image
    if shot is None:
        return None
    if wanted.region is not None:
        shot = crop_screenshot(shot, wanted.region)
        larger = min(frame.screen[0] / shot.width_px, frame.screen[1] / shot.height_px)
        return resize_screenshot(
            shot, round(shot.width_px * larger), round(shot.height_px * larger)
        )
    wide, high = round(frame.shown[0]), round(frame.shown[1])
    return (
        shot
        if (shot.width_px, shot.height_px) == (wide, high)
        else resize_screenshot(shot, wide, high)
    )


_POINTER = re.compile(r"The pointer is at \((-?[\d.]+), (-?[\d.]+)\)")
_MOST_LINES = 20


def block_of(shot: Screenshot) -> dict[str, Any]:
    """Return a picture as Anthropic's content block."""
    source = {"type": "base64", "media_type": shot.mime_type, "data": shot.as_base64()}
    return {"type": "image", "source": source}


def data_url(shot: Screenshot) -> str:
    """Return a picture as a data URL."""
    return f"data:{shot.mime_type};base64,{shot.as_base64()}"


def pointer_in(observation: Observation) -> Point | None:
    """Return the pointer's place that a text names, in pixels of our picture; else None."""
    found = _POINTER.search(observation.text or "")
    return Point(x=float(found[1]), y=float(found[2])) if found else None


def matching_lines(text: str, query: str) -> str:
    """Return the lines of a text with refs that have a word of a query, the most words first."""
    words = set(re.findall(r"\w+", query.lower()))
    scored = [
        (len(words & set(re.findall(r"\w+", line.lower()))), line.strip())
        for line in text.splitlines()
        if refs_in(line)
    ]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
    return "\n".join(line for _, line in best[:_MOST_LINES]) or f"Nothing matches {query!r}."

"""`openpi/0` as a screen: a robot behind a HUD server, moved by `step` and seen by its sensors."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from hud_mcp.base import libraries
from hud_mcp.base.text import clip_text
from hud_mcp.environment.spec import Shared
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.plugins.hud.wire.openpi import Seen, claim, is_installed
from hud_mcp.values.action import Action, ActionEffect, CustomAction, ScreenshotFetch
from hud_mcp.values.observation import DEFAULT_FORMAT, Look, Observation, Screenshot, encode_picture

if TYPE_CHECKING:
    from numpy.typing import NDArray


ROBOT_ACTIONS = frozenset({"custom", "screenshot"})

_MOST_MOVES = 10_000
"""The most actions in one call; the session bounds its time."""
_MOST_NUMBERS = 64
"""The longest array that is listed; a longer one is only described."""
_MOST_EDGE_PX = 4096
_COLOURS = (1, 3, 4)
_IMAGE_RANK = 3
_DIGITS = 4


@dataclass(frozen=True)
class Contract:
    """A robot's description of its actions and observations.

    Attributes:
        names: The names of the numbers in an action, in order.
        low: The least value of each number; None if unknown.
        high: The greatest value of each number; None if unknown.
        parts: The names of the numbers in each observation, by its name.
        has_cameras: Whether an observation is a picture.
        about: One sentence about the robot.
    """

    names: tuple[str, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    parts: Mapping[str, tuple[str, ...]]
    has_cameras: bool
    about: str

    @property
    def action(self) -> str:
        """A description of an action for agents."""
        said = [
            name
            if self.low is None or self.high is None
            else f"{name} ({self.low[i]:g} to {self.high[i]:g})"
            for i, name in enumerate(self.names)
        ]
        return f"{len(self.names)} numbers: {', '.join(said)}."

    @property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """The JSON schema of the arguments of `custom`."""
        one = {"type": "array", "items": {"type": "number"}, "minItems": len(self.names)}
        return {
            "step": {
                "type": "object",
                "description": "Move the robot; give `action` or `actions`. A list stops at the "
                "end of the episode.",
                "properties": {
                    "action": {**one, "description": self.action},
                    "actions": {
                        "type": "array",
                        "items": one,
                        "minItems": 1,
                        "description": "Several, in order, in one call.",
                    },
                    "repeat": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "How often; once by default.",
                    },
                },
                "additionalProperties": False,
            }
        }

    def read(self, raw: Any, where: str) -> list[float]:
        """Read one action; ActionFailed says that it is of the wrong kind, or out of bounds."""
        given = cast("list[Any]", raw) if isinstance(raw, list) else None
        if given is None or len(given) != len(self.names):
            got = f"{len(given)} of them" if given is not None else f"{raw!r:.80}"
            raise ActionFailed(f"{where}: expected {self.action} Got {got}.")
        for i, value in enumerate(given):
            name = self.names[i]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value):
                raise ActionFailed(f"{where}: {name} should be a number, got {value!r:.80}.")
            if self.low is not None and value < self.low[i]:
                raise ActionFailed(f"{where}: {name} is {value:g}; it is {self.low[i]:g} or more.")
            if self.high is not None and value > self.high[i]:
                raise ActionFailed(f"{where}: {name} is {value:g}; it is {self.high[i]:g} or less.")
        return [float(value) for value in given]


def robot_problem(binding: Mapping[str, Any]) -> str | None:
    """Return the reason why an `openpi/0` capability cannot be bridged, or None."""
    scheme = urlsplit(str(binding.get("url"))).scheme
    if scheme != "ws":
        return f"{scheme} cannot be carried through the control channel; ws can"
    if not is_installed():
        return "it needs `pip install hud-mcp[robot]`"
    try:
        read_contract(binding["params"].get("contract"))
    except ValueError as exc:
        return str(exc)
    return None


def read_contract(given: Any) -> Contract:
    """Read a robot's contract, or raise ValueError if it does not describe an action."""
    contract = _object(given)
    features = {name: _object(each) for name, each in _object(contract.get("features")).items()}
    actions = [each for each in features.values() if each.get("role") == "action"]
    if len(actions) != 1:
        raise ValueError(f"its contract declares {len(actions)} action features")
    names = _names(actions[0], "action")
    if not names:
        raise ValueError("its contract does not say how many numbers an action has")
    limits = _object(actions[0].get("limits"))
    seen = {name: each for name, each in features.items() if each.get("role") == "observation"}
    rate, kind = contract.get("control_rate"), contract.get("robot_type")
    about = f"A robot ({kind})." if kind else "A robot."
    if isinstance(rate, int | float) and rate > 0:
        about += f" {rate:g} actions take a second of its time; it waits while you think."
    return Contract(
        names,
        _bounds(limits.get("min"), len(names)),
        _bounds(limits.get("max"), len(names)),
        {name: _names(each, name) for name, each in seen.items()},
        any(each.get("type") == "rgb" for each in seen.values()),
        about,
    )


class RobotScreen(World):
    """A robot behind a HUD server. Made by `open`."""

    def __init__(self, url: str, token: str | None, contract: Contract) -> None:
        self._url = url
        self._token = token
        self._contract = contract
        self._closed = False
        self._fresh: Seen | None = None
        self._is_over = False

    @classmethod
    async def open(
        cls, address: tuple[str, int], binding: Mapping[str, Any], _shared: Shared
    ) -> "RobotScreen":
        """Prepare the address of the robot; each call connects anew."""
        parts = urlsplit(str(binding["url"]))
        token = binding["params"].get("token")
        return cls(
            urlunsplit(parts._replace(netloc="{}:{}".format(*address))),
            str(token) if token else None,
            read_contract(binding["params"].get("contract")),
        )

    @property
    def is_open(self) -> bool:
        """Whether it can be reached from here."""
        return not self._closed

    async def act(self, action: Action) -> ActionEffect:
        """Send actions to the robot, one after the other, until the episode ends.

        Raises:
            ActionFailed: They are of the wrong kind, or out of bounds, or the episode is over. The
                robot did not move.
            EnvironmentFailed: Its server reports an error.

        If this call is cancelled, the running action is the last.
        """
        self._fresh = None
        if isinstance(action, ScreenshotFetch):
            return ActionEffect()
        if not isinstance(action, CustomAction) or action.action != "step":
            what = action.action if isinstance(action, CustomAction) else action.type
            raise ActionFailed(
                f"There is nothing to {what!r} here.{did_you_mean(what, ['step'])} {self._how()}"
            )
        plan = self._plan(dict(action.args or {}))
        if self._is_over:
            raise ActionFailed(_OVER)
        rewards: list[float] = []
        done = 0
        async with claim(self._url, self._token) as wire:
            seen = wire.seen
            while done < len(plan) and not seen.is_over:
                seen = await wire.move(plan[done])
                done += 1
                rewards += [] if seen.reward is None else [seen.reward]
        self._fresh, self._is_over = seen, seen.is_over
        if not done:
            raise ActionFailed(_OVER)
        left = len(plan) - done
        return ActionEffect(
            text=f"{left} more actions of the list were not performed." if left else None,
            reward=sum(rewards) if rewards else None,
            terminated=seen.is_over,
        )

    async def observe(self, look: Look) -> Observation:
        """Return the sensors' values as text and picture.

        EnvironmentFailed has a server's error.
        """
        seen, self._fresh = self._fresh, None
        if seen is None:
            async with claim(self._url, self._token) as wire:
                seen = wire.seen
        self._is_over = seen.is_over
        cameras = {name: array for name, array in seen.data.items() if _is_picture(array)}
        text = None
        if look.text:
            text = clip_text("\n".join(self._words(seen, list(cameras))), look.max_text_chars)
        image = None if look.image is None else _picture(cameras, look)
        return Observation(text=text, image=image)

    async def close(self) -> None:
        """Leave the robot unchanged. It may be called twice."""
        self._closed = True

    def _plan(self, args: Mapping[str, Any]) -> list[list[float]]:
        known = ("action", "actions", "repeat")
        for name in args:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ActionFailed(f"args: there is no {name!r}.{hint} {self._how()}")
        if ("action" in args) == ("actions" in args):
            raise ActionFailed(f"args: give one of `action` and `actions`. {self._how()}")
        if "action" in args:
            once = [self._contract.read(args["action"], "action")]
        elif isinstance(args["actions"], list):
            given = cast("list[Any]", args["actions"])
            once = [self._contract.read(each, f"actions[{i}]") for i, each in enumerate(given)]
        else:
            raise ActionFailed(f"actions: expected a list of actions. {self._how()}")
        repeat = args.get("repeat", 1)
        if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
            raise ActionFailed(f"repeat: expected a whole number from 1, got {repeat!r:.80}.")
        count = len(once) * repeat
        if not 1 <= count <= _MOST_MOVES:
            raise ActionFailed(
                f"{count} actions were given; give at least one, and at most {_MOST_MOVES}."
            )
        return once * repeat

    def _how(self) -> str:
        example = f'"args": {{"action": {[0] * len(self._contract.names)}}}'
        return (
            f'Send {{"type": "custom", "action": "step", {example}}}, or "actions" with a list, '
            f"and `repeat`. An action is {self._contract.action}"
        )

    def _words(self, seen: Seen, cameras: Sequence[str]) -> Iterator[str]:
        yield _OVER if seen.is_over else self._contract.about
        for name, array in seen.data.items():
            if name not in cameras:
                yield f"{name}: {_values(array, self._contract.parts.get(name, ()))}"
        if cameras:
            yield f"Cameras, in the picture from left to right: {', '.join(cameras)}."
        if not seen.is_over:
            yield self._how()


_OVER = "The episode has ended: nothing moves any more. Send your answer."


def _object(given: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _names(feature: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the names of its numbers; without names, their positions."""
    shape: Any = feature.get("shape")
    count = 0
    if isinstance(shape, list | tuple) and all(isinstance(n, int) for n in cast("Any", shape)):
        count = math.prod(cast("Sequence[int]", shape)) if shape else 1
    names: Any = feature.get("names")
    given = tuple(map(str, cast("list[Any]", names))) if isinstance(names, list) else ()
    if given and count in (0, len(given)):
        return given
    return tuple(f"{name}_{i}" for i in range(count)) if count <= _MOST_NUMBERS else ()


def _bounds(given: Any, count: int) -> tuple[float, ...] | None:
    values = cast("list[Any]", given) if isinstance(given, list) else []
    if len(values) != count or not all(isinstance(value, int | float) for value in values):
        return None
    return tuple(float(value) for value in values)


def _is_picture(array: "NDArray[Any]") -> bool:
    return (
        array.ndim == _IMAGE_RANK
        and array.shape[-1] in _COLOURS
        and array.dtype == "uint8"
        and 0 < max(array.shape[:2]) <= _MOST_EDGE_PX
        and min(array.shape[:2]) > 0
    )


def _values(array: "NDArray[Any]", names: Sequence[str]) -> str:
    if array.size > _MOST_NUMBERS:
        return f"{' x '.join(map(str, array.shape))} numbers, not listed"
    values = [f"{float(value):.{_DIGITS}g}" for value in array.reshape(-1)]
    if len(names) == len(values):
        values = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
    return ", ".join(values) or "none"


def _picture(cameras: "Mapping[str, NDArray[Any]]", look: Look) -> Screenshot | None:
    shots: list[libraries.Image.Image] = []
    for array in cameras.values():
        flat = array[..., 0] if array.shape[-1] == 1 else array
        shots.append(libraries.Image.fromarray(flat).convert("RGB"))
    if not shots:
        return None
    whole = libraries.Image.new("RGB", (sum(s.width for s in shots), max(s.height for s in shots)))
    left = 0
    for shot in shots:
        whole.paste(shot, (left, 0))
        left += shot.width
    return encode_picture(whole, look.image or DEFAULT_FORMAT, quality=look.quality)

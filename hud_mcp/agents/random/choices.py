"""What can be done in an environment, each with a way to draw one at random."""

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from hud_mcp.agents.random.sampling import WORDS, sample
from hud_mcp.environment import Environment
from hud_mcp.registry import service
from hud_mcp.values.action import ACTION_CLASSES

__all__ = ["Choice", "action_choices"]

Choice = Callable[[Random, str], dict[str, Any]]
"""Draws an action as JSON, by what the world showed last."""

_REF = re.compile(r"\[ref=(\w+)\]")
_KEYS = ("enter", "tab", "escape", "space", "up", "down", "left", "right")
_WIDTH_PX, _HEIGHT_PX = 1280, 720
_LONGEST_MS = 200
_LEFT_OUT = frozenset({"response", "custom", "keydown", "keyup", "position", "screenshot", "wait"})
"""Of the action types: what ends the task, what is drawn by its own schema, and what is idle."""
_UNUSED = frozenset({"type", "reasoning", "logs", "selector", "hold_keys", "pattern"})


def action_choices(environment: Environment) -> list[Choice]:
    """What an agent may do there; of a Gymnasium environment, its space's steps and no more."""
    world = environment.world
    described = world.spaces
    if described is not None and "step" in world.custom_actions:
        return [_space_choice(described["action"])]
    kinds = sorted(world.actions - _LEFT_OUT)
    found: list[Choice] = [_typed_choice(kind) for kind in kinds if kind in ACTION_CLASSES]
    return found + [_custom_choice(name, s) for name, s in sorted(world.custom_actions.items())]


def _space_choice(described: Mapping[str, Any]) -> Choice:
    space = service("space from JSON")(described)
    seeded: list[int] = []

    def draw(random: Random, _text: str) -> dict[str, Any]:
        if not seeded:
            seeded.append(random.getrandbits(31))
            space.seed(seeded[0])
        return {"type": "custom", "action": "step", "args": {"action": _plain(space.sample())}}

    return draw


def _plain(value: Any) -> Any:
    """A drawn value as agents send it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # Gymnasium's
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]  # the same
    return value.tolist() if hasattr(value, "tolist") else value


def _custom_choice(name: str, schema: Mapping[str, Any]) -> Choice:
    def draw(random: Random, text: str) -> dict[str, Any]:
        args = _aimed(sample(schema, random), random, text)
        return {"type": "custom", "action": name, "args": args}

    return draw


def _typed_choice(kind: str) -> Choice:
    schema = ACTION_CLASSES[kind].model_json_schema()
    parts = {k: v for k, v in schema["properties"].items() if k not in _UNUSED}
    whole = {**schema, "properties": parts, "required": list(parts)}

    def draw(random: Random, text: str) -> dict[str, Any]:
        made: dict[str, Any] = sample(whole, random)
        for name, value in made.items():
            if name == "keys":
                made[name] = [random.choice(_KEYS)]
            elif name in ("point", "offset", "scroll"):
                made[name] = _point(random)
            elif name == "path":
                made[name] = [_point(random), _point(random)]
            elif name == "time":
                made[name] = random.randint(0, _LONGEST_MS)
            elif name == "text":
                made[name] = value or random.choice(WORDS)
        return {"type": kind, **_aimed(made, random, text)}

    return draw


def _point(random: Random) -> dict[str, int]:
    return {"x": random.randrange(_WIDTH_PX), "y": random.randrange(_HEIGHT_PX)}


def _aimed(made: dict[str, Any], random: Random, text: str) -> dict[str, Any]:
    """The same with one target: something of the last text where that names anything."""
    refs = _REF.findall(text)
    if "ref" in made:
        made["ref"] = random.choice(refs) if refs else None
        if refs:
            made.pop("point", None)
    return {name: value for name, value in made.items() if value is not None}

"""Making environments without what disturbs a server: greetings, displays, and a crash."""

import os
import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

__all__ = ["load_box2d", "make_quietly", "render_modes"]


def make_quietly(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """`gymnasium.make`, without its checker, where drawing needs no display and greets nobody.

    The checker compares with spaces that contexts widen.
    """
    # Read when pygame and SDL load: standard output may be a protocol's.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if kwargs.get("render_mode") != "human" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    kwargs.setdefault("disable_env_checker", True)
    _load_first(env_id)
    made: gymnasium.Env[Any, Any] = gymnasium.make(env_id, **kwargs)
    return made


def render_modes(env_id: str) -> list[str]:
    """How an environment can be drawn, as far as its class says so."""
    _load_first(env_id)
    spec = gymnasium.registry.get(env_id)
    creator: Any = None if spec is None else spec.entry_point
    if isinstance(creator, str):
        creator = load_env_creator(creator)
    metadata: dict[str, Any] = getattr(creator, "metadata", {})
    return list(metadata.get("render_modes", ()))


def _load_first(env_id: str) -> None:
    spec = gymnasium.registry.get(env_id)
    if spec is not None and "box2d" in str(spec.entry_point) and "Box2D" not in sys.modules:
        load_box2d(str(spec.entry_point).partition(":")[0].rpartition(".")[2])


def load_box2d(name: str) -> ModuleType:
    """Load one of Gymnasium's modules over Box2D.

    Where warnings are errors, Box2D's own three on being loaded end the process.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(f"gymnasium.envs.box2d.{name}")

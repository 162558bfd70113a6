"""Any installed Gymnasium environment, as `gym:ID?options` names it.

    gym:CartPole-v1
    gym:CARLCartPole?context=train
    gym:MiniGrid-DoorKey-5x5-v0?screen=0
    gym:FrozenLake-v1?is_slippery=false&steps=50

The environment is named by its id, with `-` for `/`: rows of a taskset say `"env": "CartPole-v1"`.
Its templates are those of `gym_tasks`; agents see the reward of each step. The options:

- `context`: of a `CARL…` environment, which contexts tasks get that bind none: `default`;
  `train`, `test` or `test-outside`, twenty of each, in turn; or a JSON file with contexts, by their
  names or in a list. A task that names a seed gets the context at the place of its seed.
- `seed`: of tasks that bind none; drawn for each by default.
- `steps`: how many an episode has at most; the environment's own limit by default.
- `screen`: 1, or 0 for no pictures, which take most of the time of a call; `asked` for those
  alone that the tool `screenshot` asks for.
- anything else that the environment itself takes when it is made.
"""

import json
import re
from collections.abc import Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import gymnasium
from gym_contexts import contexts_of
from gym_tasks import add_templates
from gymnasium.envs.registration import load_env_creator

from hud_mcp import Environment, Gymnasium, carl

SCREENS = {"0": False, "1": True, "asked": "asked"}


def option_names(env_id: str) -> list[str]:
    """Every option that `gym:ID` takes.

    Raises:
        InvalidEnvironment: There is no such environment, or something is not installed.
    """
    Gymnasium(env_id).check(Path())
    kinds = load_env_creator_of(base_id(env_id)).__mro__
    taken = {p.name for kind in kinds for p in own_parameters(kind)}
    return ["context", "seed", "steps", "screen", *sorted(taken - {"self", "render_mode"})]


def make(env_id: str, options: Mapping[str, str]) -> Environment:
    """Declare one environment.

    Raises:
        ValueError: An option is of the wrong kind.
        InvalidEnvironment: There is no such environment, or it cannot be made so.
    """
    own = {k: v for k, v in options.items() if k not in ("context", "seed", "steps", "screen")}
    steps = whole(options, "steps", least=1)
    world = Gymnasium(
        env_id,
        options={name: read(value) for name, value in own.items()},
        max_episode_steps=steps,
        screen=chosen_screen(options.get("screen", "1")),
    )
    world.check(Path())
    environment = Environment(
        name_of(env_id),
        version=gymnasium.__version__,
        world=world,
        reward="per_step",
        context_selector=contexts_of(env_id, options.get("context", "default")),
        seed=whole(options, "seed"),
    )
    add_templates(environment, gymnasium.spec(base_id(env_id)), world.most_steps)
    return environment


def name_of(env_id: str) -> str:
    """What an environment is called: its id, without the module that registers it."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", env_id.rpartition(":")[2])[:64]


def base_id(env_id: str) -> str:
    """The id in the registry: of a contextual environment, of the one that it wraps."""
    if env_id in carl.ENVIRONMENTS:
        return getattr(carl, env_id).env_name
    return env_id.rpartition(":")[2]


def load_env_creator_of(env_id: str) -> Any:
    """The class that an id stands for."""
    creator = gymnasium.spec(env_id).entry_point
    creator = load_env_creator(creator) if isinstance(creator, str) else creator
    return creator if isinstance(creator, type) else type(creator)


def own_parameters(kind: type) -> list[Parameter]:
    """What a class takes when an object of it is made, as far as it says so."""
    if "__init__" not in vars(kind) or kind is object:
        return []
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return [p for p in signature(kind.__init__).parameters.values() if p.kind in named]


def whole(options: Mapping[str, str], name: str, least: int = 0) -> int | None:
    """A whole number among the options."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name}={text}: expected a whole number from {least}.")
    return int(text)


def chosen_screen(text: str) -> Any:
    """Whether there are pictures."""
    if text not in SCREENS:
        raise ValueError(f"screen={text}: expected one of {', '.join(SCREENS)}.")
    return SCREENS[text]


def read(text: str) -> Any:
    """A value as JSON, or the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text

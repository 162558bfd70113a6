"""The declaration of a Gymnasium environment as a world."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.errors import EnvironmentFailed, HudMcpError, InvalidEnvironment
from hud_mcp.plugins.gymnasium import carl, libraries
from hud_mcp.plugins.gymnasium.actions import ActionForm
from hud_mcp.plugins.gymnasium.carl.gym_setup import (
    explained,
    is_mujoco,
    make_quietly,
    render_modes,
    unknown,
)
from hud_mcp.plugins.gymnasium.known import known, most_steps
from hud_mcp.plugins.gymnasium.opengl import choose_opengl, load_mujoco
from hud_mcp.plugins.gymnasium.spaces import spaces_to_json
from hud_mcp.plugins.gymnasium.thread import Episode, OwnThread, close_env, drawing, is_small
from hud_mcp.plugins.gymnasium.world import GymnasiumWorld, Probe
from hud_mcp.values.context import ContextFeature, ContextSpace
from hud_mcp.values.needs import Needs

__all__ = ["Gymnasium"]

logger = logging.getLogger(__name__)

_REGISTERED_BY = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}
"""Packages that register their environments when they are loaded, by the ids' beginnings."""

_warned: set[tuple[str, str]] = set()
"""The warnings that this process gave once: an environment without pictures, and the reason."""

_FORGETFUL = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
"""Wrappers of Gymnasium that `make` adds, and that a reset makes as new."""

_MOST_IDLE = 8
"""The most environments that wait for a later session."""


class Gymnasium(WorldSpec):
    """The declaration that an environment's world is a Gymnasium environment.

    Args:
        id: An id of Gymnasium's registry, `module:id`, or a contextual environment of
            `hud_mcp.carl` (`CARLCartPole`), whose features then are the world's.
        options: Arguments of `gymnasium.make`.
        attributes: Features of any other environment: from each to the attribute that it sets,
            as for `hud_mcp.plugins.gymnasium.carl.CARLAttributesEnv`.
        features: The features' defaults and bounds, if not those of the environment.
        derived: Attributes that follow from the features, as for that class.
        obs_context_features: The features that the agent sees; all by default, none with `()`.
        numbers: Name and unit of each number of the observation, if they are not known.
        actions: The names of the actions, if they are not known.
        max_episode_steps: The limit of an episode, instead of the environment's own.
        screen: Whether there are pictures. `"asked"` draws only for a look at the picture alone,
            which the tool `screenshot` takes; the record of other calls then has no picture.
            To draw and encode one takes longer than hundreds of small environments' steps.
        quick: Whether its steps are short and pure: they wait for nothing, and use nothing that
            belongs to one thread. The event loop then takes them, beside those of other
            sessions, until they prove long. By default Gymnasium's classic control and toy text
            are quick.

    Raises:
        InvalidEnvironment: An option cannot work.
    """

    name = "gymnasium"
    needs = Needs(cpus=0.25, memory_mb=128)
    world_type = GymnasiumWorld
    actions = frozenset({"custom", "screenshot"})
    is_destructive = False
    open_world = False
    text_form = 2
    endpoints = ("openpi/0",)

    def __init__(
        self,
        id: str,  # noqa: A002  # Gymnasium's name
        *,
        options: Mapping[str, Any] | None = None,
        attributes: Mapping[str, str] | None = None,
        features: Iterable[ContextFeature] = (),
        derived: Mapping[str, Callable[[Any], Any]] | None = None,
        obs_context_features: Iterable[str] | None = None,
        numbers: Sequence[tuple[str, str]] = (),
        actions: Sequence[str] = (),
        max_episode_steps: int | None = None,
        screen: bool | Literal["asked"] = True,
        quick: bool | None = None,
    ) -> None:
        self.id = id
        self._options = dict(options or {})
        if max_episode_steps is not None:
            self._options["max_episode_steps"] = max_episode_steps
        self._attributes = dict(attributes or {})
        self._features = tuple(features)
        self._derived = dict(derived or {})
        self._shown = None if obs_context_features is None else list(obs_context_features)
        self._numbers = tuple(numbers)
        self._meanings = tuple(actions)
        self._screen = bool(screen)
        self._draws_asked = screen == "asked"
        self._quick = quick
        self._screen_fault: str | None = None
        self._idle: list[tuple[Any, OwnThread]] = []
        self._is_contextual = id.startswith("CARL")
        if self._is_contextual and attributes:
            raise InvalidEnvironment(
                f"Gymnasium({id!r}) has its own features; declare `attributes` on the environment "
                "that it wraps, or leave them out."
            )
        if self._features and not attributes:
            raise InvalidEnvironment(
                "Gymnasium: `features` describe `attributes`, and there are no `attributes`."
            )

    @cached_property
    def has_screen(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """Whether the environment can be drawn."""
        return self._probe.draws

    @property
    def replayable(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """Whether the same context, seed and actions give the same state again."""
        return self._probe.replayable

    @property
    def is_quick(self) -> bool:
        """Whether its steps are short and pure, as it was declared, or by whose they are."""
        return self._probe.is_quick if self._quick is None else self._quick

    @property
    def context_space(self) -> ContextSpace:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The features of a contextual environment, or those that were declared."""
        if not self._is_contextual and not self._attributes:
            return ContextSpace()
        return self._probe.context_space

    @property
    def action_schema(self) -> dict[str, Any]:
        """The JSON schema of one action."""
        return self._probe.form.schema

    @property
    def most_steps(self) -> int | None:
        """The most steps of an episode; None if no limit is known."""
        return self._probe.most_steps

    @property
    def spaces(self) -> dict[str, Any] | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The spaces of actions and observations as JSON; None without a JSON form."""
        return self._probe.spaces

    @cached_property
    def custom_actions(self) -> dict[str, dict[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The actions of `custom`: from a name to the JSON schema of its arguments."""
        one = self.action_schema
        repeat = {"type": "integer", "minimum": 1, "description": "How often; once by default."}
        return {
            "step": {
                "type": "object",
                "description": "Take steps, by `action` or `actions`. A list stops as the "
                "episode ends.",
                "properties": {
                    "action": one,
                    "actions": {
                        "type": "array",
                        "items": {k: v for k, v in one.items() if k != "description"},
                        "minItems": 1,
                        "description": "Several, in order.",
                    },
                    "repeat": repeat,
                },
                "additionalProperties": False,
            }
        }

    def check(self, folder: Path) -> None:
        """Make the environment once; raise `InvalidEnvironment` with the reason if that fails."""
        del folder
        _ = self._probe

    async def open(self, opening: Opening) -> GymnasiumWorld:
        """Make and reset the environment on its own thread, or raise `EnvironmentFailed`.

        If this call fails or is cancelled, the environment is closed once it is made.
        """
        if (again := self._begin_again(opening)) is not None:
            return again
        thread = OwnThread(f"gymnasium {self.id}")
        made: list[Any] = []

        def begin() -> tuple[Probe, Episode]:
            probe = self._probe
            with drawing:
                made.append(self._make(dict(opening.context)))
                seen, info = made[0].reset(seed=_seed(opening.seed))
            return probe, Episode(seen, info)

        try:
            probe, episode = await thread.do(begin)
        except BaseException as exc:
            thread.leave(lambda: [close_env(env) for env in made])
            if isinstance(exc, HudMcpError) and not isinstance(exc, EnvironmentFailed):
                raise EnvironmentFailed(str(exc)) from exc
            if isinstance(exc, Exception):
                raise EnvironmentFailed(
                    f"{self.id} cannot be opened: {type(exc).__name__}: {exc}"
                ) from exc
            raise
        return self._world(made[0], thread, probe, episode)

    def _begin_again(self, opening: Opening) -> GymnasiumWorld | None:
        """Return the world of an earlier session's environment, reset; None if none waits."""
        if not self._idle:
            return None
        env, thread = self._idle.pop()
        try:
            seen, info = env.reset(seed=_seed(opening.seed))
        except Exception:  # noqa: BLE001  # whatever is wrong with it, another one is made
            thread.leave(lambda: close_env(env))
            return None
        return self._world(env, thread, self._probe, Episode(seen, info))

    def _keep(self, env: Any, thread: OwnThread) -> bool:
        """Keep a small environment of Gymnasium's, which a reset and a seed make as new."""
        probe = self._probe
        is_plain = probe.is_quick and not (probe.draws or self._is_contextual or self._attributes)
        if not is_plain or not _begins_anew(env) or len(self._idle) >= _MOST_IDLE:
            return False
        self._idle.append((env, thread))
        return True

    def _world(self, env: Any, thread: OwnThread, probe: Probe, episode: Episode) -> GymnasiumWorld:
        return GymnasiumWorld(
            env,
            thread,
            probe,
            episode,
            draws_asked=self._draws_asked,
            is_quick=self.is_quick and not probe.draws_steps,
            keep=self._keep,
        )

    @cached_property
    def _probe(self) -> Probe:
        """Make an environment once, look at it, and close it."""
        with drawing, explained(self.id):
            env: Any = self._make({})
            try:
                found = known(env)
                made = replace(
                    found,
                    numbers=self._numbers or found.numbers,
                    actions=self._meanings or found.actions,
                )
                space = getattr(env, "get_context_space", ContextSpace)()
                seen = env.unwrapped.observation_space
                return Probe(
                    form=ActionForm(env.action_space, made.actions),
                    known=made,
                    context_space=space,
                    draws=self._screen and env.render_mode == "rgb_array",
                    draws_steps=getattr(seen, "dtype", None) == "uint8",
                    is_quick=is_small(env),
                    replayable=env.spec is None or not env.spec.nondeterministic,
                    most_steps=most_steps(env),
                    spaces=spaces_to_json(env),
                    screen_fault=self._screen_fault,
                )
            finally:
                env.close()

    def _make(self, context: dict[str, Any]) -> Any:
        wrapping: dict[str, Any] = {"contexts": {0: context}, "obs_context_features": self._shown}
        env_id, mode = self._registered
        if self._is_contextual:
            return getattr(carl, self.id)(render_mode=mode, **wrapping, **self._options)
        env = make_quietly(env_id, render_mode=mode, **self._options)
        if not self._attributes:
            return env
        return carl.CARLAttributesEnv(
            env,
            attributes=self._attributes,
            features=self._features,
            derived=self._derived,
            **wrapping,
        )

    @cached_property
    def _registered(self) -> tuple[str, str | None]:
        """The id in the registry, and its mode of drawing, once its package is loaded."""
        if self._is_contextual:
            if self.id not in carl.ENVIRONMENTS:
                raise unknown(self.id, carl.ENVIRONMENTS)
            env_id = getattr(carl, self.id).env_name
            return env_id, self._render_mode(env_id)
        module, _, env_id = self.id.rpartition(":")
        for begin, package in _REGISTERED_BY.items():
            module = package if env_id.startswith(begin) and not module else module
        if module:
            import_module(module)
        if env_id not in libraries.gymnasium.registry:
            raise unknown(self.id, libraries.gymnasium.registry)
        return env_id, self._render_mode(env_id)

    def _render_mode(self, env_id: str) -> str | None:
        fault = None
        if "gymnasium.envs.mujoco" in str(libraries.gymnasium.registry[env_id].entry_point):
            fault = choose_opengl() if self._screen else None
            load_mujoco(draws=self._screen and fault is None)
        if not self._screen or "rgb_array" not in render_modes(env_id):
            return None
        if fault is None and is_mujoco(env_id):
            fault = choose_opengl()
        if fault is not None and (self.id, fault) not in _warned:
            _warned.add((self.id, fault))
            logger.warning("There are no pictures of %s: %s", self.id, fault)
        self._screen_fault = fault
        return None if fault else "rgb_array"


def _begins_anew(env: Any) -> bool:
    """Whether a reset leaves nothing behind: no wrapper that normalizes, no map that was drawn."""
    while (inner := getattr(env, "env", None)) is not None:
        kind: Any = env.__class__
        if kind.__name__ not in _FORGETFUL or not kind.__module__.startswith("gymnasium.wrappers."):
            return False
        env = inner
    made_with: Mapping[str, Any] = env.spec.kwargs if env.spec is not None else {}
    # Without a name and a text, FrozenLake draws its map as it is made, and no reset draws another.
    return made_with.get("map_name", "") is not None or made_with.get("desc") is not None


def _seed(seed: int | None) -> int:
    """Gymnasium takes no negative seed; without one, a replay still comes to the same state."""
    return 0 if seed is None else seed % 2**63

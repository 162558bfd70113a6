"""The declaration of a Gymnasium environment as a world."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from hud_mcp import carl
from hud_mcp.context import ContextFeature, ContextSpace
from hud_mcp.errors import EnvironmentFailed, HudMcpError, InvalidEnvironment, did_you_mean
from hud_mcp.world import Opening, WorldSpec
from hud_mcp.worlds.gymnasium import libraries
from hud_mcp.worlds.gymnasium.actions import ActionForm
from hud_mcp.worlds.gymnasium.episode import Episode
from hud_mcp.worlds.gymnasium.frames import close_env, drawing
from hud_mcp.worlds.gymnasium.known import Known, known, most_steps
from hud_mcp.worlds.gymnasium.thread import OwnThread
from hud_mcp.worlds.gymnasium.world import GymnasiumWorld

__all__ = ["Gymnasium"]

_REGISTERED_BY = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}
"""Packages that register their environments when they are loaded, by how the ids begin."""

_SMALL = ("gymnasium.envs.classic_control.", "gymnasium.envs.toy_text.", "hud_mcp.carl.classic")
"""Where environments are whose step is a few lines of arithmetic."""


@dataclass(frozen=True)
class _Probe:
    """What one environment was seen to be."""

    form: ActionForm
    known: Known
    context_space: ContextSpace
    draws: bool
    draws_steps: bool
    is_quick: bool
    replayable: bool
    most_steps: int | None
    spaces: dict[str, Any] | None


class Gymnasium(WorldSpec):
    """Declares that an environment's world is a Gymnasium environment.

    Args:
        id: An id of Gymnasium's registry, `module:id`, or a contextual environment of
            `hud_mcp.carl` (`CARLCartPole`), whose features then are the world's.
        options: Arguments of `gymnasium.make`.
        attributes: Features of any other environment: from each to the attribute that it sets,
            as for `hud_mcp.carl.CARLAttributesEnv`.
        features: Their defaults and bounds, where these are not to follow from the environment.
        derived: Attributes that follow from the features, as there.
        obs_context_features: Which features the agent is told; all by default, none with `()`.
        numbers: Name and unit of each number of the observation, where it is not known.
        actions: What the actions are called, where it is not known.
        max_episode_steps: Instead of the environment's own.
        screen: Whether there are pictures. `"asked"` draws only for a look at the picture alone,
            which is what the tool `screenshot` takes; the record of other calls then has none.
            To draw and encode one takes longer than hundreds of small environments' steps.
        quick: Whether its steps are short and pure: they wait for nothing, and use nothing that
            belongs to one thread. They are then taken on the event loop, beside those of other
            sessions, until they turn out to be long. By default this is so of Gymnasium's
            classic control and toy text.

    Raises:
        InvalidEnvironment: An option cannot work.
    """

    name = "gymnasium"
    world_type = GymnasiumWorld
    actions = frozenset({"custom", "screenshot"})
    is_destructive = False
    open_world = False
    endpoints = ("hud_mcp.channel.endpoints.openpi:publish",)

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
        self._is_contextual = id.startswith("CARL")
        if self._is_contextual and attributes:
            raise InvalidEnvironment(
                f"Gymnasium({id!r}) has its own features; declare `attributes` on the environment "
                "that it wraps, or leave them out."
            )
        if self._features and not attributes:
            raise InvalidEnvironment("Gymnasium: `features` belong to `attributes`, and are none.")

    @property
    def has_screen(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """Whether the environment can be drawn."""
        return self._probe.draws

    @property
    def replayable(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """Whether the same context, seed and actions give the same state again."""
        return self._probe.replayable

    @property
    def is_quick(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
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
        """How many steps an episode has at most; None where nothing says so."""
        return self._probe.most_steps

    @property
    def spaces(self) -> dict[str, Any] | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """The spaces of actions and observations as JSON, for programs; None without a way to say.

        Observations of a contextual environment may lie beyond the bounds that hold by default.
        """
        return self._probe.spaces

    @property
    def custom_actions(self) -> dict[str, dict[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride]  # asked of it
        """What `custom` takes: from a name to the JSON schema of its arguments."""
        one = self.action_schema
        repeat = {"type": "integer", "minimum": 1, "description": "How often; once by default."}
        return {
            "step": {
                "type": "object",
                "description": "Take steps in the environment; give `action` or `actions`. A list "
                "stops at the end of the episode.",
                "properties": {
                    "action": one,
                    "actions": {
                        "type": "array",
                        "items": {k: v for k, v in one.items() if k != "description"},
                        "minItems": 1,
                        "description": "Several, in order, in one call.",
                    },
                    "repeat": repeat,
                },
                "additionalProperties": False,
            }
        }

    def check(self, folder: Path) -> None:
        """Refuse an environment that cannot be made, before anything is opened.

        Raises:
            InvalidEnvironment: There is none of that id, or something is not installed.
        """
        del folder
        _ = self._probe

    async def open(self, opening: Opening) -> GymnasiumWorld:
        """Make the environment and reset it, on a thread of its own.

        Raises:
            EnvironmentFailed: It cannot be made or reset; the text says why.

        If this call fails or is cancelled, the environment is closed once it is made.
        """
        thread = OwnThread(f"gymnasium {self.id}")
        made: list[Any] = []

        def begin() -> tuple[_Probe, Episode]:
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
        return GymnasiumWorld(
            made[0],
            thread,
            probe.form,
            probe.known,
            episode,
            draws_steps=probe.draws_steps,
            draws=probe.draws,
            draws_asked=self._draws_asked,
            is_quick=self.is_quick and not probe.draws_steps,
        )

    @cached_property
    def _probe(self) -> _Probe:
        """Make an environment once, look at it, and close it."""
        with drawing, _explained(self.id):
            env: Any = self._make({})
            try:
                found = known(env)
                made = Known(
                    found.about, self._numbers or found.numbers, self._meanings or found.actions
                )
                space = getattr(env, "get_context_space", ContextSpace)()
                seen = env.unwrapped.observation_space
                return _Probe(
                    form=ActionForm(env.action_space, made.actions),
                    known=made,
                    context_space=space,
                    draws=self._screen and env.render_mode == "rgb_array",
                    draws_steps=getattr(seen, "dtype", None) == "uint8",
                    is_quick=_is_small(env),
                    replayable=env.spec is None or not env.spec.nondeterministic,
                    most_steps=most_steps(env),
                    spaces=_spaces(env),
                )
            finally:
                env.close()

    def _make(self, context: dict[str, Any]) -> Any:
        wrapping: dict[str, Any] = {"contexts": {0: context}, "obs_context_features": self._shown}
        if self._is_contextual:
            if self.id not in carl.ENVIRONMENTS:
                raise _unknown(self.id, carl.ENVIRONMENTS)
            kind: Any = getattr(carl, self.id)
            mode = self._render_mode(kind.env_name)
            return kind(render_mode=mode, **wrapping, **self._options)
        env_id = self._registered()
        env = libraries.make_quietly(env_id, render_mode=self._render_mode(env_id), **self._options)
        if not self._attributes:
            return env
        return carl.CARLAttributesEnv(
            env,
            attributes=self._attributes,
            features=self._features,
            derived=self._derived,
            **wrapping,
        )

    def _registered(self) -> str:
        """The id in the registry, once the package that registers it is loaded."""
        module, _, env_id = self.id.rpartition(":")
        for begin, package in _REGISTERED_BY.items():
            module = package if env_id.startswith(begin) and not module else module
        if module:
            import_module(module)
        if env_id not in libraries.gymnasium.registry:
            raise _unknown(self.id, libraries.gymnasium.registry)
        return env_id

    def _render_mode(self, env_id: str) -> str | None:
        """Pictures as arrays, where they are wanted and the environment can draw them."""
        return (
            "rgb_array" if self._screen and "rgb_array" in libraries.render_modes(env_id) else None
        )


def _spaces(env: Any) -> dict[str, Any] | None:
    seen: Any = env.observation_space
    if isinstance(env, libraries.CARLEnv):
        seen = libraries.spaces.Dict(
            {**seen.spaces, env.state_key: libraries.unbounded(seen[env.state_key])}
        )
    try:
        return {
            "action": libraries.space_to_json(env.action_space),
            "observation": libraries.space_to_json(seen),
        }
    except InvalidEnvironment:
        return None


def _is_small(env: Any) -> bool:
    """Whether an environment is one of Gymnasium's that compute a step in some microseconds.

    What is wrapped around it must be Gymnasium's or ours too.
    """
    while (inner := getattr(env, "env", None)) is not None:
        if not type(env).__module__.startswith(("gymnasium.wrappers.", "hud_mcp.carl.")):
            return False
        env = inner
    return type(env).__module__.startswith(_SMALL)


def _unknown(env_id: str, known_ids: Iterable[str]) -> InvalidEnvironment:
    hint = did_you_mean(env_id, known_ids)
    return InvalidEnvironment(
        f"Gymnasium has no environment {env_id!r}.{hint} Name one that is registered, "
        "`module:id` for one that a module registers, or a contextual one, such as CARLCartPole."
    )


def _seed(seed: int | None) -> int:
    """Gymnasium takes no negative seed; without one, a replay still comes to the same state."""
    return 0 if seed is None else seed % 2**63


@contextmanager
def _explained(env_id: str) -> Generator[None]:
    """Say what to do where an environment cannot be made."""
    try:
        yield
    except InvalidEnvironment:
        raise
    except HudMcpError as exc:
        raise InvalidEnvironment(f"Gymnasium({env_id!r}): {exc}") from exc
    except ModuleNotFoundError as exc:
        extra = "gymnasium" if exc.name in ("gymnasium", "numpy", "ConfigSpace", "pygame") else None
        todo = f"pip install 'hud-mcp[{extra}]'" if extra else f"install {exc.name}"
        raise InvalidEnvironment(
            f"Gymnasium({env_id!r}): {exc.name} is not installed; {todo}."
        ) from exc
    except Exception as exc:
        todo = ""
        if type(exc).__name__ == "DependencyNotInstalled":
            todo = " `pip install 'hud-mcp[box2d]'` installs Box2D and pygame."
        raise InvalidEnvironment(
            f"Gymnasium({env_id!r}) cannot be made: {type(exc).__name__}: {exc}.{todo}"
        ) from exc

"""The contextual wrapper: a Gymnasium environment that another context changes at each reset."""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from hud_mcp.errors import InvalidContext, InvalidEnvironment, ObservationKeyNotFound, did_you_mean
from hud_mcp.plugins.gymnasium.carl.gym_setup import make_quietly, set_render_mode, unbounded
from hud_mcp.plugins.gymnasium.carl.space import ContextSpace
from hud_mcp.values.context import Context, ContextFeature, ContextSelector, RoundRobinSelector

__all__ = ["CARLEnv", "Contexts", "DeclaredEnv", "Observed"]


class Observed(dict[str, Any]):
    """A state and a context; another key is an error that says how the state is called."""

    def __missing__(self, key: str) -> Any:
        (state_key,) = (name for name in self if name != "context")
        raise ObservationKeyNotFound(
            f"This observation has no {key!r}; its keys are {state_key!r} and 'context'. The "
            f"environment's argument state_key={key!r} calls the state so."
        )


Contexts: TypeAlias = Mapping[Any, Mapping[str, Any]]
"""Contexts by any keys; each may be partial."""


class CARLEnv(gymnasium.Wrapper[dict[str, Any], Any, Any, Any], RecordConstructorArgs, ABC):
    """Wraps an environment whose features vary by context.

    At each reset the selector picks a context. The wrapper then sets the context in the wrapped
    environment, resets it, and adds the context to the observation. `{"state": …, "context": …}` is
    always inside `observation_space`. The wrapped environment belongs to this wrapper from then on.

    Args:
        env: The environment to wrap; by default the class creates its own.
        contexts: The contexts by any keys; defaults complete each of them. By default there is one,
            the default context, under 0.
        obs_context_features: Which features the observation carries; all by default.
        obs_context_as_dict: Whether it carries them by their names, or as one vector.
        context_selector: The selector: a class, created with the contexts, or an instance, which
            keeps its own contexts without `contexts`. The default takes the contexts in turn.
        context_selector_kwargs: More arguments for a class.
        state_key: The observation's key for the wrapped one's; CARL 1.1's code uses `"obs"`.
        kwargs: Arguments of `gymnasium.make`, where `env` is left out.

    Attributes:
        context: The current context, complete; None before the first reset.
        context_selector: The selector.

    Raises:
        InvalidContext: A context is not allowed; the text names each feature and its bounds.
        InvalidEnvironment: `env` is no environment, or none of this class's.
    """

    env_name: ClassVar[str | None] = None
    """The id of the environment that is created by default."""

    env_class: ClassVar[type[gymnasium.Env[Any, Any]] | None] = None
    """The class that may be wrapped, without its wrappers; None for any class."""

    ordered: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of features of which the first may not exceed the second."""

    def __init__(  # noqa: PLR0917  # CARL's signature
        self,
        env: gymnasium.Env[Any, Any] | None = None,
        contexts: Contexts | None = None,
        obs_context_features: Sequence[str] | None = None,
        obs_context_as_dict: bool = True,  # noqa: FBT001, FBT002  # the same
        context_selector: ContextSelector
        | Callable[..., ContextSelector]
        | type[ContextSelector]
        | None = None,
        context_selector_kwargs: Mapping[str, Any] | None = None,
        *,
        state_key: str = "state",
        **kwargs: Any,
    ) -> None:
        _check_arguments(type(self).__name__, env, obs_context_features, state_key)
        RecordConstructorArgs.__init__(
            self,
            contexts=contexts,
            obs_context_features=obs_context_features,
            obs_context_as_dict=obs_context_as_dict,
            context_selector=context_selector,
            context_selector_kwargs=context_selector_kwargs,
            state_key=state_key,
        )
        super().__init__(self._make(env, kwargs))
        self._isolate(self.unwrapped)
        self._space = self.get_context_space()
        self._bare_space = self.unwrapped.observation_space
        self.obs_context_as_dict = obs_context_as_dict
        self.state_key = state_key
        self.context: Context | None = None
        names = self._space.context_feature_names
        self.obs_context_features = list(
            names if obs_context_features is None else obs_context_features
        )
        self.context_selector = self._make_selector(
            contexts, context_selector, dict(context_selector_kwargs or {})
        )
        self.contexts = self.context_selector.contexts

    @staticmethod
    @abstractmethod
    def get_context_features() -> "Mapping[str, ContextFeature]":
        """Return the features by their names; ConfigSpace's hyperparameters may stand for them."""
        ...

    @classmethod
    def get_context_space(cls) -> ContextSpace:
        """Return the space of the features: defaults, bounds, and contexts drawn from it."""
        return ContextSpace(cls.get_context_features(), ordered=cls.ordered)

    @classmethod
    def get_default_context(cls) -> Context:
        """Return every feature at its default."""
        return cls.get_context_space().default

    @property
    def render_mode(self) -> str | None:
        """The mode of `metadata` in which it is drawn from the next drawing on; None for none."""
        return self.env.render_mode

    @render_mode.setter
    def render_mode(self, render_mode: str | None) -> None:
        set_render_mode(self.env, render_mode)

    @property
    def contexts(self) -> dict[Any, Context]:
        """The set of contexts, each complete."""
        return self._contexts

    @contexts.setter
    def contexts(self, contexts: Contexts) -> None:
        self._contexts = self._filled(contexts)
        self.context_selector.contexts = self._contexts
        self.unwrapped.observation_space = self._state_space(self._contexts)
        self.observation_space = self.get_observation_space(self.obs_context_features)

    @property
    def base_observation_space(self) -> spaces.Space[Any]:
        """The wrapped environment's observation space under every context of the set."""
        return self.env.observation_space

    @property
    def context_id(self) -> int | None:
        """The place of the current context in the set; None before the first reset.

        Setting it changes the environment at once, not only at the next reset.
        """
        return self.context_selector.context_id

    @context_id.setter
    def context_id(self, context_id: int) -> None:
        selector = self.context_selector
        selector.context_id = selector.check_id(context_id)
        self._enter(self.contexts[selector.context_key])

    @property
    def context_key(self) -> Any:
        """The key of the current context in the set; None before the first reset."""
        return self.context_selector.context_key

    def get_observation_space(
        self, obs_context_feature_names: Sequence[str] | None = None
    ) -> spaces.Dict:
        """Return the space of observations that carry some features; all by default.

        Raises:
            InvalidContext: There is no such feature.
        """
        context = self._space.to_gymnasium_space(
            obs_context_feature_names, as_dict=self.obs_context_as_dict
        )
        return spaces.Dict({self.state_key: self.base_observation_space, "context": context})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Select a context, update the wrapped environment, reset it, add the context.

        The seed is also that of a random selector. The info has the `context_id`.

        Raises:
            InvalidContext: The selector picked a context that is not allowed. Nothing changed.
        """
        if seed is not None:
            self.context_selector.seed(seed)
        # A function of the author's may make up a context, or leave features out.
        self._enter(self._space.fill(self.context_selector.select()))
        state, info = self.env.reset(seed=seed, options=options)
        return self._observation(state), {**info, "context_id": self.context_id}

    def step(self, action: Any) -> tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the wrapped environment, and add the context to its observation."""
        state, reward, terminated, truncated, info = self.env.step(action)
        info["context_id"] = self.context_selector.context_id
        return self._observation(state), reward, terminated, truncated, info

    # For subclasses.

    def _isolate(self, unwrapped: Any) -> None:
        """Let the bare environment read its features from itself; called once."""

    def _update_context(self) -> None:
        """Bring the bare environment into the current context."""
        for name, value in (self.context or {}).items():
            # Zero has a sign, and NumPy refuses to draw from 0.0 to -0.0.
            zero = isinstance(value, float) and value == 0.0
            setattr(self.unwrapped, name, 0.0 if zero else value)

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        """Return the bare observation space; other contexts may lead beyond its bounds."""
        default = self._space.default
        if all(context == default for context in contexts.values()):
            return self._bare_space
        return unbounded(self._bare_space)

    # What follows is the wrapper's own.

    def _make(
        self, env: gymnasium.Env[Any, Any] | None, kwargs: dict[str, Any]
    ) -> gymnasium.Env[Any, Any]:
        if env is None:
            if self.env_name is None:
                raise InvalidEnvironment(f"{type(self).__name__} needs the environment to wrap.")
            declared: Any = type(self).render_mode  # CARL's subclasses set it in their body
            mode = "rgb_array" if isinstance(declared, property) else declared
            return make_quietly(self.env_name, **{"render_mode": mode, **kwargs})
        if kwargs:
            known = ("contexts", "obs_context_features", "context_selector", "state_key")
            first = next(iter(kwargs))
            raise TypeError(
                f"{type(self).__name__} has no argument {first!r} beside an environment that is "
                f"made already.{did_you_mean(first, known)}"
            )
        if self.env_class is not None and not isinstance(env.unwrapped, self.env_class):
            raise InvalidEnvironment(
                f"{type(self).__name__} wraps a {self.env_class.__name__}, not a "
                f"{type(env.unwrapped).__name__}; CARLAttributesEnv wraps any environment."
            )
        return env

    def _make_selector(
        self,
        contexts: Contexts | None,
        selector: ContextSelector | Callable[..., ContextSelector] | None,
        kwargs: dict[str, Any],
    ) -> ContextSelector:
        if isinstance(selector, ContextSelector):
            if contexts is not None and self._filled(selector.contexts) != self._filled(contexts):
                raise InvalidContext(
                    "The selector has other contexts than `contexts`; give them to one of both."
                )
            return selector
        filled = self._filled({0: {}} if contexts is None else contexts)
        made = (selector or RoundRobinSelector)(filled, **kwargs) if _is_class(selector) else None
        if made is None:
            raise InvalidContext(
                "A context_selector is a ContextSelector, a subclass of it, or None, not "
                f"{selector!r}."
            )
        return made

    def _filled(self, contexts: Contexts) -> dict[Any, Context]:
        if not isinstance(contexts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # authors pass lists
            raise InvalidContext(
                f"`contexts` maps keys to contexts, and this is a {type(contexts).__name__}; write "
                '{0: {"gravity": 9.8}, …}.'
            )
        for key, context in contexts.items():
            if not isinstance(context, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
                raise InvalidContext(
                    f"context {key!r}: a context maps features to values, and this is "
                    f"{context!r}; write {{}} for the default context."
                )
        wrong = {key: self._space.problems(context) for key, context in contexts.items()}
        if found := [f"context {key!r}: {'; '.join(said)}" for key, said in wrong.items() if said]:
            raise InvalidContext(". ".join(found) + ".")
        return {key: self._space.fill(context) for key, context in contexts.items()}

    def _enter(self, context: Context) -> None:
        self.context = context
        self._update_context()
        names = self.obs_context_features
        self._shown: NDArray[np.float32] | dict[str, NDArray[np.float32] | np.int64] = (
            self._space.as_dict(context, names)
            if self.obs_context_as_dict
            else self._space.as_vector(context, names)
        )

    def _observation(self, state: Any) -> dict[str, Any]:
        shown = self._shown
        if isinstance(shown, dict):  # new arrays each time: who keeps one may change it
            copied = {name: value.copy() for name, value in shown.items()}
            return Observed({self.state_key: state, "context": copied})
        return Observed({self.state_key: state, "context": shown.copy()})


def _check_arguments(name: str, env: Any, features: Any, state_key: str) -> None:
    if env is not None and not isinstance(env, gymnasium.Env):
        raise InvalidEnvironment(
            f"{name} wraps an environment, not {env!r}; make it with gymnasium.make, and name "
            "other arguments, as in contexts={…}."
        )
    if isinstance(features, str):
        raise InvalidContext(
            f"obs_context_features is a list of names, not {features!r}; write [{features!r}]."
        )
    if state_key == "context":
        raise InvalidEnvironment(
            "state_key is 'context', under which an observation has its context; name another."
        )


def _is_class(selector: Any) -> bool:
    if selector is None:
        return True
    return isinstance(selector, type) and issubclass(selector, ContextSelector)


class DeclaredEnv(CARLEnv):
    """An environment whose features stand in a table beside this module, under its id."""

    @classmethod
    def get_context_features(cls) -> Mapping[str, ContextFeature]:  # pyright: ignore[reportIncompatibleMethodOverride]  # called alike
        """Return the features, in the units of the simulation."""
        rows = _tables()[cls.env_name or ""]
        return {name: ContextFeature(name=name, **row) for name, row in rows.items()}


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("features.toml").read_text(encoding="utf-8"))

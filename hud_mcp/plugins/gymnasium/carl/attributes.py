"""The contextual wrapper for any environment, by a declaration of what its features set."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from hud_mcp.errors import InvalidContext, did_you_mean
from hud_mcp.plugins.gymnasium.carl import libraries
from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import make_quietly
from hud_mcp.plugins.gymnasium.carl.paths import AttributePath
from hud_mcp.plugins.gymnasium.carl.space import ContextSpace
from hud_mcp.values.context import Context, ContextFeature, ContextSelector, Scalar

__all__ = ["CARLAttributesEnv"]


class CARLAttributesEnv(CARLEnv):
    """Any environment whose features are attributes of it.

        env = CARLAttributesEnv(
            "CartPole-v1",
            attributes={"gravity": "gravity", "mass": "masscart"},
            features=[ContextFeature(name="gravity", default=9.8, lower=1, upper=20)],
            derived={"total_mass": lambda env: env.masscart + env.masspole},
            contexts={"moon": {"gravity": 1.62}, "heavy": {"mass": 5}},
        )

    Args:
        env: The environment, or the id under which Gymnasium makes it.
        attributes: From each feature to the attribute of the bare environment that it sets;
            a dot leads into an object, and an index into a sequence, an array or a mapping
            (`"model.opt.gravity[2]"`, `"model.geom_friction[:, 0]"`, `"settings['speed']"`).
            MuJoCo recomputes values that follow from its model.
        features: Their defaults and bounds. An omitted feature has the attribute's first value as
            its default, and no bounds.
        derived: From an attribute, or a path to one, to a function of the bare environment that
            gives its value, called in order after the features are set.
        options: Arguments of `CARLEnv`; and arguments of `gymnasium.make`, if `env` is an id.

    Raises:
        InvalidContext: The environment has no such attribute, or no plain value in it, or it
            cannot be set; the text says where its path ends and what is there.
    """

    def __init__(  # noqa: PLR0917  # CARL's signature
        self,
        env: gymnasium.Env[Any, Any] | str,
        contexts: Mapping[Any, Mapping[str, Any]] | None = None,
        obs_context_features: Sequence[str] | None = None,
        obs_context_as_dict: bool = True,  # noqa: FBT001, FBT002  # the same
        context_selector: ContextSelector | type[ContextSelector] | None = None,
        context_selector_kwargs: Mapping[str, Any] | None = None,
        *,
        attributes: Mapping[str, str],
        features: Iterable[ContextFeature] = (),
        derived: Mapping[str, Callable[[Any], Any]] | None = None,
        state_key: str = "state",
        **options: Any,
    ) -> None:
        features = tuple(features)
        RecordConstructorArgs.__init__(
            self,
            contexts=contexts,
            obs_context_features=obs_context_features,
            obs_context_as_dict=obs_context_as_dict,
            context_selector=context_selector,
            context_selector_kwargs=context_selector_kwargs,
            attributes=attributes,
            features=features,
            derived=derived,
            state_key=state_key,
        )
        if isinstance(env, str):
            env = make_quietly(env, **{"render_mode": "rgb_array", **options})
            options = {}
        self._attributes = {name: AttributePath(path, name) for name, path in attributes.items()}
        self._derived = {
            AttributePath(path, path): derive for path, derive in (derived or {}).items()
        }
        self._declared = ContextSpace(_complete(env.unwrapped, self._attributes, features))
        self._constants = libraries.constants_of(env.unwrapped) if "mujoco" in sys.modules else None
        self._entered = self._declared.default
        super().__init__(
            env,
            contexts,
            obs_context_features,
            obs_context_as_dict,
            context_selector,
            context_selector_kwargs,
            state_key=state_key,
            **options,
        )

    # Of one environment and not of the class: its author declares them with it.

    def get_context_features(self) -> Mapping[str, ContextFeature]:  # pyright: ignore[reportIncompatibleMethodOverride]  # see above
        """The features, by their names."""
        return {feature.name: feature for feature in self._declared.features}

    def get_context_space(self) -> ContextSpace:  # pyright: ignore[reportIncompatibleMethodOverride]  # see above
        """The space of the features."""
        return self._declared

    def get_default_context(self) -> Context:  # pyright: ignore[reportIncompatibleMethodOverride]  # see above
        """Every feature at its default."""
        return self._declared.default

    def _update_context(self) -> None:
        env = self.unwrapped
        context = dict(self.context or {})
        for name, value in context.items():
            self._attributes[name].write(env, value)
        for path, derive in self._derived.items():
            path.write(env, derive(env))
        if self._constants is not None and context != self._entered:
            self._constants.update()
        self._entered = context


def _complete(
    env: Any, attributes: Mapping[str, AttributePath], features: tuple[ContextFeature, ...]
) -> list[ContextFeature]:
    """The declared features, and those that follow from what the environment has."""
    declared = {feature.name: feature for feature in features}
    for name in declared:
        if name not in attributes:
            raise InvalidContext(
                f"The feature {name!r} sets no attribute.{did_you_mean(name, attributes)} Add it "
                "to `attributes`."
            )
    for path in attributes.values():
        path.check(env)
    return [
        declared.get(name) or _inferred(name, path.read(env), path.text)
        for name, path in attributes.items()
    ]


def _inferred(name: str, value: Any, path: str) -> ContextFeature:
    if not isinstance(value, Scalar):
        raise InvalidContext(
            f"The feature {name!r} sets {path!r}, which holds a {type(value).__name__}; a feature "
            "is a number, a text, or true or false."
        )
    return ContextFeature(name=name, default=value)

"""The context space with CARL's methods: as Gymnasium spaces, and as a source of contexts."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hud_mcp.errors import InvalidContext, did_you_mean
from hud_mcp.plugins.gymnasium import libraries
from hud_mcp.values.context import Context, ContextFeature, plain_value
from hud_mcp.values.context import ContextSpace as Space
from hud_mcp.values.sampler import distribution_of, named_features

if TYPE_CHECKING:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray

    from hud_mcp.values.sampler import Declarations

__all__ = ["ContextSpace", "Verification"]


@dataclass(frozen=True)
class Verification:
    """The check of a context, true if it is valid; `problems` has a sentence for each fault."""

    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class ContextSpace(Space):
    """The features in which an environment varies.

    Args:
        features: Features or hyperparameters of ConfigSpace, in order or by their names.
        context_space: The same under CARL's name; give one of them.
        ordered: Pairs of features of which the first may not exceed the second.

    Raises:
        InvalidContext: Features are given twice, or a value is not a feature.
    """

    def __init__(
        self,
        features: "Declarations | None" = None,
        *,
        context_space: "Declarations | None" = None,
        ordered: Iterable[tuple[str, str]] = (),
    ) -> None:
        if features is not None and context_space is not None:
            raise InvalidContext(
                "`features` and `context_space` are the same argument; give one of both."
            )
        declared = context_space if features is None else features
        super().__init__(named_features(declared or ()))
        self._named = {feature.name: feature for feature in self.features}
        self._ordered = tuple(ordered)

    @property
    def context_space(self) -> dict[str, ContextFeature]:
        """Every feature by its name, in order, under CARL's name."""
        return dict(self._named)

    @property
    def context_feature_names(self) -> list[str]:
        """Every feature's name, in order."""
        return list(self._named)

    def find(self, name: str) -> ContextFeature:
        """Return a feature, or raise `InvalidContext` if none has that name."""
        if name not in self._named:
            known = ", ".join(self._named) or "none"
            raise InvalidContext(
                f"There is no context feature {name!r}.{did_you_mean(name, self._named)} "
                f"The features are: {known}."
            )
        return self._named[name]

    def problems(self, context: Mapping[str, Any]) -> list[str]:
        """Return the faults of a context, between features too; empty if it is valid."""
        plain = {name: plain_value(value) for name, value in context.items()}
        found = super().problems(plain)
        if found:
            return found
        whole: dict[str, Any] = {**self.default, **plain}
        return [
            f"{low}: {whole[low]!r} is above {high}, which is {whole[high]!r}"
            for low, high in self._ordered
            if whole[low] > whole[high]
        ]

    def fill(self, context: Mapping[str, Any]) -> Context:
        """Complete a context with the defaults; its values become plain ones.

        Raises:
            InvalidContext: Features are unknown or out of bounds; the text names each.
        """
        filled = super().fill({name: plain_value(value) for name, value in context.items()})
        # An integer is a number; the environment computes with what its default is.
        return {
            name: float(value) if isinstance(self._named[name].default, float) else value
            for name, value in filled.items()
        }

    def insert_defaults(
        self, context: Mapping[str, Any], context_keys: Sequence[str] | None = None
    ) -> Context:
        """Complete a context with the defaults, of `context_keys` alone if they are given.

        Raises:
            InvalidContext: Features are unknown or out of bounds; the text names each.
        """
        filled = self.fill(context)
        wanted = {self.find(name).name for name in context_keys or filled} | set(context)
        return {name: value for name, value in filled.items() if name in wanted}

    def verify_context(self, context: Mapping[str, Any]) -> Verification:
        """Check a context, and return its problems."""
        return Verification(tuple(self.problems(context)))

    def get_default_context(self) -> Context:
        """Return every feature at its default."""
        return self.default

    def get_lower_and_upper_bound(self, context_feature_name: str) -> tuple[float, float]:
        """Return the bounds, infinite where there is none; of choices, the first and last place.

        Raises:
            InvalidContext: There is no such feature, or it is text without choices.
        """
        feature = self.find(context_feature_name)
        if (choices := _choices(feature)) is not None:
            return (0.0, len(choices) - 1.0)
        if isinstance(feature.default, str):
            raise InvalidContext(f"{feature.name} is text; it has no bounds. Give it choices.")
        lower = float("-inf") if feature.lower is None else feature.lower
        upper = float("inf") if feature.upper is None else feature.upper
        return (lower, upper)

    def to_gymnasium_space(
        self, context_feature_names: Sequence[str] | None = None, *, as_dict: bool = False
    ) -> "gymnasium.Space[Any]":
        """Return the features as a Gymnasium space.

        Args:
            context_feature_names: Which, in this order; all by default.
            as_dict: A `Dict` with a `Box` of one number for each numerical feature and a
                `Discrete` for each one with choices; else one `Box`, a place each.

        Raises:
            InvalidContext: There is no such feature, or it is text without choices.
        """
        features = self._chosen(context_feature_names)
        bounds = [self.get_lower_and_upper_bound(feature.name) for feature in features]
        if not as_dict:
            low, high = (
                libraries.numpy.array([b[i] for b in bounds], dtype=libraries.numpy.float32)
                for i in (0, 1)
            )
            return libraries.spaces.Box(low, high, dtype=libraries.numpy.float32)
        return libraries.spaces.Dict(
            {
                feature.name: (
                    libraries.spaces.Box(
                        libraries.numpy.float32(low),
                        libraries.numpy.float32(high),
                        (1,),
                        libraries.numpy.float32,
                    )
                    if (choices := _choices(feature)) is None
                    else libraries.spaces.Discrete(len(choices))
                )
                for feature, (low, high) in zip(features, bounds, strict=True)
            }
        )

    def as_dict(
        self, context: Context, context_feature_names: Sequence[str] | None = None
    ) -> "dict[str, NDArray[np.float32] | np.int64]":
        """Return a complete context as an element of the space in dict form."""
        return {
            f.name: (
                libraries.numpy.array([context[f.name]], dtype=libraries.numpy.float32)
                if (choices := _choices(f)) is None
                else libraries.numpy.int64(choices.index(context[f.name]))
            )
            for f in self._chosen(context_feature_names)
        }

    def as_vector(
        self, context: Context, context_feature_names: Sequence[str] | None = None
    ) -> "NDArray[np.float32]":
        """Return a complete context as an element of the space in vector form."""
        numbers = [
            context[f.name] if (choices := _choices(f)) is None else choices.index(context[f.name])
            for f in self._chosen(context_feature_names)
        ]
        return libraries.numpy.array(numbers, dtype=libraries.numpy.float32)

    def sample_contexts(
        self, context_keys: Sequence[str] | None = None, size: int = 1, *, seed: int | None = None
    ) -> Context | list[Context]:
        """Draw contexts; features that are not drawn have their defaults.

        Args:
            context_keys: The features to draw; by default all with finite bounds or choices.
            size: The number of contexts.
            seed: The same seed gives the same contexts.

        Returns:
            One context, or a list if `size` is not 1.

        Raises:
            InvalidContext: A feature is unknown, or has no finite range to draw from.
        """
        chosen = [self.find(name) for name in context_keys or ()]
        if context_keys is None:
            chosen = [feature for feature in self.features if _can_be_drawn(feature)]
        drawn = [distribution_of(feature) for feature in chosen]
        bits = random.SystemRandom().getrandbits(32) if seed is None else seed % 2**32
        state = libraries.numpy.random.RandomState(bits)  # what ConfigSpace draws from
        contexts = [
            self.fill({each.name: each.sample_value(seed=state) for each in drawn})
            for _ in range(size)
        ]
        return contexts[0] if size == 1 else contexts

    def _chosen(self, names: Sequence[str] | None) -> list[ContextFeature]:
        return list(self.features) if names is None else [self.find(name) for name in names]


def _choices(feature: ContextFeature) -> tuple[Any, ...] | None:
    return (False, True) if isinstance(feature.default, bool) else feature.choices


def _can_be_drawn(feature: ContextFeature) -> bool:
    bounded = feature.lower is not None and feature.upper is not None
    return bounded or _choices(feature) is not None

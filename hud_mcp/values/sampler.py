"""The sampler of contexts, and ConfigSpace's hyperparameters beside features.

A `ContextFeature` tells the allowed values; a hyperparameter also tells how likely each is.
ConfigSpace loads with the first.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base import libraries
from hud_mcp.base.lazy import lazy_names
from hud_mcp.errors import InvalidContext
from hud_mcp.values.context import Context, ContextFeature, ContextSpace, Scalar, plain_value

__all__ = [
    "CategoricalContextFeature",
    "ContextFeature",
    "ContextSampler",
    "NormalFloatContextFeature",
    "UniformFloatContextFeature",
    "UniformIntegerContextFeature",
    "distribution_of",
    "feature_of",
    "named_features",
    "within",
]


if TYPE_CHECKING:
    from typing import TypeAlias

    from ConfigSpace import CategoricalHyperparameter as CategoricalContextFeature
    from ConfigSpace import NormalFloatHyperparameter
    from ConfigSpace import UniformFloatHyperparameter as UniformFloatContextFeature
    from ConfigSpace import UniformIntegerHyperparameter as UniformIntegerContextFeature
    from ConfigSpace.hyperparameters import Hyperparameter

    Distribution: TypeAlias = Hyperparameter[Any, Any]
    Declared: TypeAlias = ContextFeature | Distribution
    Declarations: TypeAlias = Iterable[Declared] | Mapping[str, Declared]
else:
    __getattr__ = lazy_names(__name__)


_OPEN_ENDS = "open_ends"
"""In a hyperparameter's `meta`: the bounds that were not given."""

_REACH = 10.0
"""The standard deviations beyond which no value is drawn."""


def NormalFloatContextFeature(  # noqa: N802  # CARL's name, which is of a class there
    name: str,
    mu: float,
    sigma: float,
    lower: float | None = None,
    upper: float | None = None,
    **options: Any,
) -> "NormalFloatHyperparameter":
    """ConfigSpace's normal hyperparameter, whose bounds may be left out, as in CARL's examples.

    Args:
        name: The feature's.
        mu: The mean.
        sigma: The standard deviation.
        lower: The lowest value to draw. By default it is the bound of the feature that a
            `ContextSampler` draws for, if there is one.
        upper: The highest value to draw, with the same default.
        options: ConfigSpace's other options, such as `default_value`.
    """
    reach = _REACH * sigma or 1.0
    given = {"lower": lower, "upper": upper}
    meta: dict[Hashable, Any] = {
        **(options.pop("meta", None) or {}),
        _OPEN_ENDS: [end for end, bound in given.items() if bound is None],
    }
    return libraries.ConfigSpace.NormalFloatHyperparameter(
        name,
        mu,
        sigma,
        lower=(mu if upper is None else min(mu, upper)) - reach if lower is None else lower,
        upper=(mu if lower is None else max(mu, lower)) + reach if upper is None else upper,
        meta=meta,
        **options,
    )


def feature_of(declared: "Declared") -> ContextFeature:
    """Return the feature that a hyperparameter declares; a feature unchanged.

    Raises:
        InvalidContext: The value is neither, or has values that are not plain.
    """
    if isinstance(declared, ContextFeature):
        return declared
    name = getattr(declared, "name", None)
    default = plain_value(getattr(declared, "default_value", None))
    if not isinstance(name, str) or not isinstance(default, Scalar):
        raise InvalidContext(
            f"{declared!r} declares no context feature; give a ContextFeature, or a "
            "hyperparameter of ConfigSpace with plain values."
        )
    choices = _choices(declared)
    if choices is not None:
        return ContextFeature(name=name, default=default, choices=choices)
    lower, upper = (
        None if end in _open_ends(declared) else _finite(getattr(declared, end, None))
        for end in ("lower", "upper")
    )
    return ContextFeature(name=name, default=default, lower=lower, upper=upper)


def named_features(declared: "Declarations") -> tuple[ContextFeature, ...]:
    """Return every feature of a list, or of a mapping from its name.

    Raises:
        InvalidContext: A value is no feature, or stands under another name than its own.
    """
    if not isinstance(declared, Mapping):
        return tuple(feature_of(each) for each in declared)
    named = cast("Mapping[str, Declared]", declared)
    features = {key: feature_of(each) for key, each in named.items()}
    for key, feature in features.items():
        if key != feature.name:
            raise InvalidContext(
                f"The feature {feature.name!r} is listed under {key!r}; use one name for both."
            )
    return tuple(features.values())


def distribution_of(declared: "Declared") -> "Distribution":
    """Return a feature's uniform distribution; a hyperparameter unchanged.

    Raises:
        InvalidContext: The feature has no finite bounds to draw within.
    """
    if not isinstance(declared, ContextFeature):
        feature_of(declared)
        return declared
    name, default = declared.name, declared.default
    choices = (True, False) if isinstance(default, bool) else declared.choices
    if choices is not None:
        return libraries.ConfigSpace.CategoricalHyperparameter(name, choices, default)
    lower, upper = declared.lower, declared.upper
    if lower is None or upper is None or isinstance(default, str):
        raise InvalidContext(
            f"{name}: there is nothing to draw from within [{lower}, {upper}]; give finite bounds, "
            "or a ContextSampler with a distribution for it."
        )
    if isinstance(default, int):
        return libraries.ConfigSpace.UniformIntegerHyperparameter(
            name, math.ceil(lower), math.floor(upper), default
        )
    return libraries.ConfigSpace.UniformFloatHyperparameter(name, lower, upper, default)


def within(distribution: "Distribution", feature: ContextFeature) -> "Distribution":
    """Return a distribution with the feature's bounds for its open ends; any other unchanged.

    Raises:
        InvalidContext: The distribution has no value within the feature's bounds.
    """
    bounds = {
        end: bound
        for end in _open_ends(distribution)
        if (bound := getattr(feature, end)) is not None
    }
    if not bounds:
        return distribution
    normal = cast("NormalFloatHyperparameter", distribution)
    lower = max(normal.lower, bounds.get("lower", normal.lower))
    upper = min(normal.upper, bounds.get("upper", normal.upper))
    if lower >= upper:
        raise InvalidContext(
            f"{feature.name}: a normal distribution around {normal.mu:g} with deviation "
            f"{normal.sigma:g} draws nothing within [{feature.lower}, {feature.upper}]."
        )
    return NormalFloatContextFeature(normal.name, normal.mu, normal.sigma, lower, upper)


def _open_ends(declared: Any) -> list[str]:
    meta: dict[Any, Any] = getattr(declared, "meta", None) or {}
    return list(meta.get(_OPEN_ENDS, ()))


def _choices(declared: Any) -> tuple[Any, ...] | None:
    for attribute in ("choices", "sequence"):
        values = getattr(declared, attribute, None)
        if values is not None:
            return tuple(plain_value(value) for value in values)
    if hasattr(declared, "value"):  # a constant
        return (plain_value(declared.value),)
    return None


def _finite(bound: Any) -> float | None:
    return float(bound) if bound is not None and math.isfinite(bound) else None


class ContextSampler:
    """Draws contexts of an environment.

    Args:
        context_distributions: The features to draw, and how: hyperparameters of ConfigSpace in a
            list or by their names (uniform, normal, categorical …); features, whose values are all
            equally likely; or the path of a ConfigSpace in JSON.
        context_space: The features of the environment. Features that are not drawn keep their
            defaults.
        seed: The same seed gives the same contexts, in any process.
        name: The name of the sampler.

    Attributes:
        context_distributions: The given distributions.

    Raises:
        InvalidContext: A distribution is invalid, or names an unknown feature.
    """

    def __init__(
        self,
        context_distributions: "Declarations | str | Path",
        context_space: ContextSpace,
        seed: int,
        name: str | None = None,
    ) -> None:
        self.context_space = context_space
        self.context_distributions = context_distributions
        self.name = name
        # ConfigSpace draws in the order of names, so the order of a list does not matter.
        self._space: Any = libraries.ConfigSpace.ConfigurationSpace(name=name, seed=seed % 2**32)
        self.add_context_features(_distributions(context_distributions))

    def add_context_features(self, context_features: "Declarations") -> None:
        """Draw more features from now on.

        Raises:
            InvalidContext: A feature is unknown, or is drawn already. Nothing was added.
        """
        distributions = _distributions(context_features)
        known = {feature.name: feature for feature in self.context_space.features}
        drawn = set(self.context_feature_names)
        for each in distributions:
            if each.name not in known:
                problems = self.context_space.problems({each.name: None})
                raise InvalidContext("; ".join(problems) + ".")
            if each.name in drawn:
                raise InvalidContext(f"{each.name} has a distribution already; give one of both.")
            drawn.add(each.name)
        self._space.add([within(each, known[each.name]) for each in distributions])

    def get_context_features(self) -> "list[Distribution]":
        """Return the distribution of each drawn feature, in the order of names."""
        return list(self._space.values())

    @property
    def context_feature_names(self) -> list[str]:
        """The features that are drawn."""
        return [str(name) for name in self._space]

    def sample_contexts(self, n_contexts: int) -> dict[int, Context]:
        """Draw contexts, each complete, under 0, 1, 2 and so on.

        Args:
            n_contexts: The number of contexts.

        Raises:
            InvalidContext: The context space forbids a drawn context, or `n_contexts` is negative.
        """
        if n_contexts < 0:
            raise InvalidContext(f"{n_contexts} contexts cannot be drawn; give 0 or more.")
        if n_contexts == 0:
            return {}
        # A size of 1 will change its meaning in ConfigSpace; without a size it draws one.
        one = n_contexts == 1
        drawn = self._space.sample_configuration(None if one else n_contexts)
        rows = cast("list[Mapping[str, Any]]", [drawn] if one else drawn)
        return {
            i: self.context_space.fill({k: plain_value(v) for k, v in dict(row).items()})
            for i, row in enumerate(rows)
        }


def _distributions(given: "Declarations | str | Path") -> "list[Distribution]":
    if isinstance(given, str | Path):
        if not Path(given).is_file():
            raise InvalidContext(f"There is no context distribution at {str(given)!r}.")
        try:
            space: Any = libraries.ConfigSpace.ConfigurationSpace.from_json(given)
        except (ValueError, AttributeError, KeyError, TypeError) as exc:
            raise InvalidContext(
                f"{str(given)!r} is not a ConfigSpace in JSON: {type(exc).__name__}: {exc}. "
                "Write one with ConfigurationSpace.to_json."
            ) from exc
        return list(space.values())
    if not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]  # authors pass anything
        raise InvalidContext(
            f"context_distributions is a list, a mapping or the path of a ConfigSpace in JSON, not "
            f"{type(given).__name__}."
        )
    if isinstance(given, Mapping):
        return [distribution_of(each) for each in cast("Mapping[str, Declared]", given).values()]
    return [distribution_of(each) for each in given]

"""Features and ConfigSpace's hyperparameters: the same declaration in two libraries' words.

A `ContextFeature` says which values are allowed; a hyperparameter also says how likely each
is. Whatever takes features takes hyperparameters too. ConfigSpace loads where one is used.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base.lazy import lazy_names
from hud_mcp.errors import InvalidContext
from hud_mcp.plugins.gymnasium.carl import libraries
from hud_mcp.values.context import ContextFeature, Scalar

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
    __getattr__ = lazy_names(
        __name__,
        CategoricalContextFeature="ConfigSpace:CategoricalHyperparameter",
        UniformFloatContextFeature="ConfigSpace:UniformFloatHyperparameter",
        UniformIntegerContextFeature="ConfigSpace:UniformIntegerHyperparameter",
    )

__all__ = [
    "CategoricalContextFeature",
    "ContextFeature",
    "NormalFloatContextFeature",
    "UniformFloatContextFeature",
    "UniformIntegerContextFeature",
    "distribution_of",
    "feature_of",
    "named_features",
    "plain_value",
    "within",
]

_OPEN_ENDS = "open_ends"
"""In a hyperparameter's `meta`: which of its bounds nobody gave."""

_REACH = 10.0
"""Standard deviations; what lies beyond is never drawn."""


def NormalFloatContextFeature(  # noqa: N802  # CARL's name, which is of a class there
    name: str,
    mu: float,
    sigma: float,
    lower: float | None = None,
    upper: float | None = None,
    **options: Any,
) -> "NormalFloatHyperparameter":
    """ConfigSpace's normal hyperparameter, whose bounds may be left out, as CARL's examples do.

    Args:
        name: The feature's.
        mu: The mean.
        sigma: The standard deviation.
        lower: The lowest value to draw. By default it is the bound of the feature that a
            `ContextSampler` draws for, if there is one.
        upper: The same.
        options: ConfigSpace's other ones, such as `default_value`.
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


def plain_value(value: Any) -> Any:
    """A NumPy scalar as the Python value that it stands for; anything else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def feature_of(declared: "Declared") -> ContextFeature:
    """The feature that a hyperparameter declares; a feature as it is.

    Raises:
        InvalidContext: It is neither, or its values are not plain ones.
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
    """Every feature of a list, or of a mapping from its name.

    Raises:
        InvalidContext: One is none, or is listed under another name than its own.
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
    """How a feature's values are drawn: each as likely as another; a hyperparameter as it is.

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
    """A distribution whose open ends are the feature's; any other as it is.

    Raises:
        InvalidContext: Nothing of it lies within the feature's bounds.
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

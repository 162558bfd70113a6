"""Features and ConfigSpace's hyperparameters: the same declaration in two libraries' words.

A `ContextFeature` says which values are allowed; a hyperparameter also says how likely each
is. Whatever takes features takes hyperparameters too. ConfigSpace loads where one is used.
"""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.context import ContextFeature, Scalar
from hud_mcp.errors import InvalidContext

if TYPE_CHECKING:
    from typing import TypeAlias

    from ConfigSpace import CategoricalHyperparameter as CategoricalContextFeature
    from ConfigSpace import NormalFloatHyperparameter as NormalFloatContextFeature
    from ConfigSpace import UniformFloatHyperparameter as UniformFloatContextFeature
    from ConfigSpace import UniformIntegerHyperparameter as UniformIntegerContextFeature
    from ConfigSpace.hyperparameters import Hyperparameter

    Distribution: TypeAlias = Hyperparameter[Any, Any]
    Declared: TypeAlias = ContextFeature | Distribution
    Declarations: TypeAlias = Iterable[Declared] | Mapping[str, Declared]

__all__ = [
    "CategoricalContextFeature",
    "NormalFloatContextFeature",
    "UniformFloatContextFeature",
    "UniformIntegerContextFeature",
    "distribution_of",
    "feature_of",
    "named_features",
    "plain_value",
]

_HYPERPARAMETERS = {
    "CategoricalContextFeature": "CategoricalHyperparameter",
    "NormalFloatContextFeature": "NormalFloatHyperparameter",
    "UniformFloatContextFeature": "UniformFloatHyperparameter",
    "UniformIntegerContextFeature": "UniformIntegerHyperparameter",
}


def __getattr__(name: str) -> Any:
    if name not in _HYPERPARAMETERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import ConfigSpace  # noqa: PLC0415  # loads on use

    return getattr(ConfigSpace, _HYPERPARAMETERS[name])


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
    return ContextFeature(
        name=name,
        default=default,
        lower=_finite(getattr(declared, "lower", None)),
        upper=_finite(getattr(declared, "upper", None)),
    )


def named_features(declared: "Declarations") -> tuple[ContextFeature, ...]:
    """Every feature of a list, or of a mapping from its name.

    Raises:
        InvalidContext: One is none, or stands under another name than its own.
    """
    if not isinstance(declared, Mapping):
        return tuple(feature_of(each) for each in declared)
    named = cast("Mapping[str, Declared]", declared)
    features = {key: feature_of(each) for key, each in named.items()}
    for key, feature in features.items():
        if key != feature.name:
            raise InvalidContext(
                f"The feature {feature.name!r} stands under {key!r}; use one name for both."
            )
    return tuple(features.values())


def distribution_of(declared: "Declared") -> "Distribution":
    """How a feature's values are drawn: each as likely as another; a hyperparameter as it is.

    Raises:
        InvalidContext: The feature has no finite bounds to draw within.
    """
    import ConfigSpace  # noqa: PLC0415  # loads on use

    if not isinstance(declared, ContextFeature):
        feature_of(declared)
        return declared
    name, default = declared.name, declared.default
    choices = (True, False) if isinstance(default, bool) else declared.choices
    if choices is not None:
        return ConfigSpace.CategoricalHyperparameter(name, choices, default)
    lower, upper = declared.lower, declared.upper
    if lower is None or upper is None or isinstance(default, str):
        raise InvalidContext(
            f"{name}: there is nothing to draw from within [{lower}, {upper}]; give finite bounds, "
            "or a ContextSampler with a distribution for it."
        )
    if isinstance(default, int):
        return ConfigSpace.UniformIntegerHyperparameter(
            name, math.ceil(lower), math.floor(upper), default
        )
    return ConfigSpace.UniformFloatHyperparameter(name, lower, upper, default)


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

"""Contexts: the chosen values of the features in which one world may differ from another.

This module owns the declaration of features and the checking of values against it.
`selector` and `sampler` build on it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

from pydantic import Field, model_validator

from hud_mcp.errors import InvalidContext, did_you_mean
from hud_mcp.values.action import Value

__all__ = ["Context", "ContextFeature", "ContextSpace", "plain_value"]

_SHOWN = 8
"""How many choices an error lists."""

type_names = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}

Scalar = bool | int | float | str
Context = Annotated[dict[str, Scalar], "context"]
"""Feature name to value. A template's parameter of this type receives its session's context."""


class ContextFeature(Value):
    """One feature: its default, and what other values it may take.

    `default_value` is CARL's name for `default`; you may set and read either.
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    default: Scalar
    lower: float | None = Field(default=None, description="Smallest value, inclusive.")
    upper: float | None = Field(default=None, description="Largest value, inclusive.")
    choices: tuple[Scalar, ...] | None = Field(default=None, description="The only values.")
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read_default_value(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "default_value" not in given:
            return cast("Any", given)
        named = dict(cast("Mapping[str, Any]", given))
        if "default" in named:
            raise ValueError("`default` and `default_value` are the same; give one of them")
        return {"default": named.pop("default_value"), **named}

    @property
    def default_value(self) -> Scalar:
        """The default, under CARL's name."""
        return self.default

    @model_validator(mode="after")
    def _default_is_allowed(self) -> "ContextFeature":
        if wrong := self.problem(self.default):
            raise ValueError(f"the default of {self.name!r} is not allowed: {wrong}")
        return self

    def problem(self, value: Any) -> str | None:
        """Say why a value is not allowed; None if it is."""
        if self.choices is not None:
            # True equals 1, and is no choice where 1 is one.
            same = [c for c in self.choices if c == value and _is_flag(c) == _is_flag(value)]
            return None if same else f"{value!r} is not one of {_few(self.choices)}"
        kind = type(self.default)
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if not fits or (_is_flag(value) and kind is not bool):
            return f"{value!r} is not {type_names[kind]}"
        if kind in (int, float):
            if not (math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63):
                return f"{value!r} is not a finite number, or an integer of more than 64 bits"
            low, high = self.lower, self.upper
            if (low is not None and value < low) or (high is not None and value > high):
                return f"{value!r} is not within [{low}, {high}]"
        return None


def _few(choices: tuple[Scalar, ...]) -> str:
    """Some of many choices, for an error."""
    more = len(choices) - _SHOWN
    return f"{choices[:_SHOWN]} and {more} more" if more > 0 else str(choices)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


class ContextSpace:
    """The features that an environment declares.

    Args:
        features: In the order in which they are shown.
    """

    def __init__(self, features: Iterable[ContextFeature] = ()) -> None:
        self._features: dict[str, ContextFeature] = {}
        for feature in features:
            if feature.name in self._features:
                raise InvalidContext(f"The context feature {feature.name!r} is declared twice.")
            self._features[feature.name] = feature
        self._default = {name: feature.default for name, feature in self._features.items()}

    @property
    def features(self) -> tuple[ContextFeature, ...]:
        """Every feature, in order."""
        return tuple(self._features.values())

    @property
    def default(self) -> Context:
        """Every feature at its default."""
        return dict(self._default)

    def __or__(self, other: "ContextSpace") -> "ContextSpace":
        """Both spaces' features; the other's win where names meet."""
        return ContextSpace({**self._features, **other._features}.values())

    def problems(self, context: Mapping[str, Any]) -> list[str]:
        """Everything that is wrong with a context; empty where it is valid."""
        found: list[str] = []
        for name, value in context.items():
            feature = self._features.get(name)
            if feature is None:
                known = ", ".join(self._features) or "none"
                hint = did_you_mean(name, self._features)
                found.append(f"there is no feature {name!r}.{hint} The features are: {known}")
            elif wrong := feature.problem(value):
                found.append(f"{name}: {wrong}")
        return found

    def fill(self, context: Mapping[str, Any]) -> Context:
        """Complete a context with the defaults.

        Raises:
            InvalidContext: Features are unknown or out of bounds; the text names each.
        """
        if context and (wrong := self.problems(context)):
            raise InvalidContext("Invalid context: " + "; ".join(wrong) + ".")
        return {**self._default, **context}


def plain_value(value: Any) -> Any:
    """Return the Python value of a NumPy scalar; return any other value unchanged."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value

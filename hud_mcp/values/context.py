"""Contexts: the chosen values of the features in which one world may differ from another."""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, cast

from pydantic import Field, model_validator

from hud_mcp.base.reading import Reader
from hud_mcp.base.schema import kind_of
from hud_mcp.errors import InvalidContext, did_you_mean
from hud_mcp.values.action import Value

__all__ = [
    "AbstractSelector",
    "Context",
    "ContextFeature",
    "ContextSelector",
    "ContextSpace",
    "CustomSelector",
    "RandomSelector",
    "RoundRobinSelector",
    "StaticSelector",
    "plain_value",
]


_SHOWN = 8
"""The most choices in an error."""

type_names = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}

Scalar = bool | int | float | str
Context = Annotated[dict[str, Scalar], "context"]
"""Feature name to value. A template's parameter of this type receives its session's context."""


class ContextFeature(Value):
    """One feature: its default, and its other allowed values.

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
        """Return the reason why a value is not allowed; None if it is."""
        if self.choices is not None:
            # True equals 1, and is no choice if only 1 is one.
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
    """Return some of many choices, for an error."""
    more = len(choices) - _SHOWN
    return f"{choices[:_SHOWN]} and {more} more" if more > 0 else str(choices)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


class ContextSpace:
    """The features that an environment declares.

    Args:
        features: The features, in the order in which they are shown.
    """

    def __init__(self, features: Iterable[ContextFeature] = ()) -> None:
        self._features: dict[str, ContextFeature] = {}
        for feature in features:
            if feature.name in self._features:
                raise InvalidContext(f"The context feature {feature.name!r} is declared twice.")
            self._features[feature.name] = feature
        self._default = {name: feature.default for name, feature in self._features.items()}

    @cached_property
    def reader(self) -> Reader:
        """The reader of contexts in the form that clients send."""
        kinds = {name: {"type": kind_of(value)} for name, value in self._default.items()}
        return Reader({"type": "object", "properties": kinds})

    @property
    def features(self) -> tuple[ContextFeature, ...]:
        """Every feature, in order."""
        return tuple(self._features.values())

    @property
    def default(self) -> Context:
        """Every feature at its default."""
        return dict(self._default)

    def __or__(self, other: "ContextSpace") -> "ContextSpace":
        """Return both spaces' features; the other's win for a common name."""
        return ContextSpace({**self._features, **other._features}.values())

    def problems(self, context: Mapping[str, Any]) -> list[str]:
        """Return all faults of a context; empty if it is valid."""
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


class ContextSelector(ABC):
    """Picks one context of a set at each `select`.

    Args:
        contexts: The contexts by any keys. A context's id is its place, from 0.

    Attributes:
        n_calls: The number of `select` calls.
        context_id: The id of the context that was selected last; None before the first.

    Raises:
        InvalidContext: There are no contexts.
    """

    def __init__(self, contexts: Mapping[Any, Context]) -> None:
        self.contexts = contexts
        self.n_calls = 0
        self.context_id: int | None = None

    @property
    def contexts(self) -> Mapping[Any, Context]:
        """The contexts to select from. Setting it may remove the selected context."""
        return self._contexts

    @contexts.setter
    def contexts(self, contexts: Mapping[Any, Context]) -> None:
        if not contexts:
            raise InvalidContext("The selector has no contexts; give at least one.")
        self._contexts = contexts
        if (chosen := getattr(self, "context_id", None)) is not None and chosen >= len(contexts):
            self.context_id = None

    @property
    def context_ids(self) -> list[int]:
        """Every id: the places from 0."""
        return list(range(len(self._contexts)))

    @property
    def contexts_keys(self) -> list[Any]:
        """Every key, in the order of the ids."""
        return list(self._contexts)

    @property
    def context_key(self) -> Hashable | None:
        """The key of the context that was selected last; None before the first."""
        return None if self.context_id is None else self.contexts_keys[self.context_id]

    @property
    def context(self) -> Context | None:
        """The context that was selected last; None before the first."""
        return None if self.context_id is None else self.contexts[self.context_key]

    def seed(self, seed: int) -> None:  # noqa: B027  # most selectors draw nothing
        """Set the seed of random draws. A selector that draws nothing ignores it."""

    def select(self) -> Context:
        """Pick the next context.

        Raises:
            InvalidContext: The selector returned an unknown id, or no context.
        """
        picked: Any = self._select()  # an author's function may return anything
        match picked:
            case (context, chosen) if context is not None:
                pass
            case _:
                raise InvalidContext(
                    f"A selector gives a context and its id, and this one gave {picked!r}."
                )
        self.context_id = self.check_id(chosen)
        self.n_calls += 1
        return context

    def check_id(self, context_id: Any) -> int:
        """Return an id as a plain integer; raise InvalidContext if no context has it."""
        plain = plain_value(context_id)
        if isinstance(plain, bool) or plain not in range(len(self._contexts)):
            raise InvalidContext(
                f"There is no context {plain!r}; the ids are 0 to {len(self._contexts) - 1}."
            )
        return int(plain)

    @abstractmethod
    def _select(self) -> tuple[Context, int]:
        """Return the next context and its id; `context_id` and `n_calls` are those before it."""
        ...

    def _at(self, context_id: int) -> tuple[Context, int]:
        return self.contexts[self.contexts_keys[context_id]], context_id


AbstractSelector = ContextSelector
"""CARL's name."""


class RoundRobinSelector(ContextSelector):
    """Goes through the contexts in order, and starts again after the last one."""

    def _select(self) -> tuple[Context, int]:
        after = 0 if self.context_id is None else self.context_id + 1
        return self._at(after % len(self.contexts))


class StaticSelector(ContextSelector):
    """Stays with the current context; it begins with the first one."""

    def _select(self) -> tuple[Context, int]:
        return self._at(self.context_id or 0)


class RandomSelector(ContextSelector):
    """Draws each context with the same probability.

    Args:
        contexts: The contexts to draw from.
        seed: The seed of the draws; the same seed gives the same contexts in any process. `reset`
            of an environment with a seed starts again from that seed.
    """

    def __init__(self, contexts: Mapping[Any, Context], seed: int | None = None) -> None:
        super().__init__(contexts)
        self._random = random.Random(seed)  # noqa: S311  # nothing is kept secret with it

    def seed(self, seed: int) -> None:
        """Start again from a seed."""
        self._random.seed(seed)

    def _select(self) -> tuple[Context, int]:
        return self._at(self._random.randrange(len(self.contexts)))


class CustomSelector(ContextSelector):
    """Lets a function pick the context.

    Args:
        contexts: The contexts to pick from.
        selector_function: Receives the selector, and returns a context and its id.
    """

    def __init__(
        self,
        contexts: Mapping[Any, Context],
        selector_function: Callable[[ContextSelector], tuple[Context, int]],
    ) -> None:
        super().__init__(contexts)
        self.selector_function = selector_function

    def _select(self) -> tuple[Context, int]:
        return self.selector_function(self)

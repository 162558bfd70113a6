"""Selectors of the next context: in turn, always the same, at random, or by a function of yours.

Selectors know nothing of environments; any set of contexts can use them.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from hud_mcp.errors import InvalidContext
from hud_mcp.values.context import Context, plain_value

__all__ = [
    "AbstractSelector",
    "ContextSelector",
    "CustomSelector",
    "RandomSelector",
    "RoundRobinSelector",
    "StaticSelector",
]


class ContextSelector(ABC):
    """Picks one context of a set at each `select`.

    Args:
        contexts: The contexts by any keys. A context's id is its place, from 0.

    Attributes:
        n_calls: How often `select` was called.
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
        """Take a seed for whatever is drawn at random; a selector that draws nothing ignores it."""

    def select(self) -> Context:
        """Pick the next context.

        Raises:
            InvalidContext: The selector returned an unknown id, or no context.
        """
        picked: Any = self._select()  # of an author's function, which may give anything
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
        """Return an id as a plain integer.

        Raises:
            InvalidContext: No context has it.
        """
        plain = plain_value(context_id)
        if isinstance(plain, bool) or plain not in range(len(self._contexts)):
            raise InvalidContext(
                f"There is no context {plain!r}; the ids are 0 to {len(self._contexts) - 1}."
            )
        return int(plain)

    @abstractmethod
    def _select(self) -> tuple[Context, int]:
        """The next context and its id; `context_id` and `n_calls` are those before it."""
        ...

    def _at(self, context_id: int) -> tuple[Context, int]:
        return self.contexts[self.contexts_keys[context_id]], context_id


AbstractSelector = ContextSelector
"""CARL's name for it."""


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
        contexts: What it draws from.
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
        contexts: What the function may pick from.
        selector_function: Given the selector, returns a context and its id.
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

"""Contexts drawn from distributions: training sets, test sets, and what lies outside."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.errors import InvalidContext
from hud_mcp.plugins.gymnasium.carl import libraries
from hud_mcp.plugins.gymnasium.carl.features import distribution_of, plain_value, within
from hud_mcp.values.context import Context, ContextSpace

if TYPE_CHECKING:
    from hud_mcp.plugins.gymnasium.carl.features import Declarations, Declared, Distribution

__all__ = ["ContextSampler"]


class ContextSampler:
    """Draws contexts.

    Args:
        context_distributions: The features to draw, and how: hyperparameters of ConfigSpace in a
            list or by their names (uniform, normal, categorical …); features, whose values are all
            equally likely; or the path of a ConfigSpace in JSON.
        context_space: The features of the environment. Features that are not drawn keep their
            defaults.
        seed: The same seed gives the same contexts, in any process.
        name: What to call it.

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
        """How each feature that is drawn is distributed, in the order of names."""
        return list(self._space.values())

    @property
    def context_feature_names(self) -> list[str]:
        """The features that are drawn."""
        return [str(name) for name in self._space]

    def sample_contexts(self, n_contexts: int) -> dict[int, Context]:
        """Draw contexts, each complete, under 0, 1, 2 and so on.

        Args:
            n_contexts: How many.

        Raises:
            InvalidContext: The context space forbids a drawn context, or `n_contexts` is negative.
        """
        if n_contexts < 0:
            raise InvalidContext(f"{n_contexts} contexts cannot be drawn; give 0 or more.")
        if n_contexts == 0:
            return {}
        # A size of 1 is about to change its meaning there; without a size it is one.
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

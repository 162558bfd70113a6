"""A number of an option that a comparison and a record can hold."""

import math
from typing import Any

import click

__all__ = ["FiniteFloat"]


class FiniteFloat(click.FloatRange):
    """A range without `nan`, which is on no side of a bound, and `inf`, which JSON cannot hold."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is not a finite number.", param, ctx)
        return found

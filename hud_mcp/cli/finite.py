"""Numbers of options: what a comparison and a record can hold, refused in words of people."""

import math
from typing import Any

import click

__all__ = ["FiniteFloat", "WholeNumber"]


class WholeNumber(click.IntRange):
    """A range of integers; what is none is refused as no whole number."""

    name = "whole number"


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

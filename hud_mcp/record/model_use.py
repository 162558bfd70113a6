"""What a model used: tokens, cost and time, of one session or of many."""

from collections.abc import Iterable
from typing import TypeVar

from pydantic import Field

from hud_mcp.values.action import Value

__all__ = ["ModelUse", "sum_told"]

NumberT = TypeVar("NumberT", int, float)


class ModelUse(Value):
    """The sum over turns; a figure that no turn tells is None, and never 0."""

    turns: int = Field(default=0, description="How many replies of the model are recorded.")
    input: int | None = Field(default=None, description="Tokens in, those from a cache included.")
    output: int | None = Field(default=None, description="Tokens out, reasoning included.")
    cached: int | None = Field(default=None, description="Of those in, read from a cache.")
    cost_usd: float | None = Field(
        default=None, description="In US dollars, of the turns whose cost is known."
    )
    priced: int = Field(default=0, description="How many turns those are.")
    model_s: float = Field(default=0.0, description="Seconds from requests to whole replies.")
    environment_s: float = Field(default=0.0, description="Seconds of all steps.")

    @classmethod
    def sum_of(cls, uses: "Iterable[ModelUse | None]") -> "ModelUse | None":
        """The sum of several; None where there is none."""
        told = [use for use in uses if use is not None]
        if not told:
            return None
        return cls(
            turns=sum(use.turns for use in told),
            input=sum_told(use.input for use in told),
            output=sum_told(use.output for use in told),
            cached=sum_told(use.cached for use in told),
            cost_usd=sum_told(use.cost_usd for use in told),
            priced=sum(use.priced for use in told),
            model_s=sum(use.model_s for use in told),
            environment_s=sum(use.environment_s for use in told),
        )

    def per(self, tasks: int) -> str:
        """The means over so many tasks in one line."""
        parts = [f"{self.turns / tasks:.1f} turns"]
        if self.input is not None or self.output is not None:
            means = [None if n is None else round(n / tasks) for n in (self.input, self.output)]
            parts.append(f"{_told(means[0])} tokens in, {_told(means[1])} out")
        if self.cost_usd is not None:
            parts.append(f"${self.cost_usd / tasks:.4f}")
        times = (
            f"model {self.model_s / tasks:.1f} s, environment {self.environment_s / tasks:.1f} s"
        )
        return "; ".join([*parts, times])

    def __str__(self) -> str:
        """The figures in one line."""
        turns = f"{self.turns} turn" if self.turns == 1 else f"{self.turns} turns"
        parts = [turns]
        if self.input is not None or self.output is not None:
            cached = f" ({self.cached:,} cached)" if self.cached else ""
            parts.append(f"{_told(self.input)} tokens in{cached}, {_told(self.output)} out")
        parts.append(self.cost_text)
        parts.append(f"model {self.model_s:.1f} s, environment {self.environment_s:.1f} s")
        return "; ".join(parts)

    @property
    def cost_text(self) -> str:
        """The cost, and of how many turns it is not known."""
        if self.cost_usd is None:
            return "cost not known"
        unknown = self.turns - self.priced
        of = f" without {unknown} turns of unknown cost" if unknown else ""
        return f"${self.cost_usd:.4f}{of}"


def sum_told(values: "Iterable[NumberT | None]") -> NumberT | None:
    """The sum of those that are told; None where none is."""
    told = [value for value in values if value is not None]
    return sum(told[1:], told[0]) if told else None


def _told(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"

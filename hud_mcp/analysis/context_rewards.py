"""Reward by split and by the values of a feature: figures, and how they are told."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from hud_mcp.analysis.bins import range_text
from hud_mcp.analysis.estimate import Estimate
from hud_mcp.analysis.intervals import (
    interval_text,
)
from hud_mcp.values.action import Value

__all__ = ["Bin", "FeatureRewards", "Gap", "SplitRewards"]


class Bin(Value):
    """The runs under a value of a feature, or under values of a range."""

    label: str
    low: float | None = Field(default=None, description="The smallest value in it; a number's.")
    high: float | None = Field(default=None, description="The largest value in it.")
    at: float | None = Field(default=None, description="The mean value in it.")
    outside: bool = Field(description="Whether no training run has such a value.")
    rewards: dict[str, Estimate] = Field(
        description="By split, as `splits` calls them; those that have runs in it."
    )


class FeatureRewards(Value):
    """Reward by the values of one feature."""

    feature: str
    numeric: bool
    train_low: float | None = Field(default=None, description="The train range's lower end.")
    train_high: float | None = Field(default=None, description="Its upper end.")
    bins: tuple[Bin, ...]
    left_out: int = Field(default=0, description="Values that were too many to be shown.")

    def lines(self, splits: Sequence[str]) -> Iterable[str]:
        """Its table, a line for each bin.

        Args:
            splits: Those that have a column, in order.
        """
        head = self.feature
        if self.train_low is not None and self.train_high is not None:
            head += f", trained on {range_text(self.train_low, self.train_high)}"
        yield head
        width = max(len(b.label) for b in self.bins)
        names = {split: f"{split or 'no split'} " if len(splits) > 1 else "" for split in splits}
        for one in self.bins:
            note = "  outside" if one.outside else ""
            cells = [f"  {names[split]}{_short(one.rewards.get(split)):<30}" for split in splits]
            yield f"  {one.label:>{width}}{''.join(cells)}{note}".rstrip()
        if self.left_out:
            yield f"  {self.left_out} more values"


class SplitRewards(Value):
    """The runs of one split."""

    split: str = Field(description="`train`, another name, or empty where rows name none.")
    mean: Estimate | None = Field(description="None where no run counts.")
    given_up: int = Field(description="Runs that the agent gave up, which count as 0 in the mean.")
    ungraded: int = Field(description="Runs without a reward, which are in no mean.")

    def words(self, confidence: float) -> str:
        """Say its mean in a line, and what it is made of."""
        estimate = self.mean
        if estimate is None:
            return "none graded"
        sure = f"no interval: {estimate.reason}"
        if estimate.low is not None and estimate.high is not None:
            sure = f"{confidence:.0%}: {interval_text(estimate.low, estimate.high)}"
        given_up = f" and {self.given_up} given up, as 0" if self.given_up else ""
        return (
            f"{estimate.value:.3f} ({sure}) over {estimate.runs - self.given_up} graded{given_up}"
        )


class Gap(Value):
    """The mean reward of training less that of a split that was held out."""

    split: str = Field(description="Which.")
    value: float | None = Field(description="None where there is none; `reason` says why.")
    low: float | None = Field(default=None, description="The interval's lower end, where known.")
    high: float | None = Field(default=None, description="Its upper end.")
    reason: str | None = Field(default=None, description="Why there is no interval, or no gap.")
    tasks: int = Field(description="How many tasks have a part in it.")

    def words(self, confidence: float) -> str:
        """Say it in a line, with its interval or why it has none."""
        if self.value is None:
            return f"none: {self.reason}"
        if self.low is None or self.high is None:
            return f"{self.value:+.3f} (no interval: {self.reason})"
        return (
            f"{self.value:+.3f} ({confidence:.0%}: {interval_text(self.low, self.high, sign='+')})"
        )


def _short(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    interval = " [no interval]"
    if estimate.low is not None and estimate.high is not None:
        interval = f" [{interval_text(estimate.low, estimate.high, digits=2)}]"
    return f"{estimate.value:.3f}{interval} n={estimate.runs}"

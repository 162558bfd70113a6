"""What `prune` has removed of a session, or of a job: the marker that stays in its place."""

from datetime import datetime

from pydantic import Field

from hud_mcp.record.model_use import ModelUse
from hud_mcp.values.action import Value

__all__ = ["Pruning"]


class Pruning(Value):
    """What was removed, when, and by which rule."""

    at: datetime
    rule: str = Field(description="As it was given, such as `older than 90d`.")
    grade_kept: bool = Field(
        description="Whether the task and the grade stayed; else the run counts nowhere."
    )
    runs: int = Field(default=0, description="Of a job: how many runs lost their grades.")
    steps: int = 0
    turns: int = 0
    lines: int = Field(default=0, description="Of the log.")
    use: ModelUse | None = Field(
        default=None, description="What its model had used, where the grade stays."
    )

    def after(self, earlier: "Pruning | None") -> "Pruning":
        """The same with what an earlier one had removed."""
        if earlier is None:
            return self
        return self.model_copy(
            update={
                "steps": self.steps + earlier.steps,
                "turns": self.turns + earlier.turns,
                "lines": self.lines + earlier.lines,
                "use": (self.use or earlier.use) if self.grade_kept else None,
            }
        )

    def __str__(self) -> str:
        """What was removed, in a sentence."""
        counts = [(self.steps, "step"), (self.turns, "turn"), (self.lines, "line of log")]
        parts = [_count(number, noun) for number, noun in counts if number]
        if self.runs:
            parts = [f"the grades of {_count(self.runs, 'run')}", *parts]
        what = ", ".join(parts) or "nothing else"
        grade = "the grade stays" if self.grade_kept else "the grade was removed too"
        grade = "" if self.runs else f"; {grade}"
        return f"pruned on {self.at:%Y-%m-%d} ({self.rule}): {what}{grade}"


def _count(number: int, noun: str) -> str:
    if number != 1:
        noun = noun.replace("line", "lines") if " " in noun else f"{noun}s"
    return f"{number:,} {noun}"

"""How a command in a shell ended."""

from dataclasses import dataclass

from hud_mcp.sandbox import Finished

__all__ = ["CommandResult", "how_ended"]


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    Attributes:
        exit_code: 0 for success; as shells tell it, 128 and the signal's number where one ended
            it: 137 for what was killed.
        output: What it wrote, on both streams; the middle is left out where it was long.
        stopped: Why it was stopped from outside, or None.
    """

    exit_code: int
    output: str
    stopped: str | None = None

    def __str__(self) -> str:
        """The output and, where it was no success, how it ended."""
        if self.stopped is not None:
            end = f"[stopped: {self.stopped}]"
        elif self.exit_code == 0:
            end = "" if self.output else "[exit code 0, no output]"
        else:
            end = f"[exit code {self.exit_code}]"
        return "\n".join(part for part in (self.output.rstrip("\n"), end) if part)


def how_ended(finished: Finished) -> str:
    """How a command that was run ended, in a few words."""
    if finished.reason is not None:
        return f"stopped: {finished.reason}"
    return f"exit code {finished.code}"

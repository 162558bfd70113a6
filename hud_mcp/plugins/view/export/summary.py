"""What an export wrote and what it could not, counted while it runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hud_mcp import __version__
from hud_mcp.plugins.view.export.encoding import to_json
from hud_mcp.record.trajectory import Trajectory

__all__ = ["ExportSummary", "OnProgress", "Tally"]

OnProgress = Callable[[int, int], None]
"""Called with how many trajectories are done, and of how many."""


@dataclass(frozen=True)
class ExportSummary:
    """The result of an export.

    Attributes:
        format: Its name.
        path: The file or folder that was written.
        trajectories: How many are in it.
        steps: How many steps they have together.
        pictures: How many different screenshots are in it.
        missing_pictures: How many were recorded, and have no file or a damaged one now; they
            are exported as absent.
        running: How many of the trajectories had not ended.
        damaged: The trajectories that could not be read, with what is wrong with each; they
            are not in it.
    """

    format: str
    path: Path
    trajectories: int
    steps: int
    pictures: int
    missing_pictures: int
    running: int
    damaged: tuple[str, ...]

    def __str__(self) -> str:
        """One line for people."""
        counts = [
            _count(self.trajectories, "trajectory", "trajectories"),
            _count(self.steps, "step", "steps"),
            _count(self.pictures, "picture", "pictures"),
        ]
        notes = [
            f"{number} {text}"
            for number, text in (
                (self.missing_pictures, "pictures missing or damaged, exported as absent"),
                (self.running, "not ended yet"),
                (len(self.damaged), "left out as damaged"),
            )
            if number
        ]
        return "; ".join([", ".join(counts), *notes]) + "."


@dataclass
class Tally:
    """The counts of an export under way."""

    trajectories: int = 0
    steps: int = 0
    running: int = 0
    pictures: set[str] = field(default_factory=set[str])
    missing: set[str] = field(default_factory=set[str])
    damaged: list[str] = field(default_factory=list[str])

    def add(self, trajectory: Trajectory) -> None:
        """Count a trajectory that was written."""
        self.trajectories += 1
        self.steps += len(trajectory.steps)
        self.running += trajectory.receipt is None

    def manifest(self, kind: str, source_id: str) -> str:
        """What a folder says of itself, as JSON: it is an export, of what, and what it lacks."""
        return to_json(
            {
                "format": kind,
                "source": source_id,
                "exported_by": f"hud-mcp {__version__}",
                "trajectories": self.trajectories,
                "steps": self.steps,
                "missing_pictures": sorted(self.missing),
                "damaged": self.damaged,
            }
        )

    def summary(self, kind: str, path: Path) -> ExportSummary:
        """The counts, once all is written."""
        return ExportSummary(
            format=kind,
            path=path,
            trajectories=self.trajectories,
            steps=self.steps,
            pictures=len(self.pictures),
            missing_pictures=len(self.missing),
            running=self.running,
            damaged=tuple(self.damaged),
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"

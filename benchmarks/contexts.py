"""Print what each feature of each contextual environment does to a trajectory.

The actions and the seed are the same for the default and for the other value; what differs
is the one feature. A limit is moved to where the trajectory reaches it.

    python benchmarks/contexts.py [NAME …] [--markdown]
"""

import argparse
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "carl")]

from context_changes import Change, change_of, features_of  # noqa: E402  # a folder of its own

from hud_mcp.carl import ENVIRONMENTS  # noqa: E402  # the tree that this file is in

COLUMNS = ("environment", "feature", "default", "value", "from step", "state", "return", "steps")


def row(name: str, change: Change) -> list[str]:
    """One feature as a row of the table."""
    first = "never" if change.first_step is None else str(change.first_step)
    return [
        name,
        change.feature.name,
        shown(change.feature.default),
        shown(change.value),
        first,
        f"{change.state:.3g}",
        " → ".join(f"{value:.4g}" for value in change.returns),
        " → ".join(map(str, change.lengths)),
    ]


def shown(value: float | str) -> str:
    """A value in few digits."""
    return value if isinstance(value, str) else f"{value:.4g}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(ENVIRONMENTS), metavar="NAME")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*already returned terminated.*")
    rows = [
        row(name, change_of(name, feature))
        for name in options.names
        for feature in features_of(name)
    ]
    if options.markdown:
        print("|", " | ".join(COLUMNS), "|")
        print("|", " | ".join("---" for _ in COLUMNS), "|")
        print(*(f"| {' | '.join(cells)} |" for cells in rows), sep="\n")
        return
    widths = [max(len(cells[i]) for cells in [list(COLUMNS), *rows]) for i in range(len(COLUMNS))]
    for cells in [list(COLUMNS), *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)))


if __name__ == "__main__":
    main()

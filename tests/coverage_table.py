"""What `make prove` prints of the intervals: each cell, and the table of `docs/statistics.md`.

The cells come with the reports of their tests, whichever worker ran them.
"""

from collections import defaultdict

import pytest

__all__ = ["pytest_terminal_summary"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both, where a test recorded a cell."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    cells = [
        value
        for report in sorted(reports, key=lambda r: r.location[:2])
        for name, value in report.user_properties
        if name == "coverage" and report.when == "call"
    ]
    if not cells:
        return
    terminalreporter.section("how often the intervals hold the truth")
    least: dict[str, dict[str, float]] = defaultdict(dict)
    for figure, rewards, size, covered, replications in cells:
        how = f"{replications:,} drawn" if replications else "exact"
        terminalreporter.write_line(f"| {figure} | {rewards} | {size} | {covered:.3f} | {how} |")
        least[figure][size] = min(covered, least[figure].get(size, 1.0))
    terminalreporter.section("the table of docs/statistics.md", sep="-")
    terminalreporter.write_line("| figure | tasks | least share covered |")
    for figure, by_size in least.items():
        sizes = sorted(by_size, key=lambda size: [int(n) for n in size.split(" and ")])
        shares = ", ".join(f"{by_size[size]:.3f}" for size in sizes)
        terminalreporter.write_line(f"| {figure} | {', '.join(sizes)} | {shares} |")

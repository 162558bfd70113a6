"""A skipped test fails where what it lacks was to be installed: under `make test`, and in CI.

A test that no installation would help says so: its reason begins with `not on this machine: `.
"""

import os
from collections.abc import Generator
from typing import NoReturn

import pytest

__all__ = ["ELSEWHERE", "pytest_make_collect_report", "pytest_runtest_makereport", "skip_here"]

ELSEWHERE = "not on this machine: "
"""What begins a reason that no installation would change."""

VARIABLE = "HUD_MCP_TEST_ALL"


def skip_here(reason: str) -> NoReturn:
    """Skip for what this machine is, and not for what is not installed on it."""
    pytest.skip(ELSEWHERE + reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge the skip of a test."""
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the skip of a whole file."""
    report = yield
    _judge(report)
    return report


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a failure of a skip that an installation would have spared."""
    if not report.skipped or hasattr(report, "wasxfail") or not _everything_is_there():
        return
    # pytest gives a skip as (file, line, "Skipped: why").
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = found.removeprefix("Skipped: ")
    if reason.startswith(ELSEWHERE):
        return
    report.outcome = "failed"
    report.longrepr = (
        f"This test was skipped: {reason}\nEverything that it needs is to be installed by "
        f"`make test` (scripts/install.py). Where no installation would help, its reason begins "
        f"with {ELSEWHERE!r}."
    )


def _everything_is_there() -> bool:
    return os.environ.get(VARIABLE, "") not in ("", "0") or os.environ.get("CI") == "true"

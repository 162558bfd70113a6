"""The page on outcomes is true: its program runs, and its table has every outcome and cause."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import BrokenByAgent
from hud_mcp.values.outcome import INTERRUPTED, Cause, Outcome, cause_of

pytestmark = pytest.mark.anyio

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "outcomes.md").read_text("utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| `")
]


class Page:
    """What a template asks of its browser, which the agent has or has not broken."""

    def __init__(self, *, broken: bool) -> None:
        self._broken = broken

    async def text(self) -> str:
        """The words of the page."""
        if self._broken:
            raise BrokenByAgent("The page has no root element.")
        return "tea"


@pytest.mark.parametrize(("broken", "reward"), [(False, 1.0), (True, 0.25)])
async def test_the_template_of_the_page_grades_what_there_is(
    *, broken: bool, reward: float
) -> None:
    """With a page that can be read, and with one that the agent broke."""
    program = PROGRAMS[0]
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(program, "page.py", "exec"), names)  # the page's own program
    template = names["env"].templates["write"]
    generator: AsyncGenerator[Any, Any] = template.function(browser=Page(broken=broken))
    with anyio.fail_after(PATIENCE_S):
        assert "Write 'tea'" in await anext(generator)
        assert await generator.asend("1") == reward
        await generator.aclose()


def test_the_table_has_every_outcome_with_the_cause_that_it_has_by_itself() -> None:
    """And each other cause that an ending of the code names."""
    told = {(re.findall(r"`(\w+)`", row[0])[0], row[1].strip("`")) for row in ROWS}
    assert told >= {(outcome.value, cause_of(outcome).value) for outcome in Outcome}
    assert {outcome for outcome, _ in told} == {outcome.value for outcome in Outcome}
    assert {cause for _, cause in told} == {cause.value for cause in Cause}


def test_what_is_counted_as_interrupted_is_what_the_table_says() -> None:
    """Cancelled and expired, where the cause is not the agent's."""
    for row in ROWS:
        outcome, cause = re.findall(r"`(\w+)`", row[0])[0], row[1].strip("`")
        cut_short = outcome in ("cancelled", "expired") and cause != "agent"
        assert (row[3] == f"`{INTERRUPTED}`") == cut_short, row
        stands = cause == "agent" or outcome == "grading_failed"
        assert (row[4] == "no") == stands, row

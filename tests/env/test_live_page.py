"""Every program of the page on the live environment runs, and prints what stands below it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from peers import ROOT, child_environment
from places import PATIENCE_S

import hud_mcp

PAGE = ROOT / "docs" / "live.md"
PROGRAMS = re.findall(
    r"```python\n(.*?)```\n(?:\nIt prints:\n)?\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL
)


def test_each_program_of_the_page_is_found_with_its_output() -> None:
    """None is left out because its output is missing."""
    page = PAGE.read_text()
    saved = re.findall(r"`\w+\.py`:\n\n```python", page)  # a file, which a command below runs
    assert (len(PROGRAMS), len(saved)) == (2, 1)
    assert page.count("```python") == len(PROGRAMS) + len(saved)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_page_prints_what_stands_below_it(number: int, tmp_path: Path) -> None:
    """As a reader runs it, with nothing on standard error."""
    program, output = PROGRAMS[number]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=child_environment(HUD_MCP_STORE=str(tmp_path / "store.sqlite3")),
    )
    assert (done.stdout, done.stderr) == (output, "")


def test_every_name_of_the_page_s_table_exists() -> None:
    """A table of names that are not there would mislead."""
    table = PAGE.read_text().partition("## Names")[2]
    names = re.findall(r"`(hud_mcp\.[\w.]+)`", table)
    assert len(names) > 12
    for name in names:
        found = hud_mcp
        for part in name.split(".")[1:]:
            found = getattr(found, part)

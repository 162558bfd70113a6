"""The page on jobs: its example runs."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jobs.md"


def test_the_example_of_the_page_runs() -> None:
    """Each block of Python on it, as it stands."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})  # the page's own

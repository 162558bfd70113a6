"""Where public sets come from: one version of each, which docs/benchmarks.md names."""

import re
from pathlib import Path

from tables import each_of

from hud_mcp.loading.public import SETS
from hud_mcp.plugins.sets.files import published

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"


@each_of("title", sorted(SETS))
def test_a_set_is_fetched_from_one_commit_that_the_page_names(title: str) -> None:
    """A branch would give other rows tomorrow, under the same name."""
    base = published(title).base
    if not base:  # it is drawn by a package
        return
    commits = re.findall(r"(?<=/)[0-9a-f]{40}$", base)
    assert len(commits) == 1, base
    assert f"`{commits[0][:12]}`" in PAGE.read_text()

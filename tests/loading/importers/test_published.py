"""Where public sets come from: one version of each, which docs/benchmarks.md names."""

import re
from pathlib import Path

from tables import each_of

from hud_mcp.loading.published import PUBLISHED, Published

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"


@each_of("published", PUBLISHED, ids=lambda each: each.key)
def test_a_set_is_fetched_from_one_commit_that_the_page_names(published: Published) -> None:
    """A branch would give other rows tomorrow, under the same name."""
    if not published.base:  # it is drawn by a package
        return
    commits = re.findall(r"(?<=/)[0-9a-f]{40}$", published.base)
    assert len(commits) == 1, published.base
    assert f"`{commits[0][:12]}`" in PAGE.read_text()

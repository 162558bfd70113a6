"""One page from disk: of a job, or of one of its trajectories alone."""

import asyncio
import re
from pathlib import Path

import pytest
from recording import START, Recorded, shot

from hud_mcp.plugins.view.export import export_html
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


async def test_a_page_has_the_whole_job(record: Recorded, tmp_path: Path) -> None:
    """And nothing that it would have to fetch."""
    await record.add("price-lamp", [{"see": shot("red")}])
    await record.add("price-mug", outcome=Outcome.EXPIRED)
    out = tmp_path / "out" / "page.html"
    summary = await export_html(record.store, "job-1", out)
    page = out.read_text(encoding="utf-8")
    assert "price-lamp" in page
    assert "price-mug" in page
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page)
    assert (summary.trajectories, summary.pictures) == (2, 1)


async def test_a_page_of_one_trajectory_has_no_other(record: Recorded, tmp_path: Path) -> None:
    """With its log as it was, its pictures and its result; the store is as before."""
    logs = ["one", "two\nlines", "three"]
    await record.add("price-lamp", [{"see": shot("red")}], logs=logs)
    await record.add("price-mug")
    before = await record.store.load_trajectory("traj-0")
    out = tmp_path / "page.html"
    await export_html(record.store, "traj-0", out)
    page = out.read_text(encoding="utf-8")
    assert "price-lamp" in page
    assert "price-mug" not in page
    for line in (f"{START:%H:%M:%S} one", "two\\nlines", f"{START:%H:%M:%S} three"):
        assert line in page
    assert shot("red").sha256 in page
    assert await record.store.load_trajectory("traj-0") == before


async def test_a_damaged_trajectory_is_left_out_of_the_page(
    record: Recorded, tmp_path: Path
) -> None:
    """And named in the summary."""
    await record.add("price-lamp")
    await record.add("price-mug", [{"see": shot()}])
    record.edit("UPDATE steps SET row = '{\"index\": 0,'")
    out = tmp_path / "page.html"
    summary = await export_html(record.store, "job-1", out)
    page = out.read_text(encoding="utf-8")
    assert "price-lamp" in page
    assert "price-mug" not in page
    assert len(summary.damaged) == 1
    assert "step 0 of traj-1" in summary.damaged[0]


async def test_a_page_counts_its_missing_pictures(record: Recorded, tmp_path: Path) -> None:
    """Each once."""
    await record.add(steps=[{"see": shot("red")}, {"see": shot("red")}, {"see": shot("blue")}])
    await asyncio.to_thread(record.file_of(shot("red")).unlink)
    summary = await export_html(record.store, "job-1", tmp_path / "page.html")
    assert (summary.pictures, summary.missing_pictures) == (1, 1)

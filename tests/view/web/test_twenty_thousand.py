"""A job of 20,000 runs of 50 steps: what is sent, drawn and held for its page is bounded."""

import gzip
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from many_runs import LARGE, SMALL, make_many
from playwright.async_api import Browser, Page, expect
from recorded import opened
from waiting import PATIENCE_S

pytestmark = [pytest.mark.anyio, pytest.mark.scale, pytest.mark.browser]

RUNS = 20_000
MOST_MB = 2_000
"""Of the record, with its pictures."""

MOST_SERVER_MB = 220
"""What the server holds after everything here; one that loads all rows has more."""

MOST_PAGE_MB = 20
MOST_REPLY_BYTES = 60_000
MOST_NODES = 6_000


@dataclass
class Viewer:
    """`hud-mcp view` in a process of its own."""

    url: str
    pid: int

    @property
    def memory_mb(self) -> float:
        """What it has held at most."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0]) / 1000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record."""
    folder = tmp_path_factory.mktemp("twenty")
    make_many(str(folder / "store.sqlite3"), trajectories=RUNS, steps=50, pictures=100)
    return folder


@pytest.fixture(scope="module")
def viewer(place: Path) -> Iterator[Viewer]:
    """The command, on that record."""
    command = [sys.executable, "-m", "hud_mcp", "view", "--store", str(place / "store.sqlite3")]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield Viewer(process.stdout.readline().split()[0], process.pid)
        finally:
            process.terminate()


@pytest.fixture
async def asking(viewer: Viewer) -> AsyncIterator[httpx.AsyncClient]:
    """A client that takes compressed replies."""
    async with httpx.AsyncClient(base_url=viewer.url, timeout=PATIENCE_S) as client:
        yield client


def test_the_record_fits(place: Path) -> None:
    """Pictures are shared: a million steps take less than 2 GB."""
    sizes = [path.stat().st_size for path in place.rglob("*") if path.is_file()]
    assert sum(sizes) < MOST_MB * 1e6
    assert len(sizes) > 100


async def test_no_reply_grows_with_the_job(viewer: Viewer, asking: httpx.AsyncClient) -> None:
    """The head, and each way to look at rows, is sent in few bytes, compressed."""
    head = await asking.get("/api/job", params={"id": LARGE})
    assert head.json()["total"] == RUNS
    questions = [
        {}, {"find": "lamp 77"}, {"sort": "reward", "descending": "yes"}, {"start": "19900"},
        {"by": "skill", "open": "0,1,2,3,4,5"}, {"by": "task"}, {"pick": "[0.5,0.6)"},
        {"outcome": "expired"},
    ]  # fmt: skip
    for asked in questions:
        told = {"id": LARGE, "count": "100", **asked}
        async with asking.stream("GET", "/api/rows", params=told) as reply:
            sent = b"".join([part async for part in reply.aiter_raw()])
            assert reply.headers["content-encoding"] == "gzip"
        assert len(sent) < MOST_REPLY_BYTES, asked
        assert b'"rows":[' in gzip.decompress(sent)
    assert int(head.headers["content-length"]) < MOST_REPLY_BYTES
    assert viewer.memory_mb < MOST_SERVER_MB


async def test_the_page_holds_few_rows_whatever_is_looked_at(
    viewer: Viewer, browser: Browser
) -> None:
    """Filters, orders, groups and the last page leave a bounded document and a bounded memory."""
    async with opened(browser, f"{viewer.url}#job-{LARGE}") as seen:
        page, shown = seen.page, seen.page.locator("#shown")
        await expect(shown).to_have_text("20,000 runs", timeout=PATIENCE_S * 1000)
        await expect(page.locator("#page-place")).to_have_text("1 to 100 of 5,000 rows")
        await assert_bounded(page)
        await page.get_by_label("Group by").select_option("")
        await expect(page.locator("#page-place")).to_have_text("1 to 100 of 20,000 rows")
        await assert_bounded(page)
        await page.locator("#find").fill("lamp 777")
        await expect(shown).to_have_text("4 of 20,000 runs shown", timeout=PATIENCE_S * 1000)
        await page.locator("#find").fill("")
        await expect(shown).to_have_text("20,000 runs", timeout=PATIENCE_S * 1000)
        await page.locator("#column-reward button").click()
        await expect(page.locator("#rows td.reward").first).to_have_text("0")
        await page.locator("#last-page").click()
        await expect(page.locator("#page-place")).to_have_text("19,901 to 20,000 of 20,000 rows")
        await expect(page.locator("#rows td.reward").last).to_have_text("none")
        await assert_bounded(page)
        await page.get_by_label("Group by").select_option("skill")
        await page.locator("#fold-all").click()
        await expect(page.locator("#page-place")).to_have_text(re.compile(r"of 3\d,\d{3} rows"))
        await assert_bounded(page)
    assert viewer.memory_mb < MOST_SERVER_MB


async def test_a_run_is_gone_through_by_key_without_its_job(
    viewer: Viewer, browser: Browser
) -> None:
    """Its steps and its neighbours are asked for, and no row of the job."""
    asked: list[str] = []
    async with opened(browser, f"{viewer.url}#traj-tr-{LARGE}-00007") as seen:
        page = seen.page
        page.on("request", lambda request: asked.append(request.url))
        await expect(page.locator("#position")).to_have_text("1 / 50")
        for number in range(2, 22):
            await page.keyboard.press("ArrowRight")
            await expect(page.locator("#position")).to_have_text(f"{number} / 50")
        await expect(page.locator("#next-trajectory")).to_have_attribute(
            "href", re.compile("00008$"), timeout=PATIENCE_S * 1000
        )
        await page.keyboard.press("j")
        await expect(page.locator("#position")).to_have_text("1 / 50")
        await expect(page).to_have_url(re.compile("00008"))
    paths = {re.sub(r"\?.*", "", url.removeprefix(viewer.url)) for url in asked}
    assert not paths & {"api/job", "api/rows", "api/jobs"}
    assert paths


async def test_many_jobs_that_are_looked_at_leave_the_memory_bounded(
    viewer: Viewer, asking: httpx.AsyncClient
) -> None:
    """Each is read again and again, and only a few are kept."""
    for _ in range(3):
        for job in (LARGE, "job-fewer", SMALL):
            assert (await asking.get("/api/job", params={"id": job})).status_code == 200
            assert (await asking.get("/api/rows", params={"id": job})).status_code == 200
    assert viewer.memory_mb < MOST_SERVER_MB


async def assert_bounded(page: Page) -> None:
    """Few rows, few elements, and few megabytes of what scripts hold."""
    assert 0 < await page.locator("#rows tr").count() <= 100
    assert await page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("HeapProfiler.collectGarbage")
    held = await devtools.send("Runtime.getHeapUsage")
    assert held["usedSize"] / 1e6 < MOST_PAGE_MB
    await devtools.detach()

"""How long the page of a job of 20,000 runs of 50 steps takes, beside one of 100 runs.

Prints the time until its rows are drawn, until a filter, an order and a page turn have their rows,
and of 20 steps by key; the bytes that each took, and the memory of the server and of the page. The
job of 100 runs is in the same store, and is looked at in the same browser: how busy the machine is
changes both alike.

    python benchmarks/job_page.py [STORE]

STORE is a record that `many_trajectories.py` has made; without it, one is made and removed.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from many_trajectories import LARGE, SMALL, Size, make_record
from playwright.async_api import Page, async_playwright, expect

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
MOST_RATIO = 20.0
"""A few times what is measured; a page that reads all rows is far beyond it."""

PATIENCE_MS = 60_000


class Watched:
    """A page, the bytes that it was sent, and the server that sends them."""

    def __init__(self, page: Page, url: str, server: int) -> None:
        self.page = page
        self.url = url
        self.server = server
        self.received = 0
        self.runs = "20,000"

    async def count(self) -> None:
        """Begin to count what is received, compressed as it is."""
        devtools = await self.page.context.new_cdp_session(self.page)
        await devtools.send("Network.enable")
        devtools.on("Network.loadingFinished", self._finished)

    def _finished(self, told: dict[str, float]) -> None:
        self.received += int(told["encodedDataLength"])

    async def rows(self, words: str) -> None:
        """Wait until the table says so."""
        await expect(self.page.locator("#shown")).to_have_text(words, timeout=PATIENCE_MS)
        await self.page.locator("#rows tr").first.wait_for()

    async def took(self, what: str, do: Callable[[], Awaitable[object]]) -> float:
        """Do something; print how long it took, and what was received."""
        self.received, began_s = 0, time.monotonic()
        await do()
        took_s = time.monotonic() - began_s
        print(f"{what:<44} {took_s:7.2f} s  {self.received / 1000:8.0f} kB")
        return took_s

    async def heap_mb(self) -> float:
        """What the page's scripts hold, once what they do not need is gone."""
        devtools = await self.page.context.new_cdp_session(self.page)
        await devtools.send("HeapProfiler.collectGarbage")
        return (await devtools.send("Runtime.getHeapUsage"))["usedSize"] / 1e6


def main() -> int:
    """Measure, print, and fail where a long job's page took too many times a short one's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", nargs="?")
    given = parser.parse_args()
    if given.store:
        return asyncio.run(measure(given.store))
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store.sqlite3"
        make_record(store, Size())
        return asyncio.run(measure(store))


async def measure(store: str) -> int:
    """Look at both jobs as a person does."""
    async with watched(store) as seen:
        at_rest_mb = resident_mb(seen.server)
        short_s = await seen.took("job of 100 runs", lambda: open_job(seen, SMALL, "100 runs"))
        short_mb = resident_mb(seen.server)
        print(
            f"{'memory of the server, before and then':<44} {at_rest_mb:4.0f} MB, {short_mb:.0f} MB"
        )
        long_s = await seen.took("job of 20,000 runs", lambda: open_job(seen, LARGE, "20,000 runs"))
        await look_at(seen)
        print(f"{'memory of the server':<44} {resident_mb(seen.server):7.0f} MB")
        print(f"{'memory of the page, its scripts':<44} {await seen.heap_mb():7.0f} MB")
    ratio = long_s / short_s
    print(
        f"the long job's page takes {ratio:.1f} times as long as the short one's (≤ {MOST_RATIO:g})"
    )
    return int(ratio > MOST_RATIO)


async def open_job(seen: Watched, job: str, words: str) -> None:
    """Open a job's page, as from a bookmark."""
    await seen.page.goto("about:blank")
    await seen.page.goto(f"{seen.url}#job-{job}")
    await seen.rows(words)


async def look_at(seen: Watched) -> None:
    """List all runs, find, filter, sort, turn a page, group, and go through a run by key."""
    page = seen.page

    async def list_runs() -> None:
        await page.get_by_label("Group by").select_option("")
        await page.locator("#rows th a").first.wait_for()

    async def find() -> None:
        await page.locator("#find").fill("lamp 777")
        await seen.rows(f"4 of {seen.runs} runs shown")

    async def filter_outcome() -> None:
        await page.locator("#find").fill("")
        await page.locator("#outcome").select_option("environment_failed")
        await expect(page.locator("#rows td.outcome").last).to_have_text("environment failed")
        await expect(page.locator("#shown")).not_to_have_text(f"4 of {seen.runs} runs shown")

    async def sort() -> None:
        await page.locator("#outcome").select_option("")
        await page.locator("#column-seconds button").click()
        await page.locator("#column-seconds[aria-sort=ascending]").wait_for()
        await seen.rows(f"{seen.runs} runs")

    async def turn() -> None:
        await page.locator("#next-page").click()
        await expect(page.locator("#page-place")).to_have_text(re.compile("^101 to 200"))

    async def step() -> None:
        for number in range(20):
            await page.keyboard.press("ArrowRight")
            await expect(page.locator("#position")).to_have_text(f"{number + 2} / 50")
        await page.evaluate("Promise.all([...document.images].map(image => image.decode()))")

    await seen.took("list runs one by one", list_runs)
    await seen.took("find a text", find)
    await seen.took("only one outcome", filter_outcome)
    await seen.took("sort by seconds", sort)
    await seen.took("the next page of rows", turn)
    await seen.took("open a run", lambda: open_run(page))
    await seen.took("20 steps by key", step)


async def open_run(page: Page) -> None:
    """Open the first run that is listed."""
    await page.locator("#rows th a").first.click()
    await expect(page.locator("#position")).to_have_text("1 / 50")


@asynccontextmanager
async def watched(store: str) -> AsyncIterator[Watched]:
    """The viewer in a process of its own, and a browser that looks at it."""
    command = [sys.executable, "-m", "hud_mcp", "view", "--store", store, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: ASYNC220  # before anything else runs
        try:
            assert server.stdout
            url = server.stdout.readline().split()[0]
            async with async_playwright() as driver:
                arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
                browser = await driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
                seen = Watched(await browser.new_page(), url, server.pid)
                await seen.count()
                yield seen
                await browser.close()
        finally:
            server.terminate()


def resident_mb(pid: int) -> float:
    """The memory that a process has."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1000


if __name__ == "__main__":
    raise SystemExit(main())

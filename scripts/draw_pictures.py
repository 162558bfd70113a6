"""Draws the pictures of the pages: one recorded trajectory as a page, and as a moving picture.

It runs a real task in a real Chromium. The record's times are set to fixed ones, so that two runs
draw the same steps, times and marks.

Usage: draw_pictures.py, run by an interpreter that has the package and a Chromium. It replaces both
files in `docs/pictures/`.
"""

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from playwright.async_api import async_playwright

from hud_mcp import Job, Trajectory, export_gif, load_job
from hud_mcp.plugins.view.web.report import write_report
from hud_mcp.store import Store
from hud_mcp.worlds.browser.chromium import find_chromium

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
TASK = "shop-buy-lamp"
STEP = 7
START = datetime(2026, 1, 12, 9, tzinfo=UTC)
SIZE = {"width": 1200, "height": 760}


async def main() -> None:
    """Record the task, give its record fixed times, and draw it."""
    with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
        recorded = Path(folder) / "recorded.sqlite3"
        await anyio.to_thread.run_sync(record, recorded)
        store = Store(Path(folder) / "store.sqlite3", screenshots=recorded.parent / "screenshots")
        try:
            name = await copy_with_fixed_times(recorded, store)
            report = await write_report(store, "job-0123456789ab", Path(folder) / "report.html")
            await photograph(f"{report.as_uri()}#{name}/step-{STEP}", PICTURES / "trajectory.png")
            await export_gif(store, name, PICTURES / "trajectory.gif", width_px=760, force=True)
        finally:
            await store.close()


def record(path: Path) -> None:
    """Run the task by its oracle."""
    command = [sys.executable, "-m", "hud_mcp", "eval", "quickstart", "--agent", "oracle"]
    options = ["--filter", TASK, "--seed", "7", "--store", str(path)]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)


async def copy_with_fixed_times(path: Path, store: Store) -> str:
    """Write the trajectory into another store as if each step had taken its share of 12 s."""
    source = Store(path)
    try:
        (listed,) = await source.list_jobs()
        (found,) = await (await load_job(listed.id, source)).load_trajectories()
    finally:
        await source.close()
    job = Job(id="job-0123456789ab", name="quickstart", taskset="quickstart", agent="oracle")
    await store.add_job(job, [found.task])
    made = fixed(found.model_copy(update={"id": "traj-0123456789abcdef", "job_id": job.id}))
    await store.add_session(made, secret_digest="0" * 64, principal=None)
    await store.set_prompt(made.id, made.prompt or "")
    for step in made.steps:
        await store.add_step(made.id, step)
    if made.receipt is not None:
        await store.end_session(made.id, made.receipt)
    return made.id


def fixed(found: Trajectory) -> Trajectory:
    """The same trajectory at fixed times."""
    at = [START + timedelta(seconds=1.1 * number) for number in range(len(found.steps) + 1)]
    steps = tuple(
        step.model_copy(update={"started_at": begun, "ended_at": begun + timedelta(seconds=0.8)})
        for step, begun in zip(found.steps, at, strict=False)
    )
    end = {"started_at": START, "ended_at": at[-1]}
    receipt = found.receipt and found.receipt.model_copy(update=end)
    return found.model_copy(update={**end, "steps": steps, "receipt": receipt})


async def photograph(address: str, path: Path) -> None:
    """Draw a page as it is shown by day."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox"] if root else []
        )
        page = await browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        await page.goto(address)
        await page.wait_for_selector("html[data-rendered]")
        await page.wait_for_function("document.querySelectorAll('#film img').length > 5")
        await page.evaluate("Promise.all([...document.images].map(each => each.decode()))")
        await page.screenshot(path=path)
        await browser.close()


if __name__ == "__main__":
    anyio.run(main)

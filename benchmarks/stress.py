"""Whether clicks hit what scripts move, on a busy machine, as plain Playwright's do.

    python benchmarks/stress.py [--pages FOLDER] [--seeds 2] [--sessions 8] [--burners 2]

Pages of MiniWoB++ that scripts animate or build (`pip install miniwob`, or `--pages` with its
`html` folder), three ways in the same run: this package with one action a call, this package with
all that is known at once in one batch, and Playwright. All sessions run at once while other
processes take the processors. Each page is given the same few clicks each way. Printed are the
reward and how many clicks were taken; a difference in reward fails.

Not every page ends by these clicks: what a person would solve by watching has no reward here
(`None`), and only the clicks tell of it. The flight forms of MiniWoB are left out.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

from hud_mcp import Environment
from hud_mcp.action import Action, ActionEffect, ClickAction
from hud_mcp.errors import ActionFailed
from hud_mcp.session.live_world import HeldWorld
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.browser.chromium import find_chromium

BEGIN = """seed => {
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = 1000000;
  core.startEpisodeReal();
}"""
REWARD = "() => window.WOB_DONE_GLOBAL ? window.WOB_RAW_REWARD_GLOBAL : null"

# What is clicked on each page, found by a script of the page, as selectors in order. Pages that
# need a person's eye on something that never stands still (chase-circle, hover-shape,
# simon-says) are in for what both ways make of a press that comes too late.
PLANS: Mapping[str, str] = {
    "click-pie": """() => {
      const want = core.getUtterance().match(/"(.+)"/)[1];
      const titles = [...document.querySelectorAll('svg text[id*="-title-"]')];
      const item = titles.find(title => title.textContent === want);
      return ['[id$="-spreader"]', '#' + item.id];
    }""",
    "moving-items": """() =>
      [...document.querySelectorAll('.item')].slice(0, 2).map(item => '#' + item.id)""",
    "chase-circle": "() => ['#circ']",
    "hover-shape": "() => ['svg >> nth=0']",
    "simon-says": "() => ['#area svg >> nth=0']",
    "stock-market": "() => ['#buy']",
    "terminal": "() => ['#terminal']",
    "click-collapsible": "() => ['#area h3 >> nth=0', '#subbtn']",
    "click-collapsible-2": "() => ['#area h3 >> nth=0']",
    "click-menu": "() => ['#menu > li >> nth=0']",
    "click-widget": "() => ['#area button >> nth=0', '#subbtn']",
    "click-dialog": "() => ['.ui-dialog-titlebar-close']",
    "click-dialog-2": """() => {
      const want = core.getUtterance().match(/labeled "(.+)"/)[1];
      return [want === 'x' ? '.ui-dialog-titlebar-close' : `.ui-dialog button:text-is("${want}")`];
    }""",
    "click-button": """() => {
      const want = core.getUtterance().match(/"(.+)"/)[1];
      return [`#area button:text-is("${want}") >> nth=0`];
    }""",
    "click-tab": """() => {
      const want = core.getUtterance().match(/Tab #(\\d)/)[1];
      return [`a[href="#tabs-${want}"]`];
    }""",
}
BOUND_MS = 5000

Result = tuple[float | None, int]
"""The reward, and how many clicks were taken."""


@dataclass(frozen=True)
class Run:
    """One page, one seed."""

    name: str
    seed: int


def burn() -> None:
    """Take a processor."""
    while True:
        sum(range(10_000))


def pages(given: Path | None) -> Path:
    """The folder with MiniWoB's pages."""
    if given is not None:
        return given
    found = find_spec("miniwob")
    if found is None or not found.submodule_search_locations:
        sys.exit("MiniWoB++ is not installed: run `pip install miniwob`, or give --pages.")
    return Path(found.submodule_search_locations[0]) / "html"


async def begin(page: Any, run: Run) -> list[str]:
    """Start an episode, and return what is to be clicked."""
    await page.wait_for_function("() => window.core && window.WOB_TASK_READY !== undefined")
    await page.evaluate(BEGIN, run.seed)
    await page.wait_for_function("() => window.WOB_TASK_READY")
    return await page.evaluate(PLANS[run.name])


async def reward(page: Any) -> float | None:
    """What the page gives; None where it still waits."""
    return await page.evaluate(REWARD)


async def ours(shared: Shared, folder: Path, run: Run, *, batched: bool) -> Result:
    """Solve it with this package."""
    spec = Browser(folder, start=f"/miniwob/{run.name}.html")
    held = HeldWorld(
        Environment("stress", world=spec), replayable=False, over=lambda: "over", log=print
    )
    world: Any = await held.open(Opening(shared=shared))
    try:
        selectors = await begin(world.page, run)
        taken: list[ActionEffect] = []
        actions: Sequence[Action] = [ClickAction(selector=each) for each in selectors]
        for batch in [actions] if batched else [[each] for each in actions]:
            try:
                await held.act(batch, taken.append)
            except ActionFailed:
                break
        return await reward(world.page), len(taken)
    finally:
        await held.close()


async def plain(browser: Any, address: str, run: Run) -> Result:
    """Solve it with Playwright, as its documentation shows it."""
    from playwright.async_api import Error  # noqa: PLC0415  # ours loads it lazily too

    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = await context.new_page()
        taken = 0
        await page.goto(f"{address}/miniwob/{run.name}.html")
        for selector in await begin(page, run):
            try:
                await page.click(selector, timeout=BOUND_MS)
            except Error:
                break
            taken += 1
        return await reward(page), taken
    finally:
        await context.close()


async def together(
    runs: Sequence[Run], sessions: int, solve: Callable[[Run], Awaitable[Result]]
) -> dict[Run, Result]:
    """Solve all of them, so many at once."""
    rewards: dict[Run, Result] = {}
    limit = anyio.CapacityLimiter(sessions)

    async def one(run: Run) -> None:
        async with limit:
            with anyio.fail_after(180):
                rewards[run] = await solve(run)

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(one, run)
    return rewards


async def main(folder: Path, runs: Sequence[Run], sessions: int) -> int:
    """Run all three ways, print their rewards, and return how many differ."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  # ours loads it lazily too

    shared = Shared()
    site = await Browser(folder, start=None).open(Opening(shared=shared))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_chromium())
        try:
            address = site.site_address
            peer = await together(runs, sessions, lambda run: plain(browser, address, run))
            single = await together(
                runs, sessions, lambda run: ours(shared, folder, run, batched=False)
            )
            batched = await together(
                runs, sessions, lambda run: ours(shared, folder, run, batched=True)
            )
        finally:
            await browser.close()
            await site.close()
            await shared.close()
    print(f"| {'page':20} | seed | Playwright | one by one | batched |")
    print(f"|{'-' * 22}|-----:|-----------:|-----------:|--------:|")
    differing = 0
    for run in runs:
        row = peer[run], single[run], batched[run]
        same = len({given for given, _taken in row}) == 1
        differing += not same
        cells = " | ".join(f"{f'{given} ({taken})':>10}" for given, taken in row)
        print(f"| {run.name:20} | {run.seed:4} | {cells} |{'' if same else ' differs'}")
    judged = sum(peer[run][0] is not None for run in runs)
    print(f"{len(runs)} runs each way, {judged} of them with a reward, {differing} differ")
    return differing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--only", help="names of pages, with commas")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--burners", type=int, default=2)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(PLANS)
    burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(options.burners)]
    for burner in burners:
        burner.start()
    try:
        todo = [Run(name, seed) for name in names for seed in range(options.seeds)]
        failed = anyio.run(main, pages(options.pages), todo, options.sessions)
    finally:
        for burner in burners:
            burner.terminate()
    sys.exit(1 if failed else 0)

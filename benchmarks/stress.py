"""Whether actions reach what scripts move, on a busy machine, as plain Playwright's do.

    python benchmarks/stress.py [--pages FOLDER] [--seeds 2] [--sessions 8] [--burners 2] [--full]

Every page of MiniWoB++ that its scripts animate (`pip install miniwob`, or `--pages` with its
`html` folder), three ways in the same run: this package with one action a call, this package with
all that one look gave in one batch, and Playwright. All sessions run at once while other processes
take the processors. The same plan looks at the page each way; see `stress_plans.py`. Printed are
the reward and how many actions were taken; a difference in reward fails.

`--full` runs five seeds of each page. What is left out, or has no reward that two runs could
share, is named at the end with its reason.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import anyio
from stress_plans import LEFT_OUT, PLANS, PREPARATIONS, UNJUDGED

from hud_mcp import Environment
from hud_mcp.errors import ActionFailed
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.values.action import (
    Action,
    ActionEffect,
    ClickAction,
    DragAction,
    MoveAction,
    Point,
    PressAction,
    TypeAction,
)
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.browser.chromium import find_chromium

BEGIN = """seed => {
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = 1000000;
  core.startEpisodeReal();
}"""
REWARD = "() => window.WOB_DONE_GLOBAL ? window.WOB_RAW_REWARD_GLOBAL : null"

BOUND_MS = 20_000
FULL_SEEDS = 5
READY_MS = 120_000

Result = tuple[float | None, int]
"""The reward, and how many actions were taken."""


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
    try:
        package = distribution("miniwob")
    except PackageNotFoundError:
        sys.exit("MiniWoB++ is not installed: run `pip install miniwob`, or give --pages.")
    return Path(str(package.locate_file("miniwob/html")))


def path_of(name: str) -> str:
    """Where a page is on the site."""
    kind, _, airline = name.partition(".")
    return f"/flight/{airline}/wrapper.html" if airline else f"/miniwob/{kind}.html"


async def begin(page: Any, run: Run) -> None:
    """Start an episode."""
    ready = "() => window.core && window.WOB_TASK_READY !== undefined"
    await page.wait_for_function(ready, timeout=READY_MS)
    if run.name in PREPARATIONS:
        await page.evaluate(PREPARATIONS[run.name])
    await page.evaluate(BEGIN, run.seed)
    await page.wait_for_function("() => window.WOB_TASK_READY", timeout=READY_MS)


async def reward(page: Any) -> float | None:
    """What the page gives; None where it still waits."""
    return await page.evaluate(REWARD)


async def ours(shared: Shared, folder: Path, run: Run, *, batched: bool) -> Result:
    """Solve it with this package."""
    spec = Browser(folder, start=path_of(run.name))
    held = LiveWorld(Environment("stress", world=spec), replayable=False, log=print)
    world: Any = await held.open(Opening(shared=shared))
    taken: list[ActionEffect] = []
    try:
        await begin(world.page, run)
        async with aclosing(PLANS[run.name](world.page)) as steps:
            async for actions in steps:
                for batch in [actions] if batched else [[each] for each in actions]:
                    await held.act(batch, taken.append)
        return await reward(world.page), len(taken)
    except ActionFailed as exc:
        note(run, exc)
        return await reward(world.page), len(taken)
    finally:
        await held.close()


async def plain(browser: Any, address: str, run: Run) -> Result:
    """Solve it with Playwright, as its documentation shows it."""
    from playwright.async_api import Error  # noqa: PLC0415  # ours loads it lazily too

    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    taken = 0
    try:
        await page.goto(address + path_of(run.name))
        await begin(page, run)
        async with aclosing(PLANS[run.name](page)) as steps:
            async for actions in steps:
                for action in actions:
                    await perform(page, action)
                    taken += 1
        return await reward(page), taken
    except Error as exc:
        note(run, exc)
        return await reward(page), taken
    finally:
        await context.close()


async def perform(page: Any, action: Action) -> None:
    """Do with Playwright what an action says."""
    match action:
        case ClickAction(selector=str() as selector):
            await page.click(selector, timeout=BOUND_MS)
        case ClickAction(point=Point() as point):
            await page.mouse.click(point.x, point.y)
        case MoveAction(selector=str() as selector):
            await page.hover(selector, timeout=BOUND_MS)
        case PressAction():
            await page.keyboard.press("+".join(action.keys))
        case TypeAction():
            if action.selector is not None:
                await page.locator(action.selector).clear(timeout=BOUND_MS)
            await page.keyboard.type(action.text)
            if action.enter_after:
                await page.keyboard.press("Enter")
        case DragAction():
            first, *rest = action.path
            await page.mouse.move(first.x, first.y)
            await page.mouse.down()
            for point in rest:
                await page.mouse.move(point.x, point.y, steps=10)
            await page.mouse.up()
        case _:
            raise ValueError(f"No plan has an action of type {action.type!r}.")


def note(run: Run, exc: Exception) -> None:
    """Say on the console which action was refused."""
    print(f"{run.name} {run.seed}: {str(exc).partition(chr(10))[0][:200]}", file=sys.stderr)


async def together(
    runs: Sequence[Run], sessions: int, solve: Callable[[Run], Awaitable[Result]]
) -> dict[Run, Result]:
    """Solve all of them, so many at once."""
    rewards: dict[Run, Result] = {}
    limit = anyio.CapacityLimiter(sessions)

    async def one(run: Run) -> None:
        async with limit:
            with anyio.fail_after(600):
                rewards[run] = await solve(run)

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(one, run)
    return rewards


def tell(given: float | None) -> str:
    """A reward in few characters."""
    return "none" if given is None else f"{given:.2g}"


async def main(folder: Path, runs: Sequence[Run], sessions: int) -> int:
    """Run all three ways, print their rewards, and return how many differ."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  # ours loads it lazily too

    shared = Shared()
    shared.contention.start()
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
            shared.contention.stop()
            await shared.close()
    print(f"| {'page':27} | seed | Playwright | one by one | batched    |")
    print(f"|{'-' * 29}|-----:|-----------:|-----------:|-----------:|")
    differing = judged = 0
    for run in runs:
        row = peer[run], single[run], batched[run]
        same = len({given for given, _taken in row}) == 1 or run.name in UNJUDGED
        differing += not same
        judged += all(given is not None for given, _taken in row) and run.name not in UNJUDGED
        cells = " | ".join(f"{tell(given)} ({taken})".rjust(10) for given, taken in row)
        print(f"| {run.name:27} | {run.seed:4} | {cells} |{'' if same else ' differs'}")
    for name, why in {**UNJUDGED, **LEFT_OUT}.items():
        print(f"{name} {'has no reward here' if name in UNJUDGED else 'is left out'}: {why}.")
    print(f"{len(runs)} runs each way, {judged} of them with a reward, {differing} differ")
    return differing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--only", help="names of pages, with commas")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds of each page")
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--burners", type=int, default=2)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(PLANS)
    seeds = max(options.seeds, FULL_SEEDS) if options.full else options.seeds
    burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(options.burners)]
    for burner in burners:
        burner.start()
    try:
        todo = [Run(name, seed) for name in names for seed in range(seeds)]
        failed = anyio.run(main, pages(options.pages), todo, options.sessions)
    finally:
        for burner in burners:
            burner.terminate()
    sys.exit(1 if failed else 0)

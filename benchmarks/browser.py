"""How long a browser's session takes to open and a step takes to do, beside its peers.

    python benchmarks/browser.py [--rounds 15] [--mcp PATH/TO/@playwright/mcp/cli.js]
                                 [--pictures FOLDER]

Three ways of doing the same on the same Chromium and the same pages, one after the other
in every round, so that whatever else the machine does hits all of them: this package,
Playwright used the obvious way, and Playwright's MCP server over stdio. Medians in ms.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.values.action import ClickAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld
from hud_mcp.worlds.browser.chromium import find_chromium

BUTTON = "<button id=b onclick='n.textContent++'>Add</button><p id=n>0</p>"
STATIC = f"<title>Static</title><h1>Static</h1>{BUTTON}<p>A short page.</p>"

Times = dict[tuple[str, str], list[float]]


def moderate() -> str:
    """A page of 25 KB of accessibility text: a shop's list with filters."""
    rows = "".join(
        f"<tr><td>{i}</td><td><a href='/item{i}'>Item number {i}, a thing of some use</a></td>"
        f"<td style='color:#777;font-size:11px'>SKU-{i * 7919 % 10007:05d} · in stock</td>"
        f"<td>{i * 37 % 100}.99 €</td><td><input type=checkbox aria-label='Choose {i}'></td>"
        f"<td><button>Buy {i}</button></td></tr>"
        for i in range(90)
    )
    style = (
        "body{font:12px sans-serif;margin:16px;background:linear-gradient(#fff,#dfe9f5)}"
        "td{border-bottom:1px solid #ccc;padding:3px 8px}h1{font-size:18px}"
        "button{border-radius:6px;border:1px solid #88a;background:#eef;box-shadow:0 1px 3px #aaa}"
    )
    return f"<title>Shop</title><style>{style}</style><h1>Shop</h1>{BUTTON}<table>{rows}</table>"


class Mcp:
    """Playwright's MCP server, spoken to over stdio in the plainest way."""

    def __init__(self, cli: str, executable: str, folder: str | None = None) -> None:
        """Start it; it writes files to the folder in which it runs."""
        options = ["--headless", "--isolated", "--no-sandbox", "--executable-path", executable]
        self.process = subprocess.Popen(
            [
                "node",
                cli,
                *options,
                "--viewport-size",
                "1280x800",
                "--allow-unrestricted-file-access",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        self.number = 0
        info = {"name": "benchmark", "version": "1"}
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.request("initialize", start)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: dict[str, Any]) -> None:
        """Send a line."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and read until its answer."""
        self.number += 1
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.number:
                if "error" in message or message["result"].get("isError"):
                    raise RuntimeError(line[:300])
                return message["result"]
        raise RuntimeError("the server ended")

    async def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return its text."""
        params = {"name": tool, "arguments": arguments}
        result = await anyio.to_thread.run_sync(self.request, "tools/call", params)
        return "".join(block.get("text", "") for block in result["content"])

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate()


async def timed(times: Times, key: tuple[str, str], work: Callable[[], Awaitable[Any]]) -> Any:
    """Do something, and note how long it took."""
    began = time.perf_counter()
    result = await work()
    times[key].append((time.perf_counter() - began) * 1000)
    return result


async def ours(times: Times, shared: Shared, folder: Path) -> None:
    """Open, click, look, with this package."""
    look = Look(image="png")

    async def begin() -> BrowserWorld:
        world = await Browser(folder).open(Opening(shared=shared))
        await world.observe(look)
        return world

    blank = Browser(folder, start=None)
    taken = await timed(
        times, ("take a page", "hud-mcp"), lambda: blank.open(Opening(shared=shared))
    )
    await reserve_of(taken).until_filled()
    await taken.close()
    world = await timed(times, ("open a session", "hud-mcp"), begin)

    async def step() -> None:
        await world.act(ClickAction(selector="#b"))
        await world.observe(look)

    async def step_jpeg() -> None:
        await world.act(ClickAction(selector="#b"))
        await world.observe(Look(image="jpeg"))

    async def step_changes() -> None:
        await world.act(ClickAction(selector="#b"))
        await world.observe(Look(changes=True))

    await step()
    for _ in range(3):
        await timed(times, ("click, text, PNG", "hud-mcp"), step)
        await timed(times, ("click, text, JPEG", "hud-mcp"), step_jpeg)
        await timed(times, ("click, text", "hud-mcp"), step_changes)
    await timed(times, ("close a session", "hud-mcp"), world.close)
    await reserve_of(world).until_filled()


def reserve_of(world: BrowserWorld) -> Any:
    """What prepares the pages of a world's browser."""
    return world._calls.reserve  # noqa: SLF001  # only who measures it waits for it


async def plain(times: Times, browser: Any, url: str) -> None:
    """The same with Playwright, as its documentation shows it."""

    async def begin() -> Any:
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        page = await context.new_page()
        await page.goto(url)
        await page.aria_snapshot(mode="ai")
        await page.screenshot()
        return page

    async def open_page() -> Any:
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        return await context.new_page()

    taken = await timed(times, ("take a page", "Playwright"), open_page)
    await taken.context.close()
    page = await timed(times, ("open a session", "Playwright"), begin)

    async def step(**picture: Any) -> None:
        await page.click("#b")
        await page.aria_snapshot(mode="ai")
        if picture:
            await page.screenshot(**picture)

    await step(type="png")
    for _ in range(3):
        await timed(times, ("click, text, PNG", "Playwright"), lambda: step(type="png"))
        jpeg = {"type": "jpeg", "quality": 80}
        await timed(times, ("click, text, JPEG", "Playwright"), lambda: step(**jpeg))  # noqa: B023
        await timed(times, ("click, text", "Playwright"), step)
    await timed(times, ("close a session", "Playwright"), page.context.close)


async def over_mcp(times: Times, mcp: Mcp, url: str) -> None:
    """The same through Playwright's MCP server; its click returns a text of what changed."""
    name = "@playwright/mcp"

    async def begin() -> str:
        await mcp.call("browser_navigate", url=url)
        text = await mcp.call("browser_snapshot")
        await mcp.call("browser_take_screenshot", type="png")
        return text

    text = await timed(times, ("open a session", name), begin)
    ref = text.partition('button "Add" [')[2].partition("]")[0]

    async def step(kind: str | None) -> None:
        await mcp.call("browser_click", element="Add", target=ref)
        await mcp.call("browser_snapshot")
        if kind:
            await mcp.call("browser_take_screenshot", type=kind)

    await step("png")
    for kind, label in (("png", "PNG"), ("jpeg", "JPEG")):
        await timed(times, (f"click, text, {label}", name), lambda: step(kind))  # noqa: B023
    await timed(times, ("click, text", name), lambda: step(None))
    await timed(times, ("close a session", name), lambda: mcp.call("browser_close"))


def show(title: str, times: Times) -> None:
    """Print a table of medians, with what part of Playwright's time ours is."""
    names = list(dict.fromkeys(name for _, name in times))
    print(f"\n{title}, medians in ms\n")
    print(
        f"| {'operation':18} | " + " | ".join(f"{n:>15}" for n in [*names, "of Playwright"]) + " |"
    )
    print(f"|{'-' * 20}|" + "|".join("-" * 16 + ":" for _ in [*names, ""]) + "|")
    for what in dict.fromkeys(what for what, _ in times):
        cells = [times.get((what, n)) for n in names]
        row = [f"{statistics.median(c):.0f}" if c else "" for c in cells]
        mine, theirs = (times.get((what, n)) for n in ("hud-mcp", "Playwright"))
        part = statistics.median(mine) / statistics.median(theirs) if mine and theirs else None
        row.append(f"{part:.2f}" if part else "")
        print(f"| {what:18} | " + " | ".join(f"{r:>15}" for r in row) + " |")


async def pictures(world: BrowserWorld, title: str, folder: Path | None) -> None:
    """Print what a picture costs in each format."""
    print(f"\nPicture of the {title} page, 1280x800\n\n| format | KB | ms |\n|---|--:|--:|")
    for name, look in {
        "png": Look(text=False, image="png"),
        "jpeg q80": Look(text=False, image="jpeg", quality=80),
        "jpeg q60": Look(text=False, image="jpeg", quality=60),
    }.items():
        spent: list[float] = []
        image = None
        for _ in range(9):
            began = time.perf_counter()
            image = (await world.observe(look)).image
            spent.append((time.perf_counter() - began) * 1000)
        if image is None:
            raise RuntimeError("no picture")
        print(f"| {name} | {len(image.data) / 1024:.0f} | {statistics.median(spent):.0f} |")
        if folder:
            path = folder / f"{title}-{name.replace(' ', '-')}.{image.extension}"
            path.write_bytes(image.data)


@asynccontextmanager
async def peers(cli: str | None) -> AsyncIterator[tuple[Shared, Any, Mcp | None]]:
    """This package's shared services, Playwright's browser, and its MCP server."""
    from playwright.async_api import async_playwright  # noqa: PLC0415  # ours loads it lazily too

    executable = find_chromium()
    shared = Shared()
    mcp = Mcp(cli, executable) if cli and executable else None
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable)
        try:
            yield shared, browser, mcp
        finally:
            await shared.close()
            await browser.close()
            if mcp:
                mcp.close()


async def main(rounds: int, cli: str | None, picture_folder: Path | None) -> None:
    """Measure, and print."""
    async with peers(cli) as (shared, browser, mcp):
        for title, html in (("static", STATIC), ("moderate", moderate())):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "index.html").write_text(html)
                world = await Browser(folder).open(Opening(shared=shared))
                text = (await world.observe(Look(max_text_chars=1_000_000))).text or ""
                times: Times = defaultdict(list)
                for number in range(rounds + 1):
                    noted = times if number else defaultdict(list)  # the first warms everything up
                    await ours(noted, shared, folder)
                    await plain(noted, browser, world.site_address)
                    if mcp:
                        await over_mcp(noted, mcp, world.site_address)
                show(f"The {title} page ({len(text) / 1024:.0f} KB of text)", times)
                await pictures(world, title, picture_folder)
                await world.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--mcp", help="cli.js of @playwright/mcp")
    parser.add_argument("--pictures", type=Path, help="keep the pictures there")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        anyio.run(main, given.rounds, given.mcp, given.pictures)

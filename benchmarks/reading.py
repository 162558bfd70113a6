"""The size of a page's text, beside Playwright's snapshot of the same page in the same run.

    python benchmarks/reading.py [--tokens PATH/TO/node_modules]

The pages are those of the shipped sites, and three that are made here. For each: the characters of
its visible words and of its fields' values, of the snapshot, and of our text; then what each has
beyond those words. With gpt-tokenizer of npm in a folder, tokens are counted too.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hud_mcp.loading.source import load_environments
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld

WORDS = """() => document.body.innerText + ' ' + [...document.querySelectorAll('input, textarea')]
  .map(each => each.type === 'password' ? '' : each.value).join(' ')"""

SHIPPED = {
    "browser": (
        "/shop/", "/shop/?category=Kitchen", "/shop/product/?id=heron-desk-lamp", "/shop/cart/",
        "/admin/tickets/", "/admin/customers/", "/admin/settings/", "/board/", "/board/activity/",
    ),
    "web": (
        "/wiki/", "/wiki/?view=pages", "/wiki/?view=recent", "/mail/#inbox", "/mail/#drafts",
        "/mail/#contacts", "/mail/#settings", "/booking/", "/booking/trips/", "/booking/vouchers/",
    ),
}  # fmt: skip

MADE = {
    "table of 120 rows": "<h1>Stock</h1><table><tr><th>Item<th>Price<th></tr>"
    + "".join(
        f"<tr><td><a href='/item/{i}'>Item {i}</a><td>{i * 7} EUR"
        f"<td><button aria-label='Buy Item {i}'>Buy</button></tr>"
        for i in range(120)
    )
    + "</table>",
    "form of 25 fields": "<h1>Order</h1><form>"
    + "".join(f"<p><label>Field {i} <input value='value {i}'></label></p>" for i in range(25))
    + "<label>Country <select>"
    + "".join(f"<option>Country {i}</option>" for i in range(60))
    + "</select></label><button>Send</button></form>",
    "article of 20 sections": "<h1>Article</h1>"
    + "".join(
        f"<h2>Section {i}</h2><p>It has some words, <a href='/a/{i}'>a link {i}</a>, and more of "
        f"them. Then <a href='/b/{i}'>another one</a> follows, <b>in bold</b>.</p>"
        for i in range(20)
    ),
}


@dataclass(frozen=True)
class Measured:
    """One page: the texts of it, and the time that ours took."""

    name: str
    words: str
    snapshot: str
    text: str
    text_ms: float


async def measured(name: str, world: BrowserWorld) -> Measured:
    """Read the shown page in each way."""
    look = Look(max_text_chars=1_000_000)
    await world.observe(look)
    begun = time.perf_counter()
    text = (await world.observe(look)).text or ""
    took_ms = (time.perf_counter() - begun) * 1000
    words = " ".join(str(await world.page.evaluate(WORDS)).split())
    snapshot = await world.page.locator("body").aria_snapshot(mode="ai")
    return Measured(name, words, snapshot, text, took_ms)


async def pages(shared: Shared) -> AsyncIterator[Measured]:
    """Read each page once."""
    for source, paths in SHIPPED.items():
        (environment,) = load_environments([source])
        opening = Opening(
            folder=environment.folder, shared=shared, context={}, seed=1, log=lambda _line: None
        )
        world = await environment.world.open(opening)
        assert isinstance(world, BrowserWorld)
        for path in paths:
            await world.goto(path)
            yield await measured(path, world)
        await world.close()
    for name, html in MADE.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "site").mkdir()
            (Path(folder) / "site" / "index.html").write_text(f"<title>{name}</title>{html}")
            opening = Opening(
                folder=Path(folder), shared=shared, context={}, seed=1, log=lambda _line: None
            )
            world = await Browser("site").open(opening)
            yield await measured(name, world)
            await world.close()


def tokens_of(texts: Sequence[str], modules: str) -> list[int]:
    """Count the tokens of texts by gpt-tokenizer."""
    program = (
        "const { encode } = require('gpt-tokenizer'); const texts = JSON.parse(require('fs')"
        ".readFileSync(0)); console.log(JSON.stringify(texts.map(text => encode(text).length)))"
    )
    done = subprocess.run(
        ["node", "-e", program],
        input=json.dumps(texts).encode(),
        capture_output=True,
        check=True,
        env={"NODE_PATH": modules, "PATH": "/usr/local/bin:/usr/bin:/bin"},
    )
    return json.loads(done.stdout)


def report(found: Sequence[Measured], sizes: Sequence[Sequence[int]], unit: str) -> None:
    """Print a row for each page, and the medians."""
    print(f"\n{unit:<28}{'words':>8}{'snapshot':>10}{'text':>8}{'whole':>8}{'beyond':>8}{'ms':>8}")
    wholes: list[float] = []
    beyonds: list[float] = []
    for each, (words, snapshot, text) in zip(found, sizes, strict=True):
        whole, beyond = text / snapshot, (text - words) / max(1, snapshot - words)
        wholes.append(whole)
        beyonds.append(beyond)
        print(
            f"{each.name[:28]:<28}{words:>8}{snapshot:>10}{text:>8}{whole:>8.2f}{beyond:>8.2f}"
            f"{each.text_ms:>8.0f}"
        )
    print(
        f"{'median':<28}{'':>26}{statistics.median(wholes):>8.2f}{statistics.median(beyonds):>8.2f}"
    )
    print(f"{'largest':<28}{'':>26}{max(wholes):>8.2f}{max(beyonds):>8.2f}")


async def main() -> None:
    """Read the pages, and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", help="a node_modules folder with gpt-tokenizer")
    given = parser.parse_args()
    shared = Shared()
    found = [each async for each in pages(shared)]
    await shared.close()
    texts = [(each.words, each.snapshot, each.text) for each in found]
    report(found, [[len(text.encode()) for text in each] for each in texts], "bytes")
    if given.tokens:
        flat = tokens_of([text for each in texts for text in each], given.tokens)
        report(found, [flat[i : i + 3] for i in range(0, len(flat), 3)], "tokens")


if __name__ == "__main__":
    asyncio.run(main())

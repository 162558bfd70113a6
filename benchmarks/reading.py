"""The sizes of all that a model reads: of pages beside @playwright/mcp, and of conversations.

    npm install --prefix FOLDER @playwright/mcp@0.0.83 gpt-tokenizer@4.0.0
    python benchmarks/reading.py --modules FOLDER/node_modules [--only TEXT] [--pages]

The pages are those of the shipped sites, filled as their tasks fill them, and three that are made
here. Both read the same page from the same server, each in its own Chromium: this package's text
without a limit, and the answer of `browser_snapshot`. Their words are those that a person sees, and
the values of fields. "Beyond" is the rest of our text, as a part of the rest of the snapshot.

A conversation is that of an oracle on a row of the quickstart taskset, by `reading_talks.py`.
`reading_before.json` has the sizes of the same conversations before pages had this form, of the
version before the commit "Write a page's text as lines that a person would count". `--before` with
a checkout of that version measures them again.
"""

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from browser import Mcp
from reading_talks import Talk, talks_of

from hud_mcp.loading.source import load_environments
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld
from hud_mcp.worlds.browser.chromium import find_chromium

BEFORE = Path(__file__).with_name("reading_before.json")

# Of a closed select, a person sees the chosen option alone. Nothing reads the page after this.
WORDS = """() => {
  for (const option of document.querySelectorAll('select:not([multiple]) option'))
    if (!option.selected) option.remove();
  return document.body.innerText + ' ' + [...document.querySelectorAll('input, textarea')]
    .filter(each => each.checkVisibility() && !/password|checkbox|radio|file|range/.test(each.type))
    .map(each => each.value).join(' ');
}"""

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

LOOK = Look(max_text_chars=1_000_000)
BOUND_S = 60
_SESSION = re.compile("sess-[0-9a-f]{32}")
_SAME_SESSION = "sess-890fd9a5f63dc69e2269b1ca059e1918"
SAME_PAGE = 0.9
"""The least part of a page's words that the other browser shows, too."""


@dataclass(frozen=True)
class Page:
    """The texts of one page, and the time that ours took."""

    name: str
    words: str
    snapshot: str
    text: str
    text_ms: float


@dataclass(frozen=True)
class PageSize:
    """The sizes of one page's texts in one unit."""

    words: int
    snapshot: int
    text: int

    @property
    def whole(self) -> float:
        """The text as a part of the snapshot."""
        return self.text / self.snapshot

    @property
    def beyond(self) -> float:
        """The text without the page's words, as a part of the snapshot without them."""
        return (self.text - self.words) / max(1, self.snapshot - self.words)


@dataclass(frozen=True)
class TalkSize:
    """The sizes of one conversation in one unit, and the number of its turns."""

    tools: int
    texts: int
    turns: int

    @property
    def once(self) -> int:
        """The conversation with one list of tools."""
        return self.tools + self.texts

    @property
    def each_turn(self) -> int:
        """The conversation with the list of tools in each turn of the model."""
        return self.tools * self.turns + self.texts


@contextmanager
def playwright_mcp(modules: Path) -> Iterator[Mcp]:
    """Run Playwright's MCP server, whose files go to a folder that is removed."""
    chromium = find_chromium()
    if chromium is None:
        raise RuntimeError("there is no Chromium; `hud-mcp install` tells how to get one")
    with tempfile.TemporaryDirectory() as folder:
        mcp = Mcp(str(modules / "@playwright" / "mcp" / "cli.js"), chromium, folder)
        try:
            yield mcp
        finally:
            mcp.close()


def fill(world: BrowserWorld, source: str) -> None:
    """Put into a world's sites the content with which their tasks begin."""
    if source == "browser":
        world.state["admin"]["user"] = "mara"
    else:  # its modules are loaded with it
        world.state["wiki"] = sys.modules["web_wiki_data"].draw_wiki(1).state
        world.state["mail"] = sys.modules["web_mail_data"].new_mailbox(1).state
        world.state["booking"] = sys.modules["web_booking_state"].new_booking_site(1)


@asynccontextmanager
async def opened(kind: Browser, folder: Path | None, shared: Shared) -> AsyncIterator[BrowserWorld]:
    """Open a world of this kind while the block runs."""
    world = await kind.open(
        Opening(folder=folder, shared=shared, context={}, seed=1, log=lambda _line: None)
    )
    try:
        yield world
    finally:
        await world.close()


async def read(name: str, path: str, world: BrowserWorld, mcp: Mcp) -> Page:
    """Read a page in each way, once all that it loads is there."""
    with anyio.fail_after(BOUND_S):
        text, took_ms = "", 0.0
        while True:
            begun = time.perf_counter()
            seen = (await world.observe(LOOK)).text or ""
            took_ms = (time.perf_counter() - begun) * 1000
            if seen == text and "Loading…" not in text:
                break
            text = seen
            await anyio.sleep(0.5)
        words = " ".join(str(await world.page.evaluate(WORDS)).split())
        await mcp.call("browser_navigate", url=world.site_address + path)
        # The other browser loads in its own time. It has the same page once it has the same words.
        while True:
            snapshot = await mcp.call("browser_snapshot")
            shown = set(re.findall(r"\w+", words))
            if len(shown & set(re.findall(r"\w+", snapshot))) >= SAME_PAGE * len(shown):
                return Page(name, words, snapshot, text, took_ms)
            await anyio.sleep(0.5)


async def read_pages(mcp: Mcp, only: str = "") -> AsyncIterator[Page]:
    """Read each page whose name has the text `only`."""
    shared = Shared()
    try:
        for source, paths in SHIPPED.items():
            if not (asked := [path for path in paths if only in path]):
                continue
            (environment,) = load_environments([source])
            assert isinstance(environment.world, Browser)
            async with opened(environment.world, environment.folder, shared) as world:
                fill(world, source)
                for path in asked:
                    await world.goto(path)
                    await world.page.reload()  # the last page has lost options, and may be this
                    yield await read(path, path, world, mcp)
        for name, html in MADE.items():
            if only in name:
                with tempfile.TemporaryDirectory() as folder:
                    (Path(folder) / "index.html").write_text(f"<title>{name}</title>{html}")
                    async with opened(Browser(folder), Path(folder), shared) as world:
                        yield await read(name, "/", world, mcp)
    finally:
        await shared.close()


def tokens_of(texts: Sequence[str], modules: Path) -> list[int]:
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
        cwd=modules.parent,
    )
    return json.loads(done.stdout)


def bytes_of(texts: Sequence[str]) -> list[int]:
    """Count the bytes of texts."""
    return [len(text.encode()) for text in texts]


Count = Callable[[Sequence[str]], list[int]]
"""Measures texts in one unit."""


def page_sizes(pages: Sequence[Page], count: Count) -> dict[str, PageSize]:
    """Measure pages, by their names."""
    flat = count([text for page in pages for text in (page.words, page.snapshot, page.text)])
    return {page.name: PageSize(*flat[3 * i : 3 * i + 3]) for i, page in enumerate(pages)}


def talk_sizes(talks: Sequence[Talk], count: Count) -> dict[str, TalkSize]:
    """Measure conversations, by their rows."""
    # Ids of sessions are drawn, and a tokenizer divides each in its own way.
    texts = [_SESSION.sub(_SAME_SESSION, talk.texts) for talk in talks]
    flat = count(
        [part for talk, text in zip(talks, texts, strict=True) for part in (talk.tools, text)]
    )
    return {
        talk.row: TalkSize(flat[2 * i], flat[2 * i + 1], len(talk.turns))
        for i, talk in enumerate(talks)
    }


def sizes_before(unit: str) -> dict[str, TalkSize]:
    """Read the sizes of the older conversations."""
    return {row: TalkSize(**each) for row, each in json.loads(BEFORE.read_text())[unit].items()}


def print_pages(unit: str, sizes: Mapping[str, PageSize], times: Mapping[str, float]) -> None:
    """Print a row for each page, and the medians."""
    head = f"{unit:<28}{'words':>8}{'snapshot':>10}{'text':>8}{'whole':>8}{'beyond':>8}{'ms':>8}"
    print(f"\n{head}")
    for name, size in sizes.items():
        print(
            f"{name[:28]:<28}{size.words:>8}{size.snapshot:>10}{size.text:>8}{size.whole:>8.2f}"
            f"{size.beyond:>8.2f}{times[name]:>8.0f}"
        )
    for title, of in (("median", statistics.median), ("largest", max)):
        whole, beyond = (
            of([getattr(size, part) for size in sizes.values()]) for part in ("whole", "beyond")
        )
        print(f"{title:<28}{'':>26}{whole:>8.2f}{beyond:>8.2f}")
    shipped = [size.whole for name, size in sizes.items() if name not in MADE]
    if shipped:
        print(f"{'median of shipped sites':<28}{'':>26}{statistics.median(shipped):>8.2f}")


def print_talks(unit: str, sizes: Mapping[str, TalkSize], before: Mapping[str, TalkSize]) -> None:
    """Print a row for each conversation, and the medians."""
    print(f"\n{unit:<28}{'turns':>6}{'tools':>16}{'texts':>16}{'once':>16}{'':>6}{'each turn':>18}")
    for row, size in sizes.items():
        then = before[row]
        print(
            f"{row[:28]:<28}{size.turns:>6}"
            + "".join(
                f"{f'{getattr(then, part)}>{getattr(size, part)}':>16}"
                for part in ("tools", "texts", "once")
            )
            + f"{size.once / then.once:>6.2f}{f'{then.each_turn}>{size.each_turn}':>18}"
            f"{size.each_turn / then.each_turn:>6.2f}"
        )
    for title, of in (("median", statistics.median), ("largest", max)):
        once = of([size.once / before[row].once for row, size in sizes.items()])
        turn = of([size.each_turn / before[row].each_turn for row, size in sizes.items()])
        print(f"{title:<28}{'':>54}{once:>6.2f}{'':>18}{turn:>6.2f}")


async def main() -> None:
    """Read the pages, play the conversations, and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=Path, required=True, help="a folder node_modules")
    parser.add_argument("--only", default="", help="the pages with this text in their names")
    parser.add_argument("--pages", action="store_true", help="no conversations")
    parser.add_argument(
        "--before", type=Path, help="measure the conversations in this checkout, and keep the sizes"
    )
    given = parser.parse_args()
    units: dict[str, Count] = {
        "bytes": bytes_of, "tokens": lambda texts: tokens_of(texts, given.modules)
    }  # fmt: skip
    if given.before:
        talks = talks_of(given.before)
        kept = {
            unit: {row: vars(size) for row, size in talk_sizes(talks, count).items()}
            for unit, count in units.items()
        }
        BEFORE.write_text(f"{json.dumps(kept, indent=1)}\n")
        return
    with playwright_mcp(given.modules) as mcp:
        pages = [page async for page in read_pages(mcp, given.only)]
    if not pages:
        parser.error(f"no page has {given.only!r} in its name")
    times = {page.name: page.text_ms for page in pages}
    for unit, count in units.items():
        print_pages(unit, page_sizes(pages, count), times)
    if not given.pages:
        talks = talks_of()
        for unit, count in units.items():
            print_talks(unit, talk_sizes(talks, count), sizes_before(unit))


if __name__ == "__main__":
    asyncio.run(main())

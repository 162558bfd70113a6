"""Build the site of the pages into site/, and see that no page of it loads anything from elsewhere.

Usage: build_site.py, run by an interpreter that has the extra `docs` and a Chromium. mkdocs itself
fails where a link or an anchor leads nowhere.
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from hud_mcp.worlds.browser.chromium import find_chromium

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
LOADS = {"img": ("src", "srcset"), "script": ("src",), "source": ("src", "srcset")} | {
    "iframe": ("src",),
    "link": ("href",),
    "video": ("src", "poster"),
}
"""Elements that load something, and the attributes that say what."""

IN_COLUMNS = (
    "[...document.querySelectorAll('.doc-contents')]"
    ".some(each => getComputedStyle(each).display !== 'block')"
)
"""Whether the text of a documented name is not one column."""

OUTSIDE = re.compile(r"\s*(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class Loads(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one element."""
        given = dict(attrs)
        if tag == "link" and given.get("rel") == "canonical":
            return
        for name in LOADS.get(tag, ()):
            if OUTSIDE.match(given.get(name) or ""):
                self.outside.append(f"{tag} {given[name]}")


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a word."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the library's name
        """Say nothing."""


def outside_of(path: Path) -> list[str]:
    """What a file of the site names to be loaded from elsewhere."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return IN_STYLES.findall(text)
    page = Loads()
    page.feed(text)
    return page.outside


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def outside_requests(pages: list[str]) -> list[str]:
    """What a browser asks other hosts for as it opens the pages, and what fails or looks wrong."""
    found: list[str] = []
    with served(SITE) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        page.on(
            "request",
            lambda one: (
                None
                if one.url.startswith((address, "data:", "blob:"))
                else found.append(f"{page.url} asks for {one.url}")
            ),
        )
        page.on(
            "response",
            lambda one: found.append(f"{one.status} {one.url}") if one.status >= 400 else None,  # noqa: PLR2004
        )
        for name in pages:
            page.goto(address + name)
            if page.evaluate(IN_COLUMNS):
                found.append(f"{name}: a style of ours lays the reference out in columns")
        browser.close()
    return found


def main() -> None:
    """Build and check; the exit status says whether all is well."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    own = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    if subprocess.run(command, cwd=ROOT, env=own, check=False).returncode:
        sys.exit("The site is not built; the lines above say why.")
    pages = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    written = [path for path in SITE.rglob("*") if path.suffix in (".html", ".css")]
    faults = [f"{path.relative_to(SITE)}: {said}" for path in written for said in outside_of(path)]
    faults += outside_requests([name for name in pages if name != "404.html"])
    for name in ("llms.txt", "llms-full.txt"):
        if not (SITE / name).is_file():
            faults.append(f"{name} is missing")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(pages)} pages in {SITE}; open {SITE / 'index.html'}")


if __name__ == "__main__":
    main()

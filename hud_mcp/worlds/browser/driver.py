"""Playwright's driver: the program that speaks to browsers, and the causes of its failed starts.

The driver brings a Node.js of its own, but not the libraries which that is linked to. If one
is missing, Playwright only says that a connection was closed. This module asks the loader itself.
"""

import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.worlds.browser import libraries

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Playwright

__all__ = [
    "FACTS_MARK",
    "NEAR",
    "SEEN",
    "TARGET",
    "TRACKER",
    "TRACKER_SCRIPT",
    "bring_engines",
    "driver_complaint",
    "missing_library",
    "package_of",
    "register_engines",
    "start_driver",
]


TRACKER = f"__settled_{secrets.token_hex(6)}"
"""The property of `window` that holds a document's tracker. No page can know its name."""

TRACKER_SCRIPT = "\n".join(
    Path(__file__).with_name(name).read_text().replace("__KEY__", TRACKER)
    for name in ("tracker.js", "asks.js")
)


SEEN = "hudseen"
"""The name in selectors of the engine that has a page read as a person sees it; see `seen.js`."""

NEAR = "hudnear"
"""The name in selectors of the engine that has a large page read near its view; see `near.js`."""

TARGET = "hudtarget"
"""The name of the engine that shows its match to the page's tracker, by the tracker's key.

A handle of an element would do the same. But Playwright first puts 300 KB of script into the
document's own world, which takes 40 ms.
"""

FACTS_MARK = secrets.token_hex(6)
"""The mark of the facts beside a tree. No page can write it: its scripts do not see that world."""

_SEEN = Path(__file__).with_name("seen.js").read_text().replace("__KEY__", TRACKER)
_NEAR = Path(__file__).with_name("near.js").read_text().replace("__KEY__", TRACKER)

_TARGET = """(() => {
  const show = (element, key) => {
    element.dispatchEvent(new Event(`${key}target`, { composed: true }));
    return element;
  };
  return { query: show, queryAll: (element, key) => [show(element, key)] };
})()"""


_ENGINES = {SEEN: _SEEN.replace("__FACTS__", FACTS_MARK), NEAR: _NEAR, TARGET: _TARGET}


async def register_engines(playwright: "Playwright") -> None:
    """Give the engines to every page that is opened from now on. Call it once for each driver.

    Raises:
        Error: Playwright's.
    """
    for name, script in _ENGINES.items():
        await playwright.selectors.register(name, script, content_script=True)


async def bring_engines(context: "BrowserContext") -> None:
    """Give the engines to a context that others have opened.

    Playwright gives engines only to contexts that it opens, and has no public call for others.

    Raises:
        Error: Playwright's.
    """
    channel: Any = context._impl_obj._channel  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for name, script in _ENGINES.items():
        engine = {"name": name, "source": script, "contentScript": True}
        await channel.registerSelectorEngine(engine)


ASK_BOUND_S = 20.0

# What Node.js is linked to beside the C library: by package manager, the package of each.
_PACKAGES = {
    "libatomic.so.1": {"apt-get": "libatomic1", "dnf": "libatomic"},
    "libgcc_s.so.1": {"apt-get": "libgcc-s1", "dnf": "libgcc"},
    "libstdc++.so.6": {"apt-get": "libstdc++6", "dnf": "libstdc++"},
}

_MISSING = re.compile(
    r"error while loading shared libraries: (?P<glibc>[^\s:]+):"
    r"|Error loading shared library (?P<musl>[^\s:]+):"
)


async def start_driver() -> "Playwright":
    """Start the driver.

    Raises:
        EnvironmentFailed: It does not start; the text names what is missing, and the command
            that installs it.

    A cancellation waits until it has started: half-way, its process would have no owner.
    """
    try:
        return await _start()
    except Exception as exc:  # Playwright raises no narrower one
        complaint = await driver_complaint() or str(exc)
        raise EnvironmentFailed(
            f"Playwright's driver does not start. {_advice(complaint)}"
        ) from exc


async def _start() -> "Playwright":
    with anyio.CancelScope(shield=True):
        playwright = await libraries.async_playwright().start()
        await register_engines(playwright)
        return playwright
    raise RuntimeError("nothing cancels a shielded scope")


async def driver_complaint() -> str | None:
    """Return the driver's words on standard error if it cannot run; None if it can."""
    # Its own command starts the same Node.js, and passes on what the loader says.
    command = [sys.executable, "-m", "playwright", "--version"]
    try:
        with anyio.fail_after(ASK_BOUND_S):
            done = await anyio.run_process(command, check=False, stdin=subprocess.DEVNULL)
    except (OSError, TimeoutError) as exc:
        return str(exc) or f"nothing for {ASK_BOUND_S:.0f} s"
    return None if done.returncode == 0 else done.stderr.decode(errors="replace")


def missing_library(told: str) -> str | None:
    """Return the library that a program lacked at its start, by the loader's words.

    Args:
        told: The loader's words on standard error.
    """
    found = _MISSING.search(told)
    return found and (found["glibc"] or found["musl"])


def package_of(library: str) -> tuple[str | None, str | None]:
    """Return this machine's package manager, and its package with a library of Node.js's.

    Returns:
        Both, or neither if the manager or the library is unknown.
    """
    for manager, package in _PACKAGES.get(library, {}).items():
        if shutil.which(manager):
            return manager, package
    return None, None


def _advice(complaint: str) -> str:
    """Name the library that the driver lacks, and the remedy."""
    library = missing_library(complaint)
    if library is None:
        line = next((line.strip() for line in complaint.splitlines() if line.strip()), "nothing")
        return f"It said: {line[:300]}"
    manager, package = package_of(library)
    if manager is None:
        return f"Its Node.js needs {library}: install the package that has it, then try again."
    return f"Its Node.js needs {library}: run `{manager} install {package}`, then try again."

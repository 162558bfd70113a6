"""The rules for when a page has settled: by watching it, never by a fixed wait.

A script in every document counts what is about to change the page: short timers, DOM
changes, scrolling, transitions, the page's own requests, a navigation that has begun. The
browser's events tell of all requests in flight. This module owns the rules of when to
go on.
"""

from typing import TYPE_CHECKING, Literal

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end
from hud_mcp.worlds.browser.driver import TRACKER

if TYPE_CHECKING:
    from hud_mcp.worlds.browser.tab import Tab

__all__ = [
    "IDLE_BOUND_S",
    "LATENCIES",
    "Outcome",
    "until_whole",
    "wait_until_idle",
]

IDLE_BOUND_S = 2.0
"""The longest wait for a page that keeps making requests."""

LATENCIES = 4
"""The number of slow requests, one after the other, that the bounds leave room for."""

NAVIGATION_BOUND_S = 10.0
"""The longest time for a new document to arrive and be read."""

LOAD_BOUND_S = 3.0
"""The longest wait for the pictures and frames of a document that has arrived."""

EVALUATE_BOUND_S = 4.0
"""The longest wait for a page to say that it is quiet. After it, the page counts as hung."""

ASK_AGAIN_S = 1.0
"""The pause between two questions for a document's end, while no event tells it."""

MAX_DOCUMENTS = 5
"""The most documents in a row that are followed after one action."""

Outcome = Literal["quiet", "unread", "busy", "leaving", "gone", "hung"]

_QUIET = f"""([bound, stays, late, ignored, patience]) => {{
  const tracker = window['{TRACKER}'];
  return tracker ? tracker.quiet(bound, stays, late, ignored, patience)
    : document.readyState === 'complete' ? 'quiet' : 'unread';
}}"""

_STATE = f"""() => {{
  const tracker = window['{TRACKER}'];
  if (!tracker) return document.readyState === 'complete' ? 'whole' : 'reading';
  tracker.attend();
  return tracker.reading() ? 'reading' : tracker.leaving ? 'leaving' : 'whole';
}}"""

"""Runs in every document before the page's own scripts."""


async def wait_until_idle(tab: "Tab", mark: int, *, late: bool = False) -> bool:
    """Wait until a tab has settled, or a bound says that it will not.

    Args:
        tab: The page that was acted on.
        mark: The result of `tab.mark()` before the action. Only requests after it count.
        late: Whether the action may take effect some frames after its return, like scrolling.

    Returns:
        Whether its document said that it is complete, and that nothing is to come.
    """
    stays = False
    for _document in range(MAX_DOCUMENTS):
        end = anyio.current_time() + IDLE_BOUND_S * tab.patience() + LATENCIES * tab.latency_s
        outcome = await _until_quiet(tab, mark, end, stays=stays, late=late)
        if outcome not in ("leaving", "gone") or tab.closed:
            return outcome == "quiet"
        stays = not await _arrive(tab, mark, leaving=outcome == "leaving")
        mark = tab.mark()
    return False


async def _until_quiet(tab: "Tab", mark: int, end: float, *, stays: bool, late: bool) -> Outcome:
    """Watch one document until nothing is to come, it goes away, or time is up."""
    while True:
        bound_s = max(0.1, end - anyio.current_time())
        outcome = await _ask(tab, bound_s, stays=stays, late=late)
        pending = tab.pending_since(mark)
        if outcome == "busy":
            tab.ignore(pending)
        if outcome not in ("quiet", "unread") or not pending:
            return outcome
        if not await tab.wait_until(lambda: not tab.pending_since(mark), end):
            tab.ignore(tab.pending_since(mark))
            return "busy"


async def _ask(tab: "Tab", bound_s: float, *, stays: bool, late: bool) -> Outcome:
    """Ask the document whether it is quiet. It answers once it is quiet, or at the bound."""
    with anyio.move_on_after(bound_s + EVALUATE_BOUND_S * tab.patience()):
        try:
            asked = [bound_s * 1000, stays, late, tab.ignored, tab.patience()]
            return await tab.page.evaluate(_QUIET, asked)
        except libraries.PlaywrightError:
            return "gone"  # its document was replaced while it answered, or the tab closed
    return "hung"


async def _arrive(tab: "Tab", mark: int, *, leaving: bool) -> bool:
    """Wait until the document on its way has arrived; return False if none came."""
    slack_s, patience = LATENCIES * tab.latency_s, tab.patience()
    arrive_s = NAVIGATION_BOUND_S * patience + slack_s
    end = anyio.current_time() + arrive_s
    if leaving:
        await tab.wait_until(lambda: tab.arrived_since(mark), end)
    if tab.closed:
        return False
    try:
        await until_whole(tab, arrive_s)
        if leaving and tab.came_to_nothing:
            return False
        load_s = LOAD_BOUND_S * patience + slack_s
        await tab.page.wait_for_load_state("load", timeout=load_s * 1000)
    except libraries.PlaywrightError:
        return True  # slow, or replaced again, or closed: the next look at it tells
    return not leaving or tab.loaded_since(mark)


async def until_whole(tab: "Tab", bound_s: float) -> bool:
    """Wait until a tab's document was read to its end, or was stopped and will not be.

    Returns:
        False if time was up first.

    Raises:
        Error: Playwright's, if the page is gone.
    """
    end = anyio.current_time() + bound_s
    while True:
        left_s = max(0.001, end - anyio.current_time())
        try:
            bound_ms = 1000 * min(left_s, ASK_AGAIN_S)
            await tab.page.wait_for_load_state("domcontentloaded", timeout=bound_ms)
        except libraries.PlaywrightTimeout:
            if await _is_stopped(tab):
                return True
        else:
            return True
        if anyio.current_time() >= end:
            return False


async def _is_stopped(tab: "Tab") -> bool:
    """Ask a document whether it was stopped half-way: no event tells that."""
    with anyio.move_on_after(ASK_AGAIN_S):
        try:
            state = await tab.page.evaluate(_STATE)
        except libraries.PlaywrightError as exc:
            if is_end(exc):
                raise
            return False  # it is just going away
        return state == "whole" or (state == "leaving" and tab.came_to_nothing)
    return False

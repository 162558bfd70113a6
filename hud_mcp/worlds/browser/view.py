"""The agent's view of the shown page: its text, the changes in it, its picture."""

import base64
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from hud_mcp.base.gathering import gather
from hud_mcp.values.observation import Look, Observation, Screenshot
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.commands import FIRST_ERROR
from hud_mcp.worlds.browser.devtools import is_end, send
from hud_mcp.worlds.browser.idle import wait_until_idle
from hud_mcp.worlds.browser.refs import Renumbered, highest_refs
from hud_mcp.worlds.browser.render import changes_between, new_refs, render, render_part
from hud_mcp.worlds.browser.snapshot import Snapshots
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.text import Reading, read_page

__all__ = ["View", "take_picture"]


PICTURE_BOUND_S = 5.0


async def take_picture(tab: Tab, look: Look) -> Screenshot | None:
    """Take a picture of the part of a page that is in view.

    Playwright's own `screenshot` waits for fonts and frames and hides the caret first,
    and encodes PNG slowly. A settled page needs none of that.

    Returns:
        The picture, with the scale that maps its pixels to CSS pixels; None if the page does
        not draw within `PICTURE_BOUND_S`.
    """
    options: dict[str, Any] = {"format": look.image or "png", "optimizeForSpeed": True}
    if look.image == "jpeg":
        options["quality"] = look.quality
    with anyio.move_on_after(PICTURE_BOUND_S * tab.patience()):
        try:
            taken = await send(await tab.cdp(), "Page.captureScreenshot", options)
        except libraries.PlaywrightError as exc:
            if is_end(exc):
                raise
            return None  # the page goes away, or crashes
        shot = Screenshot.from_bytes(base64.b64decode(taken["data"]))
        size = tab.page.viewport_size
        width = size["width"] if size else shot.width_px
        return shot.model_copy(update={"scale": width / shot.width_px})
    return None


class View:
    """The agent's view of one session's pages.

    Args:
        tabs: The pages.
        snapshots: The snapshots, which remember the refs that the agent has seen.
        renumbers: Whether other sessions may have had the pages before.

    Attributes:
        last: The agent's last reading.
        refused: Whether its last action was refused, so that it should learn of new refs.
    """

    def __init__(self, tabs: Tabs, snapshots: Snapshots, *, renumbers: bool = False) -> None:
        self._renumbers = renumbers
        self.last: Reading | None = None
        self.refused = False
        self._tabs = tabs
        self._snapshots = snapshots

    def tell_refs(self, *, refused: bool) -> None:
        """Set whether the last action was refused, so that the agent should learn of new refs."""
        self.refused = refused

    def resume(self, last: Reading | None) -> None:
        """Take over the agent's last reading."""
        self.last = last

    async def look(self, tab: Tab, look: Look) -> Observation:
        """Read a page and take its picture, at once.

        Raises:
            Error: Playwright's, if the page is gone.
        """
        text: str | None = None
        image: Screenshot | None = None

        async def read() -> None:
            nonlocal text
            text = await self._read(tab, look)

        async def picture() -> None:
            nonlocal image
            image = await take_picture(tab, look)

        parts = [read()] if look.text else []
        if look.image is not None:
            parts.append(picture())
        if len(parts) == 1:  # as most looks have: no task is made for it
            await parts[0]
        else:
            await gather(parts)
        return Observation(text=text, image=image)

    async def _read(self, tab: Tab, look: Look) -> str:
        try:
            reading = await self._read_whole(tab, look)
        except TimeoutError:
            return f"Page: {tab.page.url} does not respond. Wait, reload it, or go elsewhere."
        if tab.status is not None and tab.status >= FIRST_ERROR:
            reading = replace(reading, status=tab.status)
        if self._renumbers and tab.refs is None and highest_refs(reading.lines):
            tab.call_refs(Renumbered(reading.lines))
        if (refs := tab.refs) is not None:
            lines = tuple(refs.translate(line) for line in reading.lines)
            reading = replace(reading, lines=lines)
        self._snapshots.saw(reading)
        tab.call_links(reading.links)
        for message in reading.gone:
            self._tabs.note(f"The page said {message!r}, which is gone by now.")
        notes = self._tabs.notes()
        if self.refused and (told := new_refs(self.last, reading)):
            notes.append(f"Note: {told}")
        limit = look.max_text_chars
        if look.part:
            return render_part(reading, look.part, notes, max_chars=limit)
        if look.changes:
            text = changes_between(self.last, reading, notes, max_chars=limit)
        else:
            text = render(reading, notes, max_chars=limit)
        self.last = reading
        return text

    async def _read_whole(self, tab: Tab, look: Look) -> Reading:
        """Read a page, and again if it went to another document meanwhile."""
        long = self.last is not None and self.last.long
        limit = sys.maxsize if look.part else look.max_text_chars
        read = partial(read_page, tab.page, max_chars=limit, long=long and not look.part)
        try:
            return await read(patience=tab.patience())
        except libraries.PlaywrightError as exc:
            if is_end(exc):
                raise
            await wait_until_idle(tab, tab.mark())
            return await read(patience=tab.patience())

"""A picture of a page, by one call to Chromium."""

import base64
from typing import Any

import anyio

from hud_mcp.values.observation import Look, Screenshot
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end, send
from hud_mcp.worlds.browser.tab import Tab

__all__ = ["take_picture"]

PICTURE_BOUND_S = 5.0


async def take_picture(tab: Tab, look: Look) -> Screenshot | None:
    """Take a picture of what is in view.

    Playwright's own `screenshot` waits for fonts and frames and hides the caret first,
    and encodes PNG slowly; a settled page needs none of that.

    Returns:
        The picture, with the scale that maps its pixels to CSS pixels; None where the
        page does not draw within `PICTURE_BOUND_S`.
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

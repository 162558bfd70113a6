"""A session's own clipboard, because all sessions of one Chromium share the browser's.

Each document hands over what is copied in it, and asks for what is pasted; see `clipboard.js`.
Texts are kept, HTML too; pictures and files are not.
"""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.worlds.browser.tracker import TRACKER

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

__all__ = ["MAX_CLIPBOARD_CHARS", "Clipboard"]

MAX_CLIPBOARD_CHARS = 1_000_000
"""The most that a clipboard holds; what is longer is not copied."""

_NAME = f"__clipboard_{secrets.token_hex(6)}"
_SCRIPT = (
    Path(__file__)
    .with_name("clipboard.js")
    .read_text()
    .replace("__NAME__", _NAME)
    .replace("__KEY__", TRACKER)
)


class Clipboard:
    """What one session has copied last: texts by their kind, such as `text/plain`."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    async def install(self, context: "BrowserContext") -> None:
        """Give it to every document of a context, from now on. Once for each context.

        Raises:
            Error: Playwright's.
        """
        await context.expose_function(_NAME, self._exchange)  # pyright: ignore[reportUnknownMemberType]  # its callback is untyped
        await context.add_init_script(_SCRIPT)

    def fill(self, items: Mapping[str, str]) -> None:
        """Replace what was copied last."""
        self.items = dict(items)

    def _exchange(self, given: Any) -> str:
        """Take what a document copied, or return what there is to paste."""
        if isinstance(given, str) and len(given) <= MAX_CLIPBOARD_CHARS:
            try:
                items = json.loads(given)
            except ValueError:
                items = None
            if isinstance(items, dict):
                pairs = cast("dict[Any, Any]", items).items()
                self.items = {str(kind): str(text) for kind, text in pairs}
        return json.dumps(self.items)

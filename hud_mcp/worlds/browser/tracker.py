"""The script in every document that counts what is about to change the page."""

import secrets
from pathlib import Path

__all__ = ["TRACKER", "TRACKER_SCRIPT"]

TRACKER = f"__settled_{secrets.token_hex(6)}"
"""The property of `window` under which a document's tracker is; no page can know it."""

TRACKER_SCRIPT = "\n".join(
    Path(__file__).with_name(name).read_text().replace("__KEY__", TRACKER)
    for name in ("tracker.js", "asks.js")
)

"""Reading a large page near its view only: a selector engine, which see `near.js`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Playwright

__all__ = ["NEAR", "register_near"]

NEAR = "hudnear"
"""The engine's name in selectors."""

_ENGINE = Path(__file__).with_name("near.js").read_text()


async def register_near(playwright: "Playwright") -> None:
    """Give the engine to every page that is opened from now on. Once for each driver.

    Raises:
        Error: Playwright's.
    """
    await playwright.selectors.register(NEAR, _ENGINE, content_script=True)

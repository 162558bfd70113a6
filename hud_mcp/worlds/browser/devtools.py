"""One call of the Chrome DevTools Protocol, typed."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

__all__ = ["send"]


async def send(cdp: "CDPSession", method: str, params: dict[str, Any] | None = None) -> Any:
    """Send a command and return its result, as JSON.

    Raises:
        Error: Playwright's, where Chromium refuses it or the page is gone.
    """
    return cast("Any", await cdp.send(method, params))  # pyright: ignore[reportUnknownMemberType]

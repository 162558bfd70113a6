"""The server side of all sites: what answers a request under `/api/`."""

from collections.abc import Awaitable, Callable
from typing import Any

from web_booking_backend import booking_api
from web_mail_backend import mail_api
from web_wiki_backend import wiki_api

from hud_mcp import SiteRequest

__all__ = ["backend"]

_APIS: dict[str, Callable[[str, SiteRequest, dict[str, Any]], Awaitable[Any]]] = {
    "booking": booking_api,
    "mail": mail_api,
    "wiki": wiki_api,
}
"""By a site's name: takes the path behind it, the request, and the site's own state."""


async def backend(request: SiteRequest, state: dict[str, Any]) -> Any:
    """Answer one request under `/api/` from the session's state."""
    site, _, path = request.path.removeprefix("/api/").partition("/")
    api = _APIS.get(site)
    return await api(path, request, state[site]) if api and site in state else None

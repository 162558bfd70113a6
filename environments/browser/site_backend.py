"""The server side of all sites, and the state in which each session finds them."""

from typing import Any

from admin_backend import admin_api
from admin_data import new_desk
from board_backend import board_api
from board_data import new_board
from shop_backend import shop_api
from shop_data import new_shop

from hud_mcp import Opening, SiteRequest

__all__ = ["backend", "initial_state"]

_APIS = {"shop": shop_api, "admin": admin_api, "board": board_api}


def initial_state(_opening: Opening | None = None) -> dict[str, Any]:
    """What every session starts from."""
    return {"shop": new_shop(), "admin": new_desk(), "board": new_board()}


async def backend(request: SiteRequest, state: dict[str, Any]) -> Any:
    """Answer one request under `/api/` from the session's state."""
    site, _, path = request.path.removeprefix("/api/").partition("/")
    api = _APIS.get(site)
    return await api(path, request, state) if api else None

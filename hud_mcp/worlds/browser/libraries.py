"""Playwright, and the libraries of a session's proxy, each loaded at its first use."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import websockets as websockets
    from playwright.async_api import Error as PlaywrightError
    from playwright.async_api import TimeoutError as PlaywrightTimeout
    from playwright.async_api import async_playwright as async_playwright
    from starlette.requests import Request as Request
    from starlette.responses import FileResponse as FileResponse
    from starlette.responses import HTMLResponse as HTMLResponse
    from starlette.responses import JSONResponse as JSONResponse
    from starlette.responses import PlainTextResponse as PlainTextResponse
    from starlette.responses import RedirectResponse as RedirectResponse
    from starlette.responses import Response as Response
    from uvicorn import Config as Config
    from uvicorn.server import ServerState as ServerState
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["PlaywrightError", "PlaywrightTimeout"]  # checkers take a renamed import for unused

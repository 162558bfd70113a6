"""Playwright, and what a session's proxy is made of, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from playwright.async_api import Error as PlaywrightError
    from playwright.async_api import TimeoutError as PlaywrightTimeout
    from playwright.async_api import async_playwright
    from starlette.requests import Request
    from starlette.responses import (
        FileResponse,
        HTMLResponse,
        JSONResponse,
        PlainTextResponse,
        RedirectResponse,
        Response,
    )
    from uvicorn import Config
    from uvicorn.server import ServerState
    from websockets.asyncio.server import serve as serve_websockets
    from websockets.exceptions import ConnectionClosed
else:
    __getattr__ = lazy_names(
        __name__,
        "playwright.async_api:async_playwright",
        "starlette.requests:Request",
        "starlette.responses:FileResponse",
        "starlette.responses:HTMLResponse",
        "starlette.responses:JSONResponse",
        "starlette.responses:PlainTextResponse",
        "starlette.responses:RedirectResponse",
        "starlette.responses:Response",
        "uvicorn:Config",
        "uvicorn.server:ServerState",
        "websockets.exceptions:ConnectionClosed",
        PlaywrightError="playwright.async_api:Error",
        PlaywrightTimeout="playwright.async_api:TimeoutError",
        serve_websockets="websockets.asyncio.server:serve",
    )

__all__ = [
    "Config",
    "ConnectionClosed",
    "FileResponse",
    "HTMLResponse",
    "JSONResponse",
    "PlainTextResponse",
    "PlaywrightError",
    "PlaywrightTimeout",
    "RedirectResponse",
    "Request",
    "Response",
    "ServerState",
    "async_playwright",
    "serve_websockets",
]

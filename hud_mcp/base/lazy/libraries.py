"""Other people's packages that are slow to load or optional, each loaded when it is first used.

Where one is not installed, its first use raises `ImportError`.
"""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import asyncssh
    import ConfigSpace
    import httpx
    import httpx2
    import mcp_types
    import numpy as np
    import regex
    from alembic.operations import Operations as AlembicOperations
    from alembic.runtime.migration import MigrationContext
    from filelock import FileLock
    from filelock import Timeout as LockTaken
    from IPython.core.getipython import get_ipython
    from mcp.client.client import Client
    from mcp.client.sse import sse_client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.exceptions import MCPError
    from PIL import Image, UnidentifiedImageError
    from starlette.routing import Router
    from websockets.asyncio.client import connect as connect_websocket

    show_in_notebook: Any
    url_to_fs: Any
    vnc_client: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "ConfigSpace",
        "asyncssh",
        "httpx",
        "httpx2",
        "mcp_types",
        "regex",
        "IPython.core.getipython:get_ipython",
        "PIL.Image",
        "PIL:UnidentifiedImageError",
        "alembic.runtime.migration:MigrationContext",
        "filelock:FileLock",
        "mcp.client.client:Client",
        "mcp.client.sse:sse_client",
        "mcp.client.stdio:StdioServerParameters",
        "mcp.client.stdio:stdio_client",
        "mcp.client.streamable_http:streamable_http_client",
        "mcp.shared.exceptions:MCPError",
        "starlette.routing:Router",
        AlembicOperations="alembic.operations:Operations",
        np="numpy",
        LockTaken="filelock:Timeout",
        connect_websocket="websockets.asyncio.client:connect",
        vnc_client="vncdotool.client",
        show_in_notebook="IPython.display:display",
        url_to_fs="fsspec.core:url_to_fs",
    )

__all__ = [
    "AlembicOperations",
    "Client",
    "ConfigSpace",
    "FileLock",
    "Image",
    "LockTaken",
    "MCPError",
    "MigrationContext",
    "Router",
    "StdioServerParameters",
    "UnidentifiedImageError",
    "asyncssh",
    "connect_websocket",
    "get_ipython",
    "httpx",
    "httpx2",
    "mcp_types",
    "np",
    "regex",
    "show_in_notebook",
    "sse_client",
    "stdio_client",
    "streamable_http_client",
    "url_to_fs",
    "vnc_client",
]

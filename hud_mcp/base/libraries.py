"""Other people's packages that are slow to load or optional, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import asyncssh as asyncssh
    import ConfigSpace as ConfigSpace
    import filelock as filelock
    import httpx as httpx
    import httpx2 as httpx2
    import mcp_types as mcp_types
    import numpy as numpy
    import regex as regex
    import websockets as websockets
    from alembic.operations import Operations as Operations
    from alembic.runtime.migration import MigrationContext as MigrationContext
    from IPython.core.getipython import get_ipython as get_ipython
    from mcp.client.client import Client as Client
    from mcp.client.sse import sse_client as sse_client
    from mcp.client.stdio import StdioServerParameters as StdioServerParameters
    from mcp.client.stdio import stdio_client as stdio_client
    from mcp.client.streamable_http import streamable_http_client as streamable_http_client
    from mcp.shared.exceptions import MCPError as MCPError
    from PIL import Image as Image
    from PIL import UnidentifiedImageError as UnidentifiedImageError
    from starlette.routing import Router as Router

    parquet: Any = "pyarrow.parquet"
    show_in_notebook: Any = "IPython.display:display"
    url_to_fs: Any = "fsspec.core:url_to_fs"
    vnc_client: Any = "vncdotool.client"
else:
    __getattr__ = lazy_names(__name__)

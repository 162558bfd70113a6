"""The stdio transport under the official client, which starts a probe as its child."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    TextContent,
)
from waiting import PATIENCE_S

from server import stdio_probe
from server.stdio_wire import child_env

pytestmark = pytest.mark.anyio


async def drive(mode: str) -> None:
    """Put a child process through everything a client does."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[stdio_probe.__file__],
        env=child_env(),
        cwd=Path(__file__).parent,
    )
    seen: list[tuple[float, float | None, str | None]] = []
    told: list[str] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async def on_message(message: Any) -> None:
        told.append(type(message).__name__)

    async with Client(stdio_client(parameters), mode=mode, message_handler=on_message) as client:
        assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
        for number in range(20):
            result = await client.call_tool("echo", {"text": f"hé {number}"})
            assert result.content == [TextContent(type="text", text=f"hé {number}")]
        await client.call_tool("progress", progress_callback=on_progress)
        assert seen == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]
        with anyio.move_on_after(0.1):
            await client.call_tool("wait")
        await check_errors(client)
        await check_server_to_client(client, told, modern=mode != "legacy")


async def check_errors(client: Client) -> None:
    """See each kind of failure as its error."""
    with pytest.raises(MCPError) as refused:
        await client.call_tool("refuse")
    assert (refused.value.code, refused.value.data) == (-32042, {"why": "because"})
    with pytest.raises(MCPError) as invalid:
        await client.call_tool("invalid")
    assert invalid.value.code == -32602
    with pytest.raises(MCPError, match=r"^Internal server error$") as crashed:
        await client.call_tool("crash")
    assert crashed.value.code == -32603


async def check_server_to_client(client: Client, told: list[str], *, modern: bool) -> None:
    """See what the server may send of its own accord in the era."""
    with pytest.raises(MCPError, match="back-channel"):
        await client.call_tool("ping")
    if not modern:
        await client.call_tool("announce")
        assert "ToolListChangedNotification" in told
        return
    async with client.listen(tools_list_changed=True) as events:
        await client.call_tool("announce")
        async for event in events:
            assert isinstance(event, ToolsListChanged)
            break


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_is_served_in_either_era(mode: str) -> None:
    """Listing, calling, progress, cancelling, errors and what the server sends all work."""
    with anyio.fail_after(PATIENCE_S):
        await drive(mode)

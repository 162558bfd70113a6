"""An agent that works over ssh, with what a hello published and through the channel's port."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import asyncssh
from waiting import PATIENCE_S

from hud_mcp.channel.client import ChannelClient


def published(bindings: Sequence[dict[str, Any]], protocol: str = "ssh/2") -> dict[str, Any]:
    """The one binding of a protocol."""
    (found,) = [each for each in bindings if each["protocol"] == protocol]
    return found


@asynccontextmanager
async def ssh(
    client: ChannelClient, binding: dict[str, Any] | None = None, **changes: Any
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Log in through the channel, checking the host key that the binding names."""
    binding = binding or published(client.bindings)
    params = binding["params"]
    async with client.forward(binding["name"]) as (host, port):
        options: dict[str, Any] = {
            "username": params["user"],
            "client_keys": [asyncssh.import_private_key(params["client_key"])],
            "known_hosts": asyncssh.import_known_hosts(f"[{host}]:{port} {params['host_pubkey']}"),
            "config": None,
            "agent_path": None,
        }
        with anyio.fail_after(PATIENCE_S):
            connection = await asyncssh.connect(host, port, **(options | changes))
        async with connection:
            yield connection


async def run(connection: asyncssh.SSHClientConnection, command: str, **more: Any) -> Any:
    """Run one command, within a bound."""
    with anyio.fail_after(PATIENCE_S):
        return await connection.run(command, **more)

"""`hud-mcp serve --wire channel=[HOST:]PORT`: one environment on the HUD control channel."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from hud_mcp.base.listening import port_of, read_address
from hud_mcp.cli.sources import only_environment
from hud_mcp.cli.wires import Served, Wire
from hud_mcp.plugins.hud import commands

__all__ = ["WIRE"]

logger = logging.getLogger(__name__)


@asynccontextmanager
async def _listening(served: Served) -> AsyncGenerator[str]:
    option = "--wire channel"
    host, port = read_address(served.argument or "0", option=option)
    channel = commands.Channel(
        only_environment(list(served.sessions.environments.values()), option),
        sessions=served.sessions,
        token=served.options["channel_token"],
        operator_token=served.options["operator_token"],
    )
    server = await channel.listen(host, port)
    bound = port_of(server)
    logger.info("the control channel is at tcp://%s:%d", host, bound)
    try:
        yield f"HUD_SERVE_PORT={bound}"
    finally:
        await served.sessions.close()  # calls in flight are answered before their connection ends
        await channel.close()


WIRE = Wire(listening=_listening)

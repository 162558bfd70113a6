"""How large a session's screen is, found out before its agent looks."""

import logging

from hud_mcp.errors import HudMcpError
from hud_mcp.session.commands import Commands
from hud_mcp.session.live_world import LiveWorld
from hud_mcp.world import Measured

__all__ = ["measure_screen"]

logger = logging.getLogger(__name__)

_WITHIN_S = 5.0
"""A start is not held up for longer."""


async def measure_screen(world: LiveWorld, commands: Commands) -> None:
    """Have a world find out how large its screen is, where it can; else that stays unknown.

    Args:
        world: The session's, which is open.
        commands: Performs its calls.
    """
    live = world.live
    if not isinstance(live, Measured):
        return

    async def measure() -> None:
        try:
            await live.measure_screen()
        except HudMcpError as exc:  # raised from here, it would end the session
            logger.info("a screen is not measured: %s", exc)

    try:
        await commands.call(measure, _WITHIN_S)
    except HudMcpError as exc:
        logger.info("a screen is not measured: %s", exc)

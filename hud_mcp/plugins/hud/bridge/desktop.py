"""`rfb/3.8` as a screen: the desktop behind a HUD server."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any

from hud_mcp.environment.world import Shared
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.plugins.hud.bridge.forwarded import ForwardedScreen
from hud_mcp.plugins.hud.desktop.vnc import Vnc
from hud_mcp.plugins.hud.desktop.world import DesktopWorld

__all__ = ["DesktopScreen", "desktop_problem"]


def desktop_problem() -> str | None:
    """Why an `rfb/3.8` capability cannot be bridged; None where it can."""
    return None if find_spec("vncdotool") else "it needs `pip install hud-mcp[vnc]`"


class DesktopScreen(ForwardedScreen[DesktopWorld]):
    """A desktop behind a HUD server. Made by `open`.

    Nothing is remembered of it: what the agent was told are pixels.
    """

    @classmethod
    async def open(
        cls,
        control: Control,
        name: str,
        binding: Mapping[str, Any],
        shared: Shared,  # noqa: ARG003  # nothing is shared between desktops
    ) -> "DesktopScreen":
        """Connect through a stream of the control channel.

        Raises:
            EnvironmentFailed: It cannot be reached, or refuses the password.
        """
        stack = AsyncExitStack()
        params: Mapping[str, Any] = binding["params"]
        password = params.get("password")
        try:
            host, port = await stack.enter_async_context(control.forward(name))
            vnc = await Vnc.connect(host, port, password=str(password) if password else None)
        except BaseException:
            await stack.aclose()
            raise
        return cls(DesktopWorld(vnc), stack)

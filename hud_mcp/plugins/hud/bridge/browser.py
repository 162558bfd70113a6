"""`cdp/1.3` as a screen: the browser behind a HUD server, stepped as one of our own."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from hud_mcp.environment.world import Shared
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.plugins.hud.bridge.forwarded import ForwardedScreen
from hud_mcp.worlds.browser.remote import RemoteBrowserWorld, attach_browser

__all__ = ["BrowserScreen", "browser_problem"]


def browser_problem(binding: Mapping[str, Any]) -> str | None:
    """Why a `cdp/1.3` capability cannot be bridged; None where it can."""
    scheme = urlsplit(str(binding.get("url"))).scheme
    if scheme in ("ws", "http"):
        return None
    return f"{scheme} cannot be carried through the control channel; ws and http can"


class BrowserScreen(ForwardedScreen[RemoteBrowserWorld]):
    """A browser behind a HUD server. Made by `open`."""

    @classmethod
    async def open(
        cls, control: Control, name: str, binding: Mapping[str, Any], shared: Shared
    ) -> "BrowserScreen":
        """Attach through a stream of the control channel.

        Raises:
            EnvironmentFailed: It cannot be attached to.
        """
        stack = AsyncExitStack()
        params: Mapping[str, Any] = binding["params"]
        target = params.get("target_id")
        try:
            host, port = await stack.enter_async_context(control.forward(name))
            parts = urlsplit(str(binding["url"]))
            place, _, page = parts.path.partition("/devtools/page/")
            endpoint = f"http://{host}:{port}"
            if "/devtools/browser/" in place:
                endpoint = urlunsplit(("ws", f"{host}:{port}", place, "", ""))
            world = await attach_browser(
                endpoint, shared, target_id=str(target) if target else page or None
            )
        except BaseException:
            await stack.aclose()
            raise
        return cls(world, stack)

    def remembered(self) -> dict[str, Any]:
        """What another process must know of what the agent was told."""
        return self._world.remembered()

    def remember(self, told: Mapping[str, Any]) -> None:
        """Go on after another process."""
        self._world.remember(told)

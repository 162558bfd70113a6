"""Calls of a server's tools from inside its process: what an episode is driven by."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.errors import InvalidTask
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import perform_call
from hud_mcp.server.own_tools import OwnTool, own_tools
from hud_mcp.server.tools import CORE
from hud_mcp.session.caller import Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import ImageFormat

__all__ = ["Calls"]


class Calls:
    """The tools of a server, for callers that speak another protocol than MCP.

    Args:
        sessions: What is served.
        image: The format of pictures.
    """

    def __init__(self, sessions: Sessions, image: ImageFormat) -> None:
        self.sessions = sessions
        self.own: Mapping[str, OwnTool] = own_tools(sessions, taken=CORE)
        self._image: ImageFormat = image

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Call a tool, as an MCP client does.

        Args:
            caller: Who calls.
            name: The tool's.
            arguments: As they came.
            meta: What goes beside them.

        Returns:
            The result, which says in its `isError` and `_meta` what was refused.

        Raises:
            InvalidTask: There is no such tool.
        """
        tool = CORE.get(name) or self.own.get(name)
        if tool is None:
            known = ", ".join(n for n, own in self.own.items() if own.is_listed) or "none"
            raise InvalidTask(f"There is no tool {name!r}. The environment's own are: {known}.")
        call = Call(self.sessions, caller, arguments, None, self._image, meta or {})
        return await perform_call(call, tool)

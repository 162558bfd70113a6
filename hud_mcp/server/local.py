"""The tools of this process's sessions for callers in it, with the same replies as on a wire."""

import secrets
from collections.abc import Mapping
from typing import Any

from hud_mcp.record.values import Receipt
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import perform_call
from hud_mcp.server.own_tools import OwnTool, own_tools
from hud_mcp.server.results import error_result
from hud_mcp.server.tools import CORE, CoreTool
from hud_mcp.session.caller import LOCAL, ONLY, Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat

__all__ = ["LocalTools"]


class LocalTools:
    """The tools of a registry, for callers in its process. No other code calls them there.

    Args:
        sessions: The registry.
        image: The format of pictures, unless a call names one.

    Attributes:
        sessions: The registry.
        own: The environments' own tools, by name.
    """

    def __init__(self, sessions: Sessions, *, image: ImageFormat = DEFAULT_FORMAT) -> None:
        self.sessions = sessions
        self.own: Mapping[str, OwnTool] = own_tools(sessions, taken=CORE)
        self._image: ImageFormat = image
        self._caller = Caller(connection=f"{LOCAL}{secrets.token_hex(8)}")
        self._tools, self._agent_tools = (
            {n: t for n, t in CORE.items() if t.is_for(one_session=one)} | dict(self.own)
            for one in (False, True)
        )

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        *,
        caller: Caller | None = None,
    ) -> dict[str, Any]:
        """Call a tool, and return the result in its wire form. A refusal raises nothing.

        Args:
            name: The tool's name.
            arguments: The arguments of the call.
            meta: The metadata of the call; `hud-mcp/only` makes it an agent's of one session.
            caller: The caller of another protocol than MCP. By default, the one client of a server
                on stdio calls.
        """
        meta = meta or {}
        only = meta.get(ONLY)
        caller = caller or self._caller
        if only is not None:
            caller = caller.only(digest(str(only)))
        tool = self.find(name, one_session=caller.is_agent)
        if tool is None:
            return error_result(f"Unknown tool: {name}")
        call = Call(self.sessions, caller, arguments, None, self._image, meta)
        return await perform_call(call, tool)

    def find(self, name: str, *, one_session: bool = False) -> CoreTool | OwnTool | None:
        """Return the tool that a client has by this name; None if it has no such tool.

        Args:
            name: The tool's name.
            one_session: Whether the client is an agent of one session.
        """
        return (self._agent_tools if one_session else self._tools).get(name)

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """Return the record's id and the receipt of a session that this process has ended."""
        found = self.sessions.here(session, self._caller)
        if found is None or found.receipt is None:
            return None
        return found.trajectory_id, found.receipt

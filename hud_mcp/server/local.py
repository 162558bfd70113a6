"""The tools of sessions of this process, for a caller in it: no wire, no copy, the same replies."""

import secrets
from collections.abc import Mapping
from typing import Any

from hud_mcp.record.trajectory import Receipt
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import perform_call
from hud_mcp.server.own_tools import own_tools
from hud_mcp.server.results import error_result
from hud_mcp.server.tools import CORE
from hud_mcp.session.caller import LOCAL, ONLY, Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat

__all__ = ["LocalTools"]


class LocalTools:
    """Calls tools of a registry, as the one client of a server on stdio does.

    Args:
        sessions: The registry.
        image: The format of pictures, unless a call names one.
    """

    def __init__(self, sessions: Sessions, *, image: ImageFormat = DEFAULT_FORMAT) -> None:
        self._sessions = sessions
        self._image: ImageFormat = image
        self._caller = Caller(connection=f"{LOCAL}{secrets.token_hex(8)}")
        own = own_tools(sessions, taken=CORE)
        self._tools, self._agent_tools = (
            {n: t for n, t in CORE.items() if t.is_for(one_session=one)} | own
            for one in (False, True)
        )

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call a tool; what goes wrong is told in the reply, which is as on the wire.

        Args:
            name: The tool's.
            arguments: The call's.
            meta: What comes with it; `hud-mcp/only` makes it an agent's of one session.
        """
        only = meta.get(ONLY)
        caller = self._caller if only is None else self._caller.only(digest(str(only)))
        tool = (self._agent_tools if caller.is_agent else self._tools).get(name)
        if tool is None:
            return error_result(f"Unknown tool: {name}")
        call = Call(self._sessions, caller, arguments, None, self._image, meta)
        return await perform_call(call, tool)

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """The record's id of a session that this process has ended, and its receipt; else None."""
        found = self._sessions.here(session, self._caller)
        if found is None or found.receipt is None:
            return None
        return found.trajectory_id, found.receipt

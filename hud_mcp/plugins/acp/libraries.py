"""The library of the Agent Client Protocol, and the SDK's streams, each loaded at its first use."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from acp import schema as schema
    from mcp.shared.message import SessionMessage as SessionMessage
    from mcp_types import jsonrpc_message_adapter as jsonrpc_message_adapter
else:
    __getattr__ = lazy_names(__name__)

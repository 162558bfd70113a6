"""The parts of the SDK that servers' lists and wires need, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from mcp_types.methods import serialize_server_result as serialize_server_result
else:
    __getattr__ = lazy_names(__name__)

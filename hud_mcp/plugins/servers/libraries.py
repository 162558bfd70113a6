"""The modules that few calls need, each loaded when it is first used: the SDK's, and SQL's."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import mcp_types as mcp_types
    from jsonschema import Draft202012Validator as Draft202012Validator
    from jsonschema.exceptions import SchemaError as SchemaError
    from mcp.shared.inbound import encode_header_value as encode_header_value
    from mcp.shared.inbound import find_invalid_x_mcp_header as find_invalid_x_mcp_header
    from mcp.shared.inbound import mcp_param_headers as mcp_param_headers
    from mcp.shared.inbound import x_mcp_header_map as x_mcp_header_map
    from mcp.shared.message import ClientMessageMetadata as ClientMessageMetadata
    from mcp.shared.message import SessionMessage as SessionMessage
    from mcp_types import jsonrpc_message_adapter as jsonrpc_message_adapter
    from mcp_types.methods import serialize_server_result as serialize_server_result
    from referencing import Registry as Registry
    from referencing.exceptions import Unresolvable as Unresolvable

    from hud_mcp.plugins.servers import sampling as sampling
    from hud_mcp.plugins.servers import statements as statements
else:
    __getattr__ = lazy_names(__name__)

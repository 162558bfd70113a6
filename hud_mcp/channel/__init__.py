"""The HUD control channel: newline-delimited JSON-RPC over TCP, and streams through it.

`server.py` serves an environment on it; `frames.py` is its framing, `connection.py` one peer's
conversation, `hud_sessions.py` which task a peer holds, `tunnel.py` a stream to a capability, and
`client.py` the other side. `endpoints/` gives sessions ways into their worlds beside its own
calls, such as `ssh.py`, whose server is `ssh_server.py`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hud_mcp.channel.server import bind, serve

__all__ = ["bind", "serve"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from hud_mcp.channel import server  # noqa: PLC0415  # loads when it is used

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

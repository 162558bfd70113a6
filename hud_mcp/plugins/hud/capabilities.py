"""`Capability`, by the name of HUD's documents.

HUD's module also has clients for agents. If a program imports one, the error names a library.
"""

from hud_mcp.values.capability import Capability

__all__ = ["Capability"]

_INSTEAD = {
    "CapabilityClient": "Connect with a library for its protocol.",
    "CDPClient": "Use Playwright: `chromium.connect_over_cdp(capability.url)`.",
    "Connection": "The channel hands a process no connection of its controller's.",
    "FileTrackingClient": "The files that an agent wrote are steps of the session's record.",
    "MCPClient": "Use `mcp.client.Client` with the capability's URL.",
    "RFBClient": "Use vncdotool with the capability's host, port and password.",
    "RobotClient": "Use websockets and msgpack with the capability's URL and contract.",
    "SSHClient": "Use asyncssh with the capability's `user`, `client_key` and `host_pubkey`.",
}


def __getattr__(name: str) -> object:
    if name in _INSTEAD:
        raise ImportError(f"hud_mcp.capabilities has no {name}. {_INSTEAD[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

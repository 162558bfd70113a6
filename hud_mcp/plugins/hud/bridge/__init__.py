"""A HUD environment as one of ours: its tasks, its capabilities and its grades.

`environment.py` reads what there is and declares it; `origin.py` is where the HUD server is,
`control.py` the connection that a session has there, `world.py` the world that owns it, and
`shell.py`, `proxy.py`, `desktop.py` what its capabilities become.
"""

from hud_mcp.plugins.hud.bridge.environment import bridge

__all__ = ["bridge"]

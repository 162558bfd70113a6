"""A HUD environment as one of ours: its tasks, its capabilities and its grades.

`environment` reads and declares it. `origin` finds or starts the HUD server. `control` is the
connection of a session to it, and `world` the world of the session. The capabilities become a
`shell`, tools (`proxy`), or one of the `screens`, or a `robot`.
"""

from hud_mcp.plugins.hud.bridge.environment import bridge

__all__ = ["bridge"]

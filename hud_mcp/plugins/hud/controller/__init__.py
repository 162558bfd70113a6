"""Gyms of a user's own, in which a package `hud_controller` acts and grades.

`places` is where one runs, `inside` what is started there for each call, `world` what a session
has of it.
"""

from hud_mcp.plugins.hud.controller.world import ControllerSpec, ControllerWorld

__all__ = ["ControllerSpec", "ControllerWorld"]

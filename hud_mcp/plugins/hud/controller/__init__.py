"""Gyms of users, in which a package `hud_controller` acts and grades.

`places` runs a controller, `inside` has the program of each call, and `world` declares the gym.
"""

from hud_mcp.plugins.hud.controller.world import ControllerSpec, ControllerWorld

__all__ = ["ControllerSpec", "ControllerWorld"]

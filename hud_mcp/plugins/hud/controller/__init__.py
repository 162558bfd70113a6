"""Gyms of users, in which a package `hud_controller` acts and grades."""

from hud_mcp.plugins.hud.controller.world import ControllerSpec, ControllerWorld

__all__ = ["ControllerSpec", "ControllerWorld"]

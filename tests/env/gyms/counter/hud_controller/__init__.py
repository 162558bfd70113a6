"""A controller as the HUD SDK had them: functions that act on what is beside them."""

from .main import step

__all__ = ["step"]

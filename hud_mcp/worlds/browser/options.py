"""What a page is opened with, before a session has it."""

from dataclasses import dataclass

__all__ = ["SlotOptions"]


@dataclass(frozen=True, kw_only=True)
class SlotOptions:
    """What a context is opened with; contexts of equal options are interchangeable."""

    width: int
    height: int
    scale: float
    locale: str
    timezone: str
    color_scheme: str
    reduced_motion: str
    font_scale: float = 1.0

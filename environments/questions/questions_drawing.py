"""What the pictures have in common: fonts that come with Pillow, and PNG without metadata."""

import io
import math
from functools import cache

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageDraw import ImageDraw as Draw

__all__ = ["INK", "PAPER", "Draw", "arrow_line", "canvas", "font", "png", "write"]

PAPER = (252, 251, 247)
INK = (38, 42, 48)
Colour = tuple[int, int, int]
Point = tuple[float, float]


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own font; letters beyond ASCII are not in it."""
    return ImageFont.load_default(size)


def canvas(width: int, height: int, colour: Colour = PAPER) -> tuple[Image.Image, Draw]:
    """An empty picture, and what draws on it."""
    image = Image.new("RGB", (width, height), colour)
    return image, ImageDraw.Draw(image)


def write(
    draw: Draw, at: Point, text: str, size: int = 16, *, colour: Colour = INK, anchor: str = "mm"
) -> None:
    """Write text; `anchor` is Pillow's, the middle by default."""
    draw.text(at, text, fill=colour, font=font(size), anchor=anchor)


def arrow_line(draw: Draw, begin: Point, end: Point, *, colour: Colour = INK) -> None:
    """A line with a short stroke across each end, as dimensions have it."""
    draw.line([begin, end], fill=colour, width=2)
    angle = math.atan2(end[1] - begin[1], end[0] - begin[0]) + math.pi / 2
    dx, dy = 7 * math.cos(angle), 7 * math.sin(angle)
    for x, y in (begin, end):
        draw.line([(x - dx, y - dy), (x + dx, y + dy)], fill=colour, width=2)


def png(image: Image.Image) -> bytes:
    """The picture as PNG, with nothing beside it."""
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()

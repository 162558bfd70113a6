"""A trajectory's frames as one animated GIF. Importing this loads Pillow."""

import io
import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from hud_mcp.plugins.view.export.files import Pictures
from hud_mcp.plugins.view.export.scenes import Scene, Spot, choose, scenes_of
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import ScreenshotRecord

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Place = tuple[float, float]

_PAPER, _TABLE, _INK, _FAINT = "#f8fafc", "#cbd5e1", "#0f172a", "#64748b"
_BAR, _BAR_INK, _BAR_FAINT = "#111827", "#f9fafb", "#fca5a5"
_ACT, _MOVE, _REFUSED = "#e11d48", "#2563eb", "#6b7280"
_BADGES = {"plain": "#334155", "good": "#15803d", "bad": "#b91c1c", "dim": "#475569"}
COLORS = (_PAPER, _TABLE, _INK, _FAINT, _BAR, _BAR_INK, _BAR_FAINT, _ACT, _MOVE, *_BADGES.values())
"""The colours that every palette needs."""

_FACES = ("DejaVuSans.ttf", "Arial.ttf", "LiberationSans-Regular.ttf")
_BOLD_FACES = ("DejaVuSans-Bold.ttf", "Arial Bold.ttf", "LiberationSans-Bold.ttf")
_MOST_LINES = 60
"""The most lines of a frame with text alone."""

_SMOOTH = 2


class Sheet:
    """The size of all frames of one film, with `lines` of words below each picture."""

    def __init__(self, width_px: int, picture_height_px: int, lines: int) -> None:
        self.font_px = max(11, round(width_px / 50))
        self.width_px = width_px
        self.picture_height_px = picture_height_px
        self.lines = lines
        self._margin = round(self.font_px * 0.6)
        self._line_px = round(self.font_px * 1.4)
        self.height_px = picture_height_px + lines * self._line_px + 2 * self._margin

    def draw(self, scene: Scene, picture: Image.Image | None) -> Image.Image:
        """Draw one frame; `picture` is None if the scene has none, or it is missing."""
        paper = _PAPER if picture is None else _TABLE
        frame = Image.new("RGB", (self.width_px, self.height_px), paper)
        if picture is not None:
            self._draw_picture(frame, scene, picture)
        else:
            self._draw_text(frame, scene)
        self._draw_bar(frame, scene)
        return frame

    def caption_lines(self, scene: Scene) -> int:
        """Return the number of lines of the scene's words and note."""
        lines = _wrap(scene.words, self._font, self._room(scene), 2)
        return len(lines) + (1 if scene.note else 0)

    def text_height_px(self, scene: Scene) -> float:
        """Return the height of the part with the scene's text."""
        room = self.width_px - 4 * self.font_px
        lines = len(_wrap_lines(scene.text, self._font, room, _MOST_LINES))
        return self.font_px * 4 + self._line_px * (lines + 2)

    @property
    def _font(self) -> Font:
        return _load_font(_FACES, self.font_px)

    @property
    def _bold(self) -> Font:
        return _load_font(_BOLD_FACES, self.font_px)

    def _draw_picture(self, frame: Image.Image, scene: Scene, picture: Image.Image) -> None:
        factor = min(self.width_px / picture.width, self.picture_height_px / picture.height)
        size = max(1, round(picture.width * factor)), max(1, round(picture.height * factor))
        left = (self.width_px - size[0]) // 2
        shown = picture.resize(size, Image.Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names NumPy arrays
        if scene.marks:
            layer = Image.new("RGBA", (size[0] * _SMOOTH, size[1] * _SMOOTH))
            for spot in scene.marks:
                self._draw_spot(ImageDraw.Draw(layer), spot, factor, layer.size)
            small = layer.resize(size, Image.Resampling.BOX)  # pyright: ignore[reportUnknownMemberType]  # the same
            shown.paste(small, (0, 0), small)
        frame.paste(shown, (left, 0))

    def _draw_spot(
        self, draw: ImageDraw.ImageDraw, spot: Spot, factor: float, size: tuple[int, int]
    ) -> None:
        unit = self.width_px / 400 * _SMOOTH
        color = _REFUSED if not spot.performed else _ACT if spot.presses else _MOVE
        places = [(x * factor * _SMOOTH, y * factor * _SMOOTH) for x, y in spot.points]
        if spot.scroll is not None:
            places = [places[0] if places else (size[0] / 2, size[1] / 2)]
            dx, dy = spot.scroll
            far = math.hypot(dx, dy) or 1
            x, y = places[0]
            reach = unit * 45
            _arrow(draw, [(x, y), (x + dx / far * reach, y + dy / far * reach)], unit, color)
        elif len(places) > 1:
            _arrow(draw, places, unit, color)
        for ring in range(spot.clicks if spot.scroll is None else 0):
            _ring(draw, places[0], unit * (9 + 5 * min(ring, 3)), unit, color)
        if spot.number and places:
            self._draw_number(draw, spot.number, places[0], unit, color)

    def _draw_number(
        self, draw: ImageDraw.ImageDraw, number: int, at: Place, unit: float, color: str
    ) -> None:
        x, y = at[0] + unit * 12, at[1] - unit * 12
        radius = unit * 7
        _disc(draw, (x, y), radius, color)
        font = _load_font(_BOLD_FACES, round(unit * 9))
        draw.text((x, y), str(number), fill="white", font=font, anchor="mm")

    def _draw_text(self, frame: Image.Image, scene: Scene) -> None:
        draw = ImageDraw.Draw(frame)
        margin = self.font_px * 2
        y = float(margin)
        room = self.width_px - 2 * margin
        if scene.heading:
            heading = _wrap(scene.heading, self._bold, room, 1)
            draw.text((margin, y), "".join(heading), fill=_INK, font=self._bold)
            y += self._line_px * 1.6
        if scene.picture is not None:
            draw.text((margin, y), "The screenshot is missing.", fill=_FAINT, font=self._font)
            return
        most = max(1, int((self.picture_height_px - y - margin / 2) // self._line_px))
        for line in _wrap_lines(scene.text, self._font, room, most):
            draw.text((margin, y), line, fill=_INK, font=self._font)
            y += self._line_px

    def _room(self, scene: Scene) -> float:
        badge = self._bold.getlength(_printable(scene.badge)) + 2 * self._margin
        return self.width_px - badge - 3 * self._margin

    def _draw_bar(self, frame: Image.Image, scene: Scene) -> None:
        draw = ImageDraw.Draw(frame)
        top, margin = self.picture_height_px, self._margin
        draw.rectangle((0, top, self.width_px, self.height_px), fill=_BAR)
        badge = _printable(scene.badge)
        width = self._bold.getlength(badge) + 2 * margin
        box = (margin, top + margin * 0.7, margin + width, top + margin * 1.3 + self._line_px)
        draw.rounded_rectangle(box, radius=margin, fill=_BADGES[scene.tone])
        middle = top + margin + self._line_px / 2
        draw.text((margin + width / 2, middle), badge, fill=_BAR_INK, font=self._bold, anchor="mm")
        room = self._room(scene)
        words = _wrap(scene.words, self._font, room, max(1, self.lines - bool(scene.note)))
        notes = _wrap(scene.note or "", self._font, room, 1) if scene.note else []
        lines = [(line, _BAR_INK) for line in words] + [(line, _BAR_FAINT) for line in notes]
        for number, (line, color) in enumerate(lines[: self.lines]):
            y = middle + number * self._line_px
            draw.text((2 * margin + width, y), line, fill=color, font=self._font, anchor="lm")


def _ring(draw: ImageDraw.ImageDraw, at: Place, radius: float, unit: float, color: str) -> None:
    x, y = at
    for grow, width, fill in ((unit, 4.5, "white"), (0.0, 2.5, color)):
        edge = radius + grow
        box = (x - edge, y - edge, x + edge, y + edge)
        draw.ellipse(box, outline=fill, width=round(unit * width))
    _disc(draw, at, unit * 2, color)


def _disc(draw: ImageDraw.ImageDraw, at: Place, radius: float, color: str) -> None:
    x, y = at
    box = (x - radius, y - radius, x + radius, y + radius)
    draw.ellipse(box, fill=color, outline="white", width=max(1, round(radius / 4)))


def _arrow(draw: ImageDraw.ImageDraw, path: Sequence[Place], unit: float, color: str) -> None:
    (x0, y0), (x1, y1) = path[-2], path[-1]
    turn = math.atan2(y1 - y0, x1 - x0)
    # The line ends inside of the head, or its blunt end would stand out beyond the tip.
    end = (x1 - unit * 10 * math.cos(turn), y1 - unit * 10 * math.sin(turn))
    head = [(x1, y1)]
    head += [
        (x1 - unit * 14 * math.cos(turn + side), y1 - unit * 14 * math.sin(turn + side))
        for side in (-0.45, 0.45)
    ]
    for width, fill in ((6.0, "white"), (3.0, color)):
        draw.line([*path[:-1], end], fill=fill, width=round(unit * width), joint="curve")
        draw.polygon(head, fill=fill, outline="white", width=max(1, round(unit)))


@cache
def _load_font(faces: tuple[str, ...], size: int) -> Font:
    for face in faces:
        try:
            return ImageFont.truetype(face, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def _printable(text: str) -> str:
    """Return text on one line, without characters that turn or hide the rest of it."""
    return "".join(c if c.isprintable() else " " for c in text)


def _wrap_lines(text: str, font: Font, room: float, most: int) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines += _wrap(line, font, room, most) or [""]
        if len(lines) > most:
            return [*lines[: most - 1], "…"]
    return lines


def _wrap(text: str, font: Font, room: float, most: int) -> list[str]:
    """Break a text into lines no wider than `room`; the rest ends in an ellipsis."""
    clean = _printable(text[:2000]).strip()
    rest, lines = clean, list[str]()
    while rest:
        fits = _fitting(rest, font, room)
        if fits == len(rest):
            lines.append(rest)
            break
        if len(lines) == most - 1:
            fits = _fitting(rest, font, room - font.getlength("…"))
            lines.append(rest[:fits].rstrip() + "…")
            break
        space = rest.rfind(" ", 0, fits + 1)
        cut = space if space > fits // 2 else fits
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return lines


def _fitting(text: str, font: Font, room: float) -> int:
    """Return the number of characters that fit, at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if font.getlength(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return low


_COLORS = 256
_SAMPLES = 12
"""The frames that the palette is made from."""

_SAMPLE_PX = 240
_TALLEST = 1.25
"""The largest height of a picture, as a multiple of its width."""

_LEAST_WIDTH_PX = 480
"""Smaller pictures are enlarged, for room for words."""


def save_film(
    trajectory: Trajectory, path: Path, pictures: Pictures, *, width_px: int, max_frames: int
) -> None:
    """Draw a trajectory, and write it as a GIF.

    Raises:
        OSError: The file cannot be written.

    One palette, from frames of the whole film, serves all: a frame stores only its changes.
    """
    scenes = choose(scenes_of(trajectory), max_frames)
    sheet = _sheet(scenes, width_px)
    palette = _palette(scenes, sheet, pictures)
    frames = (
        frame.quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in _frames(scenes, sheet, pictures)
    )
    first = next(frames)
    first.save(
        path,
        "GIF",
        save_all=True,
        append_images=frames,
        duration=[scene.hold_ms for scene in scenes],
        loop=0,
        disposal=1,
    )


def _sheet(scenes: Sequence[Scene], width_px: int) -> Sheet:
    shots = [scene.picture for scene in scenes if scene.picture is not None]
    widest = max((shot.width_px for shot in shots), default=width_px)
    width = min(width_px, max(widest, _LEAST_WIDTH_PX))
    heights = [shot.height_px * width / shot.width_px for shot in shots]
    tallest = max(heights, default=0)
    if tallest < width / 4:
        tallest = max(Sheet(width, 0, 1).text_height_px(scene) for scene in scenes)
    height = round(min(max(tallest, width / 4), width * _TALLEST))
    lines = max(Sheet(width, height, 1).caption_lines(scene) for scene in scenes)
    return Sheet(width, height, min(lines, 3))


def _frames(scenes: Sequence[Scene], sheet: Sheet, pictures: Pictures) -> Iterator[Image.Image]:
    """Draw scenes in order, opening a picture once where several stand on it."""
    record: ScreenshotRecord | None = None
    picture: Image.Image | None = None
    for scene in scenes:
        if scene.picture != record:
            record = scene.picture
            picture = _open(record, pictures) if record is not None else None
        yield sheet.draw(scene, picture)


def _open(record: ScreenshotRecord, pictures: Pictures) -> Image.Image | None:
    data = pictures.read(record)
    if data is None:
        return None
    try:
        with Image.open(io.BytesIO(data)) as opened:
            return opened.convert("RGB")
    except (UnidentifiedImageError, OSError):
        return None  # recorded so


def _palette(scenes: Sequence[Scene], sheet: Sheet, pictures: Pictures) -> Image.Image:
    """Return the colours that the film needs most, and those of the marks."""
    chosen = choose(scenes, _SAMPLES)
    height = max(1, round(sheet.height_px * _SAMPLE_PX / sheet.width_px))
    montage = Image.new("RGB", (_SAMPLE_PX * len(chosen), height + len(COLORS)))
    for column, frame in enumerate(_frames(chosen, sheet, pictures)):
        small = frame.resize((_SAMPLE_PX, height), Image.Resampling.NEAREST)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names NumPy arrays
        montage.paste(small, (_SAMPLE_PX * column, 0))
    for row, color in enumerate(COLORS):
        montage.paste(color, (0, height + row, montage.width, height + row + 1))
    return montage.quantize(_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)

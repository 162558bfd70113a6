"""A trajectory's frames as one animated GIF. Importing this loads Pillow."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from hud_mcp.plugins.view.export.drawing import COLORS, Sheet
from hud_mcp.plugins.view.export.pictures import Pictures
from hud_mcp.plugins.view.export.scenes import Scene, choose, scenes_of
from hud_mcp.record.trajectory import ScreenshotRecord, Trajectory

__all__ = ["save_film"]

_COLORS = 256
_SAMPLES = 12
"""Frames that the palette is made from."""

_SAMPLE_PX = 240
_TALLEST = 1.25
"""The most that a picture may be high, as a multiple of its width."""

_LEAST_WIDTH_PX = 480
"""Smaller pictures are enlarged, so that there is room for words."""


def save_film(
    trajectory: Trajectory, path: Path, pictures: Pictures, *, width_px: int, max_frames: int
) -> None:
    """Draw a trajectory and write it.

    Args:
        trajectory: Its record; it may go on still.
        path: The file.
        pictures: Reads the screenshots.
        width_px: The most that a frame may be wide.
        max_frames: The most frames.

    Raises:
        OSError: The file cannot be written.

    One palette, made from frames of the whole film, serves all of them, so that a frame
    stores only what differs from the one before.
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
    """The colours that the film needs most, and those of the marks."""
    chosen = choose(scenes, _SAMPLES)
    height = max(1, round(sheet.height_px * _SAMPLE_PX / sheet.width_px))
    montage = Image.new("RGB", (_SAMPLE_PX * len(chosen), height + len(COLORS)))
    for column, frame in enumerate(_frames(chosen, sheet, pictures)):
        small = frame.resize((_SAMPLE_PX, height), Image.Resampling.NEAREST)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names NumPy arrays
        montage.paste(small, (_SAMPLE_PX * column, 0))
    for row, color in enumerate(COLORS):
        montage.paste(color, (0, height + row, montage.width, height + row + 1))
    return montage.quantize(_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)

"""A trajectory as a notebook shows it: the pages' player in a frame that needs no network.

A notebook keeps in its own file what it shows, so a frame has a largest size.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from hud_mcp.base.text import clip_and_count
from hud_mcp.plugins.view.web.pages import notebook_page
from hud_mcp.plugins.view.web.report import ReadPicture, embed_pictures, whole_run
from hud_mcp.plugins.view.web.values import Json, encode
from hud_mcp.record.trajectory import ScreenshotRecord, Trajectory, TrajectoryStep
from hud_mcp.show.lines import visible_line
from hud_mcp.show.transcript import end_text, picture_path

__all__ = ["FRAME_LIMIT_BYTES", "counted", "trajectory_html"]

FRAME_LIMIT_BYTES = 8_000_000
"""Of a frame's pictures and texts together; the player itself adds some 100 kB."""

_TEXT_SHARE = 0.25
_TEXT_CHARS = 4_000
_FRAME_HEIGHT_PX = 720


def trajectory_html(trajectory: Trajectory, *, limit_bytes: int = FRAME_LIMIT_BYTES) -> str:
    """Write a trajectory for a notebook: a line that sums it up, and the player in a frame.

    The frame runs the player's script alone. It fetches nothing, and reaches nothing of the
    notebook. Where a notebook removes frames, the line stays.

    Args:
        trajectory: What to show; it may still go on, and have no steps.
        limit_bytes: Pictures and texts beyond this are left out, and a line says so; the first
            ones stay.
    """
    run, left_out = _bounded(trajectory, int(limit_bytes * _TEXT_SHARE))
    shown = trajectory.steps[: len(run["steps"])]
    room_bytes = limit_bytes - len(encode(run))
    # Base64 writes three bytes as four.
    known, pictures = embed_pictures(
        [trajectory.model_copy(update={"steps": shown})], _reader(shown), room_bytes * 3 // 4
    )
    missing = sum("left out" in (each["problem"] or "") for each in known.values())
    left_out += [counted(missing, "picture")] if missing else []
    page = notebook_page({"trajectory": run, "pictures": known}, pictures)
    return "".join(_framed(trajectory, page, left_out))


def counted(number: int, noun: str) -> str:
    """A number of things in words, such as `1 step` or `1,200 steps`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _framed(trajectory: Trajectory, page: str, left_out: Sequence[str]) -> Iterator[str]:
    steps = counted(len(trajectory.steps), "step")
    said = " · ".join([trajectory.task.id, end_text(trajectory), steps, trajectory.id])
    yield f'<div class="hud-mcp-trajectory"><p>{escape(visible_line(said))}</p>'
    if left_out:
        yield f"<p>Left out, so that the notebook stays small: {', '.join(left_out)}. "
        yield "<code>hud-mcp view</code> shows the whole run.</p>"
    yield '<iframe sandbox="allow-scripts" title="The player of the run" loading="lazy" '
    yield f'style="width: 100%; height: {_FRAME_HEIGHT_PX}px; border: 1px solid #8888; '
    yield f"border-radius: 6px\" srcdoc='{_quoted(page)}'></iframe></div>"


def _quoted(page: str) -> str:
    """A page as an attribute between single quotes, for JSON is full of double ones."""
    return escape(page, quote=False).replace("'", "&#x27;")


def _reader(steps: Sequence[TrajectoryStep]) -> ReadPicture:
    """What reads pictures from where the store has put those of these steps."""
    paths = {step.screenshot.sha256: picture_path(step) for step in steps if step.screenshot}

    def read(record: ScreenshotRecord) -> bytes | None:
        path = paths.get(record.sha256)
        try:
            return None if path is None else path.read_bytes()
        except OSError:
            return None

    return read


def _bounded(trajectory: Trajectory, limit_bytes: int) -> tuple[Json, list[str]]:
    """What the player shows but for its pictures, and what had to be left out of it."""
    run = whole_run(trajectory)
    left_out: list[str] = []
    if len(encode(run)) > limit_bytes:
        for step in run["steps"]:
            del step["raw"]
        left_out.append("the raw records of steps")
    if len(encode(run)) > limit_bytes:
        run = _shortened(run)
        left_out.append("the ends of long texts")
    sizes = [len(encode(step)) for step in run["steps"]]
    room_bytes = limit_bytes - (len(encode(run)) - sum(sizes))
    kept = 0
    while kept < len(sizes) and sizes[kept] <= room_bytes:
        room_bytes -= sizes[kept]
        kept += 1
    if kept < len(sizes):
        left_out.append(f"the last {counted(len(sizes) - kept, 'step')}")
        run["steps"] = run["steps"][:kept]
    return run, left_out


def _shortened(value: Any) -> Any:
    """The same JSON value with each of its texts cut to a length."""
    if isinstance(value, str):
        return clip_and_count(value, _TEXT_CHARS, before="\n")
    if isinstance(value, list):
        return [_shortened(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value

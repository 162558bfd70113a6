"""A trajectory as a moving picture: what the agent saw, with what it did drawn on it.

Each frame is the picture before a step, with the step's actions on it; under it, the step's
number and its actions in words. The first frame says what was asked, the last how it ended.
"""

import logging
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio.to_thread

from hud_mcp.plugins.view.export import libraries
from hud_mcp.plugins.view.export.files import MANIFEST, new_file, new_folder
from hud_mcp.plugins.view.export.pictures import Pictures
from hud_mcp.plugins.view.export.selection import read, select
from hud_mcp.plugins.view.export.summary import ExportSummary, OnProgress, Tally
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store

__all__ = ["MAX_BYTES", "MAX_FRAMES", "WIDTH_PX", "export_gif"]

logger = logging.getLogger(__name__)

WIDTH_PX = 800
MAX_FRAMES = 120
MAX_BYTES = 10_000_000
"""What common places for attachments take."""

_NARROWEST_PX = 240


async def export_gif(
    store: Store,
    source_id: str,
    path: Path,
    *,
    width_px: int = WIDTH_PX,
    max_frames: int = MAX_FRAMES,
    max_bytes: int = MAX_BYTES,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportSummary:
    """Write a trajectory as an animated GIF, or a job as a folder of them.

    Args:
        store: Where it is recorded.
        source_id: The trajectory's id, or a job's.
        path: The file; for a job, the folder.
        width_px: The most that a picture may be wide.
        max_frames: Of a longer trajectory, so many are chosen evenly.
        max_bytes: Of one file; a larger one is made again with smaller pictures, down to
            240 px, and then with fewer frames.
        force: Replace what a former export wrote there.
        on_progress: Called after each trajectory.

    Raises:
        SourceNotFound: There is neither such a job nor such a trajectory.
        OutputExists: Something is there already. Nothing was written.
        StoreFailed: The store cannot be read.
        OSError: The file cannot be written.

    After a failure or a cancellation, no written file stays.
    """
    selection = await select(store, source_id)
    tally = Tally()
    draw = partial(
        _write,
        pictures=Pictures(store, tally),
        width_px=width_px,
        max_frames=max_frames,
        max_bytes=max_bytes,
    )
    if not selection.whole_job:
        with new_file(path, force=force) as temporary:
            async for trajectory in read(store, selection, tally, on_progress):
                await anyio.to_thread.run_sync(draw, trajectory, temporary)
        return tally.summary("gif", path)
    with new_folder(path, force=force) as folder:
        async for trajectory in read(store, selection, tally, on_progress):
            await anyio.to_thread.run_sync(draw, trajectory, folder / _name(trajectory))
        (folder / MANIFEST).write_text(tally.manifest("gif", selection.id), encoding="utf-8")
    return tally.summary("gif", path)


def _name(trajectory: Trajectory) -> str:
    """A file's name that says the task and is one of a kind."""
    task = re.sub(r"[^\w.-]+", "-", trajectory.task.id, flags=re.ASCII).strip(".-")[:80]
    return f"{task or 'task'}.{trajectory.id}.gif"


def _write(
    trajectory: Trajectory,
    path: Path,
    *,
    pictures: Pictures,
    width_px: int,
    max_frames: int,
    max_bytes: int,
) -> None:
    save: Callable[[int, int], None] = lambda width, frames: libraries.save_film(  # noqa: E731
        trajectory, path, pictures, width_px=width, max_frames=frames
    )
    while True:
        save(width_px, max_frames)
        size = path.stat().st_size
        if size <= max_bytes:
            return
        if width_px > _NARROWEST_PX:
            width_px = max(_NARROWEST_PX, width_px * 3 // 4)
        elif max_frames > 2:  # noqa: PLR2004  # the first and the last
            max_frames = max(2, max_frames // 2)
        else:
            logger.warning("%s has %d bytes; nothing smaller can be made", path.name, size)
            return

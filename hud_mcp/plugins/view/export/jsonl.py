"""JSON Lines: everything that is recorded of each trajectory, one a line.

A line holds the fields of `Trajectory` and of its `TrajectoryStep`s as they are, and also
`outcome`, `reward`, `error`, `use` and `job`. `turns` is the model's side, where it was reported:
each turn says by `before_step` and `until_step` which steps it led to. A step's `screenshot` also
has its `mime_type` and either its `path`, relative to the file (null where the picture is
missing), or, inline, its `data` in base64. The task is there whole, metadata included: not for an
agent's eyes.
"""

import base64
from pathlib import Path
from typing import Any, BinaryIO

import anyio.to_thread

from hud_mcp.base.json_lines import escape_separators
from hud_mcp.plugins.view.export.encoding import to_json
from hud_mcp.plugins.view.export.files import new_file
from hud_mcp.plugins.view.export.pictures import MIME_TYPES, PictureFolder, Pictures
from hud_mcp.plugins.view.export.selection import Selection, read, select
from hud_mcp.plugins.view.export.summary import ExportSummary, OnProgress, Tally
from hud_mcp.record.trajectory import ScreenshotRecord, Trajectory
from hud_mcp.store import Store

__all__ = ["export_jsonl"]


async def export_jsonl(
    store: Store,
    source_id: str,
    path: Path,
    *,
    inline_images: bool = False,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportSummary:
    """Write a job, or one trajectory, as JSON Lines.

    Args:
        store: Where it is recorded.
        source_id: The job's id, or the trajectory's.
        path: The file. Pictures go to a folder beside it: `run.screenshots` for `run.jsonl`.
        inline_images: Put pictures into the lines instead.
        force: Replace a file that is there.
        on_progress: Called after each trajectory.

    Raises:
        SourceNotFound: There is neither such a job nor such a trajectory.
        OutputExists: The file is there already. Nothing was written.
        StoreFailed: The store cannot be read.
        OSError: The file cannot be written.

    After a failure or a cancellation, no written file stays.
    """
    selection = await select(store, source_id)
    tally = Tally()
    pictures = Pictures(store, tally)
    folder = PictureFolder(pictures, path.with_name(f"{path.stem}.screenshots"))
    carry = _Inline(pictures) if inline_images else _Beside(folder)
    try:
        with new_file(path, force=force) as temporary, temporary.open("wb") as file:
            async for trajectory in read(store, selection, tally, on_progress):
                await anyio.to_thread.run_sync(_write, file, trajectory, selection, carry)
    except BaseException:
        folder.withdraw()
        raise
    return tally.summary("jsonl", path)


class _Inline:
    """Puts pictures into the lines."""

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures

    def place(self, record: ScreenshotRecord) -> dict[str, Any]:
        data = self._pictures.read(record)
        return {"data": None if data is None else base64.b64encode(data).decode("ascii")}


class _Beside:
    """Puts pictures into a folder beside the file."""

    def __init__(self, folder: PictureFolder) -> None:
        self._folder = folder

    def place(self, record: ScreenshotRecord) -> dict[str, Any]:
        return {"path": self._folder.add(record)}


def _write(
    file: BinaryIO, trajectory: Trajectory, selection: Selection, carry: _Inline | _Beside
) -> None:
    row: dict[str, Any] = trajectory.model_dump(mode="json", exclude={"steps"})
    job = selection.job.model_dump(mode="json") if selection.job else None
    row |= {"outcome": trajectory.outcome, "reward": trajectory.reward, "error": trajectory.error}
    use = trajectory.use.model_dump(mode="json") if trajectory.use else None
    row |= {"cause": trajectory.cause, "use": use}
    row |= {"job": job, "steps": []}
    for step in trajectory.steps:
        made = step.model_dump(mode="json", exclude={"observation_url"})
        if step.screenshot is not None:
            kind = MIME_TYPES[step.screenshot.extension]
            made["screenshot"] |= {"mime_type": kind, **carry.place(step.screenshot)}
        row["steps"].append(made)
    file.write(escape_separators(to_json(row).encode()) + b"\n")

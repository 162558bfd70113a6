"""The formats that are one file of their own: JSON Lines, the page, and the moving picture.

A line of JSON Lines holds the fields of `Trajectory` and of its `TrajectoryStep`s, and also
`outcome`, `reward`, `error`, `use` and `job`. A step's `screenshot` also has its `mime_type` and
either its `path`, relative to the file (null if the picture is missing), or, inline, its `data` in
base64. The task is there whole, metadata included: not for an agent's eyes.
"""

import base64
import hashlib
import logging
import re
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hud_mcp.base.lines import escape_separators
from hud_mcp.plugins.view.export import libraries
from hud_mcp.plugins.view.export.exporting import Export, Option, Output
from hud_mcp.plugins.view.export.files import Pictures, to_json
from hud_mcp.plugins.view.web.report import write_report
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store

logger = logging.getLogger(__name__)

Write = Callable[[Trajectory], None]

WIDTH_PX = 800
MAX_FRAMES = 120
MAX_BYTES = 10_000_000
"""The size that common places for attachments accept."""

_NARROWEST_PX = 240

_LOGGED = re.compile(r"(\d\d:\d\d:\d\d) (.*)")
"""A line of a record's log: the time of day, in UTC, and the text."""


@asynccontextmanager
async def _jsonl(output: Output, *, inline_images: bool = False) -> AsyncGenerator[Write]:
    """Open the file. Pictures go to `run.screenshots` beside `run.jsonl`, or into the lines."""
    beside = output.place.with_name(f"{output.place.stem}.screenshots")
    folder = output.picture_folder(beside)

    def carry(record: ScreenshotRecord) -> dict[str, Any]:
        if not inline_images:
            return {"path": folder.add(record)}
        data = output.pictures.read(record)
        return {"data": None if data is None else base64.b64encode(data).decode("ascii")}

    with output.path.open("wb") as file:
        yield partial(_write_line, file, job=output.selection.job, carry=carry)


export_jsonl = Export(
    "jsonl", "everything, one line for each trajectory.", "file", _jsonl,
    {"inline_images": Option("--inline-images", "put pictures into the lines, as base64.")},
)  # fmt: skip


@asynccontextmanager
async def _html(output: Output) -> AsyncGenerator[Write]:
    yield partial(_count_pictures, output.pictures)
    selection = output.selection
    if selection.whole_job and selection.job is not None and not output.damaged:
        await write_report(output.store, selection.job.id, output.path)
    else:
        await _write_part(output)


export_html = Export("html", "a page in one file.", "file", _html)


@asynccontextmanager
async def _gif(
    output: Output, *, width_px: int = WIDTH_PX, max_frames: int = MAX_FRAMES,
    max_bytes: int = MAX_BYTES,
) -> AsyncGenerator[Write]:  # fmt: skip
    """Draw films. A trajectory longer than `max_frames` shows that many, chosen evenly.

    A file above `max_bytes` is made again with smaller pictures, down to 240 px, then with fewer
    frames.
    """

    def write(trajectory: Trajectory) -> None:
        path = output.path / _film_name(trajectory) if output.selection.whole_job else output.path
        _write_film(
            trajectory, path, output.pictures, width_px=width_px, max_frames=max_frames,
            max_bytes=max_bytes,
        )  # fmt: skip

    yield write


export_gif = Export(
    "gif", "one moving picture for each trajectory.", "files", _gif,
    {"width_px": Option("--width", "the largest width, in pixels.", "N", between=(120, 1920))},
)  # fmt: skip


def _write_line(
    file: BinaryIO, trajectory: Trajectory, *, job: Job | None,
    carry: Callable[[ScreenshotRecord], dict[str, Any]],
) -> None:  # fmt: skip
    row: dict[str, Any] = trajectory.model_dump(mode="json", exclude={"steps"})
    row |= {"outcome": trajectory.outcome, "reward": trajectory.reward, "error": trajectory.error}
    use = trajectory.use.model_dump(mode="json") if trajectory.use else None
    row |= {"cause": trajectory.cause, "use": use}
    row |= {"job": job.model_dump(mode="json") if job else None, "steps": []}
    for step in trajectory.steps:
        made = step.model_dump(mode="json", exclude={"observation_url"})
        if step.screenshot is not None:
            kind = step.screenshot.mime_type
            made["screenshot"] |= {"mime_type": kind, **carry(step.screenshot)}
        row["steps"].append(made)
    file.write(escape_separators(to_json(row).encode()) + b"\n")


def _count_pictures(pictures: Pictures, trajectory: Trajectory) -> None:
    for step in trajectory.steps:
        if step.screenshot is not None:
            pictures.read(step.screenshot)


async def _write_part(output: Output) -> None:
    """Write the page on the selected trajectories alone, as a job in a store of their own."""
    selection, screenshots = output.selection, output.store.screenshots
    fields = (
        selection.job.model_dump() if selection.job else {"name": selection.id, "planned": None}
    )
    job = Job.model_validate(fields)
    with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
        part = Store(Path(folder) / "store.sqlite3", screenshots=screenshots)
        try:
            await part.add_job(job)
            async for trajectory in replace(output, damaged=[]).read():
                copy = trajectory.model_copy(update={"job_id": job.id})
                await _copy(copy, part, planned=bool(job.planned))
            await write_report(part, job.id, output.path)
        finally:
            await part.close()


async def _copy(trajectory: Trajectory, part: Store, *, planned: bool) -> None:
    digest = hashlib.sha256(trajectory.id.encode()).hexdigest()
    if planned and trajectory.job_id is not None:
        await part.plan_run(trajectory.job_id, digest)
    await part.add_session(trajectory, secret_digest=digest, principal=None)
    if trajectory.prompt is not None:
        await part.set_prompt(trajectory.id, trajectory.prompt)
    for step in trajectory.steps:
        await part.add_step(trajectory.id, step)
    await part.add_logs(trajectory.id, _log_lines(trajectory))
    if trajectory.receipt is not None:
        await part.end_session(trajectory.id, trajectory.receipt)


def _log_lines(trajectory: Trajectory) -> list[tuple[datetime, str]]:
    """Return the log's lines with their times; a line of the record has only the time of day."""
    lines: list[tuple[datetime, str]] = []
    day = trajectory.started_at
    for line in (trajectory.logs or "").splitlines():
        found = _LOGGED.fullmatch(line)
        if found is None and lines:  # a text of several lines
            at, text = lines[-1]
            lines[-1] = (at, f"{text}\n{line}")
            continue
        clock, text = (time.fromisoformat(found[1]), found[2]) if found else (day.time(), line)
        at = datetime.combine(day.date(), clock, tzinfo=day.tzinfo)
        if at < day.replace(microsecond=0):
            at += timedelta(days=1)
        lines.append((at, text))
    return lines


def _film_name(trajectory: Trajectory) -> str:
    task = re.sub(r"[^\w.-]+", "-", trajectory.task.id, flags=re.ASCII).strip(".-")[:80]
    return f"{task or 'task'}.{trajectory.id}.gif"


def _write_film(
    trajectory: Trajectory, path: Path, pictures: Pictures, *, width_px: int, max_frames: int,
    max_bytes: int,
) -> None:  # fmt: skip
    while True:
        libraries.save_film(trajectory, path, pictures, width_px=width_px, max_frames=max_frames)
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

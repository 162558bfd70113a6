"""One HTML file that opens from disk: the viewer's page on a job or on one trajectory."""

import hashlib
import re
import tempfile
from datetime import datetime, time, timedelta
from pathlib import Path

import anyio.to_thread

from hud_mcp.plugins.view.export.files import new_file
from hud_mcp.plugins.view.export.pictures import Pictures
from hud_mcp.plugins.view.export.selection import Selection, read, select
from hud_mcp.plugins.view.export.summary import ExportSummary, OnProgress, Tally
from hud_mcp.plugins.view.web.report import write_report
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store

__all__ = ["export_html"]

_LOGGED = re.compile(r"(\d\d:\d\d:\d\d) (.*)")
"""A line of a record's log: the time of day, in UTC, and the text."""


async def export_html(
    store: Store,
    source_id: str,
    path: Path,
    *,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> ExportSummary:
    """Write a job, or one trajectory, as one self-contained page.

    Args:
        store: Where it is recorded.
        source_id: The job's id, or the trajectory's.
        path: The file.
        force: Replace a file that is there.
        on_progress: Called after each trajectory.

    Raises:
        SourceNotFound: There is neither such a job nor such a trajectory.
        OutputExists: The file is there already. Nothing was written.
        StoreFailed: The store cannot be read, or a row of it is damaged.
        OSError: The file cannot be written.

    After a failure or a cancellation, no written file stays.
    """
    selection = await select(store, source_id)
    tally = Tally()
    pictures = Pictures(store, tally)
    with new_file(path, force=force) as temporary:
        async for trajectory in read(store, selection, tally, on_progress):
            await anyio.to_thread.run_sync(_count, trajectory, pictures)
        if selection.whole_job and selection.job is not None and not tally.damaged:
            await write_report(store, selection.job.id, temporary)
        else:
            await _write_part(store, selection, temporary)
    return tally.summary("html", path)


def _count(trajectory: Trajectory, pictures: Pictures) -> None:
    for step in trajectory.steps:
        if step.screenshot is not None:
            pictures.read(step.screenshot)


async def _write_part(store: Store, selection: Selection, path: Path) -> None:
    """Write the page on what was selected alone: as a job in a store that holds nothing else."""
    fields = (
        selection.job.model_dump() if selection.job else {"name": selection.id, "planned": None}
    )
    job = Job.model_validate(fields)
    with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
        part = Store(Path(folder) / "store.sqlite3", screenshots=store.screenshots)
        try:
            await part.add_job(job)
            async for trajectory in read(store, selection, Tally(), None):
                copy = trajectory.model_copy(update={"job_id": job.id})
                await _copy(copy, part, planned=bool(job.planned))
            await write_report(part, job.id, path)
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
    """The log as it was added: a record that was read has only the time of day before each line."""
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

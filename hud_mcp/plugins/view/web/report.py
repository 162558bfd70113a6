"""One job as one HTML file that opens from disk, with no network and nothing beside it.

Nothing of the record becomes markup: the data is JSON without a single `<`, and the page's policy
runs one script, by its hash.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

import anyio.to_thread

from hud_mcp.environment.task import Task
from hud_mcp.errors import DamagedRecord
from hud_mcp.plugins.view.web.jobs import job_data
from hud_mcp.plugins.view.web.pages import Json, is_hash, report_page
from hud_mcp.plugins.view.web.trajectory import StepRows, damaged_detail, detail
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store
from hud_mcp.store.files import make_private_file, make_private_folder

ReadPicture = Callable[[ScreenshotRecord], bytes | None]
"""Reads a picture's file; gives None if it is gone."""

PICTURE_LIMIT_BYTES = 150_000_000
"""The most bytes of all pictures, before base64; a browser reads them in a few seconds."""


async def write_report(
    store: Store, job_id: str, path: Path, *, expected: Mapping[str, float | None] | None = None
) -> Path:
    """Write the report of a job. An earlier file stays until the new report is whole.

    Raises:
        SourceNotFound: There is no such job.
        StoreFailed: The store cannot be read.
        OSError: The file cannot be written.
    """
    job, tasks, runs = await store.load_job_summary(job_id)
    try:
        trajectories: Sequence[Trajectory | TrajectorySummary] = (
            await store.load_job(job_id, turns=True)
        )[1]
    except DamagedRecord:
        trajectories = [await _load(store, run) for run in runs]  # one that is damaged is named
    picture = partial(_read_picture, store)

    def write() -> None:
        html = render_report(job, trajectories, picture, tasks=tasks, expected=expected)
        make_private_folder(path.parent)
        partial_path = path.with_name(f".{path.name}.partial")
        make_private_file(partial_path)
        try:
            partial_path.write_text(html, encoding="utf-8")
            partial_path.replace(path)
        finally:
            partial_path.unlink(missing_ok=True)

    await anyio.to_thread.run_sync(write)
    return path


def render_report(
    job: Job,
    trajectories: Sequence[Trajectory | TrajectorySummary],
    picture: ReadPicture,
    *,
    tasks: Sequence[Task] = (),
    expected: Mapping[str, float | None] | None = None,
    picture_limit_bytes: int = PICTURE_LIMIT_BYTES,
) -> str:
    """Render the report of a job as one HTML document; a damaged trajectory is in short.

    Pictures beyond `picture_limit_bytes` are left out, and the page says so; the first ones of
    every trajectory come first.
    """
    whole = [t for t in trajectories if isinstance(t, Trajectory)]
    known, elements = embed_pictures(whole, picture, picture_limit_bytes)
    data = {**report_data(job, trajectories, tasks=tasks, expected=expected), "pictures": known}
    return report_page(data, elements)


def report_data(
    job: Job,
    trajectories: Sequence[Trajectory | TrajectorySummary],
    *,
    tasks: Sequence[Task] = (),
    expected: Mapping[str, float | None] | None = None,
) -> Json:
    """Return the page's data, without the pictures, as JSON values."""
    rows = [whole_run(trajectory, expected) for trajectory in trajectories]
    head = job_data(job, tasks, trajectories, rows)
    return {**head, "expects": expected is not None, "trajectories": rows}


async def _load(store: Store, run: TrajectorySummary) -> Trajectory | TrajectorySummary:
    try:
        return await store.load_trajectory(run.id, turns=True)
    except DamagedRecord as exc:
        return run.model_copy(update={"damage": run.damage or str(exc)})


def whole_run(
    trajectory: Trajectory | TrajectorySummary, expected: Mapping[str, float | None] | None = None
) -> Json:
    """Return the data of one run's page: its row, its steps, and the turns of its model."""
    if isinstance(trajectory, TrajectorySummary):
        return {**damaged_detail(trajectory, expected), "steps": [], "turns": [], "spans": []}
    rows = StepRows(trajectory.started_at, raw=True)
    rows.take_turns(trajectory.turns)
    steps = rows.extend(trajectory.steps)
    return {
        **detail(trajectory, expected),
        "steps": steps,
        "turns": rows.turns_left,
        "spans": rows.spans,
    }


def _read_picture(store: Store, record: ScreenshotRecord) -> bytes | None:
    try:
        return store.screenshot_path(record).read_bytes()
    except OSError:
        return None


def embed_pictures(
    trajectories: Sequence[Trajectory], picture: ReadPicture, limit_bytes: int
) -> tuple[dict[str, Json], list[str]]:
    """Read each picture once; return the facts of each, and the elements that hold them.

    Pictures beyond `limit_bytes` are left out; the first ones of each trajectory stay.
    """
    shots = [[s.screenshot for s in t.steps if s.screenshot] for t in trajectories]
    records = {r.sha256: r for r in chain.from_iterable(zip_longest(*shots)) if r is not None}
    known: dict[str, Json] = {}
    elements: list[str] = []
    left_bytes = limit_bytes
    for sha256, record in records.items():
        data, problem = _checked(record, picture)
        if data is not None and len(data) > left_bytes:
            data, problem = None, "was left out, so that this file does not grow too large"
        if data is not None:
            left_bytes -= len(data)
            encoded = base64.b64encode(data).decode("ascii")
            # Its hash was computed from the data, so it is hexadecimal and safe as an id.
            elements.append(f'<script type="text/plain" id="picture-{sha256}">{encoded}</script>')
        known[sha256] = {"mime": record.mime_type, "problem": problem}
    return known, elements


def _checked(record: ScreenshotRecord, picture: ReadPicture) -> tuple[bytes | None, str | None]:
    data = picture(record) if is_hash(record.sha256) else None
    if data is None:
        return None, "is missing"
    if hashlib.sha256(data).hexdigest() != record.sha256:
        return None, "is damaged: it is not what was recorded"
    return data, None

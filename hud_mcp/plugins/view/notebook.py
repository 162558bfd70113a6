"""Trajectories and jobs in a notebook: the player in a frame, and a table of runs."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Any

import anyio

from hud_mcp.analysis.report import JobReport
from hud_mcp.analysis.statistics import JobStatistics
from hud_mcp.analysis.tries import counting
from hud_mcp.base.text import clip_and_count
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.view.web.pages import Json, encode, notebook_page
from hud_mcp.plugins.view.web.report import ReadPicture, embed_pictures, whole_run
from hud_mcp.plugins.view.web.trajectory import trajectory_row
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.transcript import end_text, picture_path, visible_line
from hud_mcp.record.values import ScreenshotRecord, TrajectoryStep
from hud_mcp.store import Store, opened_store
from hud_mcp.values.outcome import outcome_classes

FRAME_LIMIT_BYTES = 8_000_000
"""The most bytes of a frame's pictures and texts: a notebook keeps them in its own file."""

_TEXT_SHARE = 0.25
_TEXT_CHARS = 4_000
_FRAME_HEIGHT_PX = 720


def trajectory_html(trajectory: Trajectory, *, limit_bytes: int = FRAME_LIMIT_BYTES) -> str:
    """Write a trajectory for a notebook: a line that sums it up, and the player in a frame.

    The frame runs the player's script alone, fetches nothing, and reaches nothing of the notebook.
    Pictures and texts beyond `limit_bytes` are left out, the last ones first, and a line says so.
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
    """Return a number of things in words, such as `1 step` or `1,200 steps`."""
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
    quoted = escape(page, quote=False).replace("'", "&#x27;")
    yield f"border-radius: 6px\" srcdoc='{quoted}'></iframe></div>"


def _reader(steps: Sequence[TrajectoryStep]) -> ReadPicture:
    paths = {step.screenshot.sha256: picture_path(step) for step in steps if step.screenshot}

    def read(record: ScreenshotRecord) -> bytes | None:
        path = paths.get(record.sha256)
        try:
            return None if path is None else path.read_bytes()
        except OSError:
            return None

    return read


def _bounded(trajectory: Trajectory, limit_bytes: int) -> tuple[Json, list[str]]:
    """Return the player's data without pictures, and the names of its left out parts."""
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
    if isinstance(value, str):
        return clip_and_count(value, _TEXT_CHARS, before="\n")
    if isinstance(value, list):
        return [_shortened(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


MOST_ROWS = 200
"""The most rows of the table."""

_HEIGHT_PX = 480
_COLUMNS = ("no.", "task", "outcome", "reward", "steps", "seconds", "why")
_NUMBERS = {"no.", "reward", "steps", "seconds"}
# Notebooks align tables to the right, and keep a text in one line.
_STYLE = "vertical-align: top; padding: 4px 12px 4px 0; white-space: normal; word-break: normal; "


def job_html(job: Job) -> str:
    """Return a job as HTML for a notebook; if its runs cannot be read, a line says why."""
    facts = [job.name, f"agent {job.agent}" if job.agent else "", job.taskset or "", job.id]
    head = f"<p>{_text(' · '.join(fact for fact in facts if fact))}</p>"
    try:
        found, tasks, runs = _read_now(job)
    except (HudMcpError, OSError) as exc:
        return f'<div class="hud-mcp-job">{head}<p>{_text(str(exc))}</p></div>'
    figures = _figures(JobReport(found, tasks, runs).statistics)
    return f'<div class="hud-mcp-job">{head}{figures}{_table(counting(runs))}</div>'


def _read_now(job: Job) -> tuple[Job, list[Task], list[TrajectorySummary]]:
    """Read a job's record on a thread of its own, as the notebook's loop runs already."""
    place = job.place.url if isinstance(job.place, Store) else job.place

    async def read() -> tuple[Job, list[Task], list[TrajectorySummary]]:
        async with opened_store(place) as store:
            return await store.load_job_summary(job.id)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, read).result()


def _figures(figures: JobStatistics) -> str:
    ends = [f"{count:,} {_words(name)}" for name, count in figures.outcomes.items() if count]
    return f"<p>mean reward {_text(figures.mean_text)}<br>{_text(', '.join(ends))}</p>"


def _words(outcome: str) -> str:
    """Return an outcome's words. Authors add outcomes later, so the list is read each time."""
    return next((each.words for each in outcome_classes() if each.value == outcome), outcome)


def _table(runs: Sequence[TrajectorySummary]) -> str:
    head = "".join(_field("th", name, name) for name in _COLUMNS)
    rows = [trajectory_row(run, run.step_count) for run in runs[:MOST_ROWS]]
    body = "".join(_row(number, row) for number, row in enumerate(rows, start=1))
    more = len(runs) - len(rows)
    left = (
        f"<p>{counted(more, 'more run')} left out. <code>hud-mcp view</code> shows every run.</p>"
        if more
        else ""
    )
    return (
        f'<div style="max-height: {_HEIGHT_PX}px; overflow: auto" tabindex="0" role="region" '
        f'aria-label="The runs of the job"><table style="border-collapse: collapse">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{left}"
    )


def _row(number: int, row: Json) -> str:
    reward, seconds = row["reward"], row["seconds"]
    values = (
        str(number),
        row["task"],
        _words(row["outcome"]),
        "—" if reward is None else f"{reward:g}",
        f"{row['step_count']:,}",
        "—" if seconds is None else f"{seconds:.1f}",
        row["damage"] or row["why"] or "",
    )
    named = zip(_COLUMNS, values, strict=True)
    return f"<tr>{''.join(_field('td', name, value) for name, value in named)}</tr>"


def _field(kind: str, column: str, text: str) -> str:
    wraps = "overflow-wrap: anywhere; min-width: 12em; " if column in ("task", "why") else ""
    align = "right" if column in _NUMBERS else "left"
    scope = ' scope="col"' if kind == "th" else ""
    return f'<{kind}{scope} style="{_STYLE}{wraps}text-align: {align}">{_text(text)}</{kind}>'


def _text(value: Any) -> str:
    return escape(visible_line(str(value)))

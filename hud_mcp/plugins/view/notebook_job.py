"""A job as a notebook shows it: its figures, and its runs in a table."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Any

import anyio

from hud_mcp.analysis.report import JobReport
from hud_mcp.analysis.statistics import JobStatistics
from hud_mcp.analysis.tries import counting
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.view.notebook import counted
from hud_mcp.plugins.view.web.trajectories import trajectory_row
from hud_mcp.plugins.view.web.values import Json
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.show.lines import visible_line
from hud_mcp.store import Store, opened_store
from hud_mcp.values.outcome import outcome_classes

__all__ = ["MOST_ROWS", "job_html"]

MOST_ROWS = 200
"""Of the table; `hud-mcp view` has the others."""

_HEIGHT_PX = 480
_COLUMNS = ("no.", "task", "outcome", "reward", "steps", "seconds", "why")
_NUMBERS = {"no.", "reward", "steps", "seconds"}
# Notebooks align tables to the right, and keep a text in one line.
_STYLE = "vertical-align: top; padding: 4px 12px 4px 0; white-space: normal; word-break: normal; "


def job_html(job: Job) -> str:
    """Write a job for a notebook: who ran what, the figures, and a table of its runs.

    Args:
        job: Its runs are read from where it is recorded. Where they cannot be read, a line says
            why.
    """
    facts = [job.name, f"agent {job.agent}" if job.agent else "", job.taskset or "", job.id]
    head = f"<p>{_text(' · '.join(fact for fact in facts if fact))}</p>"
    try:
        found, tasks, runs = _read_now(job)
    except (HudMcpError, OSError) as exc:
        return f'<div class="hud-mcp-job">{head}<p>{_text(str(exc))}</p></div>'
    figures = _figures(JobReport(found, tasks, runs).statistics)
    return f'<div class="hud-mcp-job">{head}{figures}{_table(counting(runs))}</div>'


def _read_now(job: Job) -> tuple[Job, list[Task], list[TrajectorySummary]]:
    """What is recorded of a job, read on a thread: a notebook's own loop runs while it asks."""
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
    """How people call a way to end; an author's own may have been added since this was loaded."""
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

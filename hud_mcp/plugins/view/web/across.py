"""Tasks by jobs: the data of a page of several jobs, a part of the tasks at a time.

A page that follows running jobs sends its stamp; the reply says whether it holds.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import monotonic

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from hud_mcp.analysis.comparison import (
    ComparedTask,
    Comparison,
    Difference,
    JobDifference,
    JobRuns,
    TaskResult,
    compare_jobs,
)
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.plugins.view.web.pages import Json, finite, iso, json_answer, keep
from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.values.outcome import NOT_BEGUN, UNFINISHED

MOST_JOBS = 8

PAGE_TASKS = 200

_MOST_OTHERS = 100

_KEPT = 4

_PAUSE = 9
"""The life of a comparison of running jobs, in multiples of the time that it took."""


@dataclass
class _Made:
    """A comparison, and the state of its jobs when it was made."""

    stamps: tuple[str, ...]  # change with the jobs
    jobs: tuple[Job, ...]
    found: Comparison
    # the direction of each job against the first, by a task's id: 1, -1 or 0
    flips: dict[str, list[int]]
    fresh_until_s: float = 0  # before, it is not made again for a page that has it

    @property
    def stamp(self) -> str:
        return hashlib.sha256("\n".join(self.stamps).encode()).hexdigest()[:16]

    @property
    def is_running(self) -> bool:
        results = (each for task in self.found.tasks for each in task.results if each is not None)
        return any(not _OPEN.isdisjoint(each.outcomes) for each in results)


class Across:
    """The data of a page of several jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._outlines = Outlines(store.database)
        self._made: OrderedDict[tuple[str, ...], _Made] = OrderedDict()
        self._reading = anyio.Lock()  # one at a time, so that the memory that it takes is bounded

    async def answer(self, request: Request) -> Response:
        """Reply with jobs, their differences to the first, and a part of the wanted tasks."""
        query = request.query_params
        ids = tuple(dict.fromkeys(query.getlist("job")))
        if not 1 <= len(ids) <= MOST_JOBS:
            text = f"{len(ids)} jobs were named; from 1 to {MOST_JOBS} can be compared."
            return json_answer({"error": text}, 400)
        only, start = query.get("only", ""), query.get("start", "0")
        if only not in _WANTED or not (start.isascii() and start.isdigit() and len(start) < 10):  # noqa: PLR2004  # more than any job has
            text = f"Give only as one of {', '.join(filter(None, _WANTED))}, and start as a number."
            return json_answer({"error": text}, 400)
        known = query.get("known", "")
        async with self._reading:
            made = await self._compare(ids, known)
        if isinstance(made, str):
            return json_answer({"error": made}, 400)
        if known == made.stamp:
            return json_answer({"stamp": made.stamp})
        others = await self._others(made.jobs) if start == "0" else []
        find = query.get("find", "").strip()
        data = await anyio.to_thread.run_sync(_part, made, only, find, int(start))
        return json_answer({**data, "others": others})

    async def _compare(self, ids: tuple[str, ...], known: str) -> _Made | str:
        """Return the comparison of jobs, made anew if one has changed; or the reason for none."""
        before = self._made.get(ids)
        if before and known == before.stamp and monotonic() < before.fresh_until_s:
            return before
        began_s = monotonic()
        stamps = tuple([(await self._outlines.stamp_job(each))[1] for each in ids])
        if before is not None and before.stamps == stamps:
            keep(self._made, ids, before, _KEPT)
            return before
        jobs: list[Job] = []
        runs: list[JobRuns] = []
        for each in ids:
            job, tasks, found = await self._outlines.load_outline(each)
            if job is None or job.is_proof:
                name = job.name if job else each
                return f"The runs of {name!r} prove tasks and are no agent's results."
            jobs.append(job)
            runs.append(JobRuns(tasks=tasks, runs=found, group=job.group))
        made = await anyio.to_thread.run_sync(partial(_make, stamps, tuple(jobs), runs))
        now_s = monotonic()
        made.fresh_until_s = now_s + _PAUSE * (now_s - began_s)
        keep(self._made, ids, made, _KEPT)
        return made

    async def _others(self, jobs: Sequence[Job]) -> list[Json]:
        """Return other jobs of the same tasksets, the newest first."""
        shown = {job.id for job in jobs}
        sets = {job.taskset for job in jobs if job.taskset}
        found = [
            job
            for job in await self._store.list_jobs()
            if job.taskset in sets and job.id not in shown and not job.is_proof
        ]
        return [_job(job) for job in found[:_MOST_OTHERS]]


def _make(stamps: tuple[str, ...], jobs: tuple[Job, ...], runs: Sequence[JobRuns]) -> _Made:
    found = compare_jobs(runs)
    return _Made(stamps, jobs, found, found.flips)


_OPEN = frozenset({str(UNFINISHED), str(NOT_BEGUN)})

_Wanted = Callable[[ComparedTask, Sequence[int]], bool]

_WANTED: dict[str, _Wanted] = {
    "": lambda _task, _flips: True,
    "flips": lambda _task, flips: any(flips),
    "up": lambda _task, flips: 1 in flips,
    "down": lambda _task, flips: -1 in flips,
    "unsolved": lambda task, _flips: not any(each and each.passed for each in task.results),
    "missing": lambda task, _flips: any(each is None for each in task.results),
}
"""The filters of tasks, by name."""


def _part(made: _Made, only: str, find: str, start: int) -> Json:
    """Return the head of the page, and the wanted tasks from `start` on."""
    tasks, none = made.found.tasks, [0] * len(made.jobs)
    sought = find.casefold()
    matching = [task for task in tasks if sought in f"{task.id}\n{task.title}".casefold()]
    counts = {
        name: sum(wanted(task, made.flips.get(task.id, none)) for task in matching)
        for name, wanted in _WANTED.items()
    }
    wanted = _WANTED[only]
    chosen = [task for task in matching if wanted(task, made.flips.get(task.id, none))]
    return {
        "jobs": [_side(made, place) for place in range(len(made.jobs))],
        "stamp": made.stamp,
        "running": made.is_running,
        "confidence": made.found.confidence,
        "tasks": len(tasks),
        "counts": counts,
        "total": len(chosen),
        "start": start,
        "rows": [
            _row(task, made.flips.get(task.id, none)) for task in chosen[start : start + PAGE_TASKS]
        ],
    }


def _job(job: Job) -> Json:
    return {
        "id": job.id,
        "name": job.name,
        "agent": job.agent,
        "taskset": job.taskset,
        "created_at": iso(job.created_at),
    }


def _side(made: _Made, place: int) -> Json:
    job = made.jobs[place]
    rate, scored = made.found.pass_rate(place)
    return {
        **_job(job),
        "group": job.group,
        "tasks": sum(task.results[place] is not None for task in made.found.tasks),
        "scored": scored,
        "pass_rate": rate,
        "difference": _difference(made.found.differences[place - 1]) if place else None,
    }


def _difference(found: JobDifference) -> Json:
    return {
        "passes": _figure(found.passes),
        "rewards": _figure(found.rewards),
        "up": len(found.up),
        "down": len(found.down),
        "alike": found.alike,
        "chance": found.chance,
    }


def _figure(found: Difference | None) -> Json | None:
    return None if found is None else {**asdict(found), "value": found.value}


def _row(task: ComparedTask, flips: Sequence[int]) -> Json:
    return {
        "id": task.id,
        "title": task.title,
        "differs": task.differs,
        "flips": flips,
        "results": [_result(each) for each in task.results],
    }


def _result(found: TaskResult | None) -> Json | None:
    if found is None:
        return None
    return {
        "wanted": found.wanted,
        "scored": found.scored,
        "passed": found.passed,
        "graded": found.graded,
        "unrewarded": found.unrewarded,
        "mean": finite(found.mean),
        "outcomes": found.outcomes,
        "run": found.run,
    }

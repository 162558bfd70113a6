"""The replies about one job's page: its head, its runs, and the place of a run among them.

A page has all runs of a short job, then the changes. Of a long job it has a few lines at a time:
the database searches, and the facts that order runs are kept here.
"""

import gc
import re
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from hud_mcp.analysis.tries import BriefRun
from hud_mcp.environment.task import Task
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.plugins.view.web.jobs import REPEATED, expected_rewards, figure_job
from hud_mcp.plugins.view.web.pages import Json, json_answer, keep
from hud_mcp.plugins.view.web.run_list import ListedRun, RowQuery, RunList, list_runs
from hud_mcp.plugins.view.web.trajectory import trajectory_row
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.registry import service
from hud_mcp.store import Store

WHOLE_RUNS = 1200
"""A page has all runs of a job up to this number; of a longer one a part at a time."""

PAGE_ROWS = 500
"""The most runs in one reply."""

_FIND_CHARS = 300

_ASKED = 8
"""Failed runs of a folded task that are searched for a reason."""

_PAUSE = 9
"""The life of a long running job's data, in multiples of the time that reading it took."""

_KEPT = 8
_KEPT_RUNS = 60_000
"""The most runs of all kept jobs; the last job always stays."""


def number_of(request: Request, name: str) -> int | None:
    """Return a number of a request, if it is one."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None  # noqa: PLR2004  # more than any record has


def table_row(
    summary: TrajectorySummary, expected: Mapping[str, float | None] | None = None
) -> Json:
    """Return the row of a run, with the address of its live page while it goes on."""
    row = trajectory_row(summary, summary.step_count, expected)
    return {**row, "live": summary.live_token if summary.ended_at is None else None}


@dataclass
class _Page:
    """A job as it was when it was last read."""

    stamp: str  # changes with the job
    name: str  # chosen anew if a page cannot get the changes alone
    number: int  # of changes since then
    head: Json
    runs: RunList
    expected: dict[str, float | None] | None  # None if any reward will do
    rows: list[Json] | None  # None of a long job
    changed: list[int]  # the number at which each row changed last
    fresh_until_s: float = 0  # before, a running job is not read again for a page that has it
    # the last searched text, and the ids that have it
    search: tuple[str, frozenset[str]] | None = None

    @property
    def revision(self) -> str:
        return f"{self.name}-{self.number}"

    def since(self, known: str) -> int | None:
        name, _, number = known.rpartition("-")
        return int(number) if name == self.name and number.isdecimal() else None


class JobPages:
    """The server's replies about jobs. The page of `coming`, a job about to begin, waits for it."""

    def __init__(self, store: Store, coming: str | None) -> None:
        self._database = store.database
        self._outlines = Outlines(store.database)
        self._coming = coming
        self._pages: OrderedDict[str, _Page] = OrderedDict()
        self._reading = anyio.Lock()  # one at a time, so that the memory that it takes is bounded

    def endpoints(self) -> dict[str, Callable[[Request], Awaitable[Response]]]:
        """Return the handlers by path."""
        return {"/api/job": self._job, "/api/rows": self._rows, "/api/place": self._place}

    async def _job(self, request: Request) -> Response:
        """Return a job's head and its first rows, or what has changed since a page asked."""
        job_id, known = (request.query_params.get(name, "") for name in ("id", "known"))
        try:
            page = await self._read(job_id, known=known)
        except SourceNotFound:
            if job_id != self._coming:
                raise
            return json_answer({"waiting": True})
        if known == page.revision:
            return json_answer({"revision": page.revision})
        told = {**page.head, "revision": page.revision, "total": len(page.runs)}
        if page.rows is None:
            return json_answer({**told, "trajectories": [], **await self._latest(page)})
        since = page.since(known)
        places = [] if since is None else [p for p, n in enumerate(page.changed) if n > since]
        if since is None or len(places) > PAGE_ROWS:
            return json_answer({**told, "trajectories": page.rows[:PAGE_ROWS]})
        changed = [[place, page.rows[place]] for place in places]
        return json_answer({**told, "since": known, "changed": changed})

    async def _rows(self, request: Request) -> Response:
        """Return lines of a job's table: the rest of a short one, or a part of a long one."""
        job_id, revision = (request.query_params.get(name) for name in ("id", "revision"))
        page = self._pages.get(job_id or "")
        if revision is not None and (page is None or page.revision != revision):
            return json_answer({"error": "The job has changed; ask for it again."}, 409)
        start, count = number_of(request, "start"), number_of(request, "count")
        count = PAGE_ROWS if count is None else min(count, PAGE_ROWS)
        page = page or await self._read(job_id or "")
        try:
            query = await self._query(request, job_id or None, page)
            found = await anyio.to_thread.run_sync(page.runs.lines, query)
        except ValueError as exc:
            return json_answer({"error": str(exc)}, 400)
        start = min(start or 0, max(0, len(found.lines) - 1) // count * count if count else 0)
        lines = await self._lines(page, found.lines[start : start + count])
        reasons = await self._reasons(
            page, query, [line["group"] for line in lines if "group" in line]
        )
        for line in lines:
            if line.get("group") in reasons:
                line["why"] = reasons[line["group"]]
        told = {"total": len(page.runs), "shown": found.shown, "lines": len(found.lines)}
        return json_answer({**told, "start": start, "rows": lines})

    async def _place(self, request: Request) -> Response:
        place, job = await self._outlines.find_place(request.query_params.get("id", ""))
        near = {
            name: found and {"id": found}
            for name, found in (("previous", place.previous), ("next", place.next))
        }
        named = {"id": "", "name": "Sessions without a job", "agent": None}
        if job is not None:
            named = {"id": job.id, "name": job.name, "agent": job.agent}
        return json_answer({"job": named, **near, "live": place.live_token})

    # ---- Reading a job

    async def _read(self, job_id: str, *, known: str = "") -> _Page:
        """Read the present state of a job. A page of a long job waits for news.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: The store cannot be read.
        """
        async with self._reading:
            before = self._pages.get(job_id)
            if before and known == before.revision and monotonic() < before.fresh_until_s:
                return before
            began_s = monotonic()
            _, stamp = await self._outlines.stamp_job(job_id or None)
            if before is None or before.stamp != stamp:
                with _without_collector():
                    page = await self._make(job_id, stamp, before)
                if page.rows is None:
                    now_s = monotonic()
                    page.fresh_until_s = now_s + _PAUSE * (now_s - began_s)
                before = page
            self._keep(job_id, before)
            return before

    async def _make(self, job_id: str, stamp: str, before: _Page | None) -> _Page:
        job, tasks, runs = await self._outlines.load_outline(job_id or None)
        found = None
        if len(runs) <= WHOLE_RUNS:
            found = await self._outlines.load_rows([run.id for run in runs])
        use = None
        if job is not None and found is not None and all(run.ended_at for run in runs):
            use = await service("server use")(self._database, job.id)  # each step changes it before
        read = _Read(stamp, job, tasks, runs, found, use)
        return await anyio.to_thread.run_sync(_make, read, before)

    def _keep(self, job_id: str, page: _Page) -> None:
        keep(self._pages, job_id, page, _KEPT)
        kept = self._pages.values()
        while len(kept) > 1 and sum(len(each.runs) for each in kept) > _KEPT_RUNS:
            self._pages.popitem(last=False)

    async def _query(self, request: Request, job_id: str | None, page: _Page) -> RowQuery:
        asked = request.query_params
        find = asked.get("find", "").strip()[:_FIND_CHARS]
        if find and (page.search is None or page.search[0] != find):
            page.search = find, frozenset(await self._outlines.find_runs(job_id, find))
        return RowQuery(
            found=page.search[1] if find and page.search else None,
            find=find,
            outcome=asked.get("outcome", ""),
            surprises=asked.get("surprises") == "yes",
            pick=asked.get("pick", ""),
            sort=asked.get("sort", "number"),
            descending=asked.get("descending") == "yes",
            by=asked.get("by") or None,
            open=None if asked.get("open") == "all" else _places(asked.get("open", "")),
            folded=_places(asked.get("folded", "")),
            hides_empty=asked.get("filtered") == "yes",
        )

    async def _lines(self, page: _Page, lines: Sequence[ListedRun | tuple[int, int]]) -> list[Json]:
        wanted = {line.id for line in lines if isinstance(line, ListedRun)}
        known = await self._known(page, wanted)
        return [
            {"group": line[0], "count": line[1]} if isinstance(line, tuple) else known[line.id]
            for line in lines
            if isinstance(line, tuple) or line.id in known
        ]

    async def _known(self, page: _Page, wanted: Iterable[str]) -> dict[str, Json]:
        if page.rows is not None:
            return {row["id"]: row for row in page.rows}
        found = await self._outlines.load_rows(sorted(wanted))
        return {each.id: _row(each, page.expected, page.runs) for each in found}

    async def _reasons(self, page: _Page, query: RowQuery, places: Iterable[int]) -> dict[int, str]:
        """Return the reason of the first failure of each folded task, by the task's place."""
        if query.by != REPEATED:
            return {}
        folded = (place for place in places if not query.opens(place))
        failed = page.runs.failures(REPEATED, folded)
        reasons: dict[int, str] = {}
        for part in (slice(1), slice(1, _ASKED)):  # mostly the first one says it
            asked = {place: ids[part] for place, ids in failed.items() if place not in reasons}
            known = await self._known(page, (each for ids in asked.values() for each in ids))
            for place, ids in asked.items():
                told: list[str | None] = [known[each]["why"] for each in ids if each in known]
                if why := next((each for each in told if each), None):
                    reasons[place] = why
        return reasons

    async def _latest(self, page: _Page) -> Json:
        running = page.head["outcomes"].get("unfinished")
        return {"latest": await self._lines(page, page.runs.latest_failures() if running else ())}


def _places(text: str) -> frozenset[int]:
    return frozenset(map(int, re.findall(r"\b[0-9]{1,6}\b", text)))


@contextmanager
def _without_collector() -> Generator[None]:
    """Pause the garbage collector, which would look through all runs of a long job many times."""
    runs = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if runs:
            gc.enable()


@dataclass(frozen=True)
class _Read:
    """A job as read from the store; a long job has no rows."""

    stamp: str
    job: Job | None
    tasks: Sequence[Task]
    runs: Sequence[BriefRun]
    found: Sequence[TrajectorySummary] | None
    use: Json | None  # of the tools of servers


def _make(read: _Read, before: _Page | None) -> _Page:
    """Make a page. Unchanged rows keep the number at which they changed last."""
    expected = expected_rewards(read.job, read.tasks) if read.job else None
    figures = figure_job(read.job, read.tasks, read.runs)
    listed = list_runs(read.runs, figures, expected)
    told: Json = {"expects": expected is not None, "paged": read.found is None, "tools": read.use}
    head = {**figures.head, **told}
    page = _Page(read.stamp, secrets.token_hex(8), 0, head, listed, expected, None, [])
    if read.found is None:
        grouped = [each["by"] for each in figures.head["groupings"]]
        strays = [by for by in grouped if listed.has_strays(by)]
        page.head |= {"tally": listed.tally(), "met": listed.met(), "strays": strays}
        return page
    page.rows = [_row(each, expected, listed) for each in read.found]
    page.changed = [0] * len(page.rows)
    if before is not None and before.rows is not None:
        page.name, page.number = before.name, before.number + 1
        for place, row in enumerate(page.rows):
            same = place < len(before.rows) and before.rows[place] == row
            page.changed[place] = before.changed[place] if same else page.number
    return page


def _row(
    summary: TrajectorySummary, expected: dict[str, float | None] | None, runs: RunList
) -> dict[str, Any]:
    """Return a row of the table, with what the other runs say of it."""
    row, run = table_row(summary, expected), runs.by_id.get(summary.id)
    if run is None:  # it was not there when the figures were computed
        return row
    marks = {"earlier": run.earlier, "surprise": run.surprise, "groups": run.groups}
    return {**row, "number": run.number, **marks}

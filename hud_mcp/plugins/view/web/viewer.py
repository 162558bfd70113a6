"""The pages of `hud-mcp view`: jobs, their trajectories, and their steps."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

import anyio.to_thread
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from hud_mcp.base.text import clip_and_count
from hud_mcp.errors import SourceNotFound, StoreFailed
from hud_mcp.plugins.view.web.across import Across
from hud_mcp.plugins.view.web.job_pages import JobPages, number_of, table_row
from hud_mcp.plugins.view.web.jobs import jobs_data
from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.plugins.view.web.pages import (
    Json,
    encode,
    html_answer,
    json_answer,
    keep,
    picture_answer,
    viewer_page,
)
from hud_mcp.plugins.view.web.trajectory import StepRows, detail
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.server.web.auth import Auth, Hosts, Reader
from hud_mcp.store import Store

logger = logging.getLogger(__name__)

SMALLEST_BYTES = 2000
"""The smallest reply that is compressed."""

PAGE_STEPS = 100
"""The most steps in one reply."""

_KEPT = 8

_LOG_CHARS = 1_000_000

_THOUGHT_CHARS = 2000
"""The most searchable characters of a step's thoughts: a long trajectory has thousands of steps."""
_LINE_CHARS = 200


def viewer_app(
    store: Store,
    *,
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] = (),
    token: str | None = None,
    live_log: bool = False,
    coming: str | None = None,
) -> ASGIApp:
    """Return the app that shows what a store holds. It writes nothing.

    Without a token, everybody who reaches it reads everything. `live_log` shows the log on live
    pages.
    """
    hosts = Hosts(host, tuple(allowed_hosts))
    reader = Reader(token)
    live = live_routes(store, hosts=hosts, log=live_log, reader=reader)
    pages = Router([*_Viewer(store, coming).routes(), *live])
    return Auth(GZipMiddleware(pages, SMALLEST_BYTES), hosts=hosts, reader=reader)


class _Viewer:
    def __init__(self, store: Store, coming: str | None) -> None:
        self._store = store
        self._jobs = JobPages(store, coming)
        self._steps: OrderedDict[str, StepRows] = OrderedDict()

    def routes(self) -> list[Route]:
        return [
            Route("/", self._page),
            Route("/api/jobs", _in_words(self._list_jobs)),
            *(Route(path, _in_words(answer)) for path, answer in self._jobs.endpoints().items()),
            Route("/api/trajectory", _in_words(self._trajectory)),
            Route("/api/runs", _in_words(self._runs)),
            Route("/api/across", _in_words(Across(self._store).answer)),
            Route("/api/steps", _in_words(self._steps_of)),
            Route("/picture", _in_words(self._picture)),
        ]

    async def _page(self, _request: Request) -> Response:
        return html_answer(viewer_page())

    async def _list_jobs(self, _request: Request) -> Response:
        return json_answer(await jobs_data(self._store))

    async def _trajectory(self, request: Request) -> Response:
        wanted = request.query_params.get("id", "")
        trajectory = await self._store.load_trajectory(wanted, turns=True)
        rows, data = await anyio.to_thread.run_sync(_detail, trajectory)
        keep(self._steps, trajectory.id, rows, _KEPT)
        return Response(data, media_type="application/json")

    async def _runs(self, request: Request) -> Response:
        found = await self._store.list_trajectories(
            task_id=request.query_params.get("task", ""), limit=100
        )
        names = {job.id: job.name for job in await self._store.list_jobs()}
        rows = [
            {**table_row(s), "job": s.job_id, "job_name": names.get(s.job_id or "")} for s in found
        ]
        return json_answer({"runs": rows})

    async def _steps_of(self, request: Request) -> Response:
        start, stop = number_of(request, "start"), number_of(request, "stop")
        if start is None or stop is None:
            return json_answer({"error": "Give start and stop as numbers."}, 400)
        rows = (await self._rows_of(request)).rows
        return json_answer({"steps": rows[start : min(stop, start + PAGE_STEPS)]})

    async def _rows_of(self, request: Request) -> StepRows:
        """Return the steps of a trajectory; mostly they are here since its page was opened."""
        trajectory_id = request.query_params.get("id", "")
        rows = self._steps.get(trajectory_id)
        stop = number_of(request, "stop") or 0
        if rows is None:
            trajectory = await self._store.load_trajectory(trajectory_id, turns=True)
            rows, _ = await anyio.to_thread.run_sync(_detail, trajectory)
        elif stop > len(rows.rows):
            known = len(rows.rows)
            more = await self._store.load_steps(trajectory_id, known)
            turns = await self._store.load_turns(trajectory_id, rows.turn_count - 1)
            rows.take_turns([turn for turn in turns if turn.number >= rows.turn_count])
            rows.extend(more[len(rows.rows) - known :])  # another request may have been faster
        keep(self._steps, trajectory_id, rows, _KEPT)
        return rows

    async def _picture(self, request: Request) -> Response:
        rows = await self._rows_of(request)
        return await picture_answer(
            self._store, rows.pictures, request.query_params.get("hash", "")
        )


Endpoint = Callable[[Request], Awaitable[Response]]


def _in_words(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint: its failures become replies with the error's text."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except SourceNotFound as exc:
            return json_answer({"error": str(exc)}, 404)
        except StoreFailed as exc:
            return json_answer({"error": str(exc)}, 503)

    return answer


def _detail(trajectory: Trajectory) -> tuple[StepRows, bytes]:
    rows = StepRows(trajectory.started_at, raw=True)
    rows.take_turns(trajectory.turns)
    rows.extend(trajectory.steps)
    data = detail(trajectory)
    data["turns"] = rows.turns_left
    data["spans"] = rows.spans
    logs = data["logs"]
    if logs is not None:
        data["logs"] = clip_and_count(logs, _LOG_CHARS, before="\n")
    data["outline"] = [_line(row) for row in rows.rows]
    data["has_pictures"] = any(row["after"] for row in rows.rows)
    return rows, encode(data)


def _line(row: Json) -> list[Any]:
    failed = row["error"] is not None
    # The picture that the stage shows at first: the one that the step acted on.
    shot = (row["before"] if row["actions"] else None) or row["after"]
    thoughts = [each["note"] for each in row["actions"] if each.get("note")]
    thoughts += [t for turn in row["turns"] for t in (turn["reasoning"], turn["text"]) if t]
    told = "\n".join(thoughts)[:_THOUGHT_CHARS]
    return [row["words"][:_LINE_CHARS], failed, row["after_s"], row["took_s"], shot, told]

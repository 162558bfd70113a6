"""The live page of a running session, as it happens, for readers with its token.

It reads the store, so that any process that reaches the same store can serve it. Agents may know
the address: it has no log of the template, no metadata, no arguments, and no reward that the
session's policy hides.
"""

import logging
import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC
from typing import Any, Protocol, cast

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import Receive, Scope, Send

from hud_mcp.analysis.tries import outcome_class
from hud_mcp.base.text import clip_and_count
from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.view.web.pages import (
    Json,
    asset_route,
    encode,
    html_answer,
    json_answer,
    live_page,
    not_found,
    picture_answer,
    seconds,
)
from hud_mcp.plugins.view.web.trajectory import StepRows
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.values import ScreenshotRecord, TrajectoryStep
from hud_mcp.server.web.auth import Auth, Hosts, Reader
from hud_mcp.store import Store
from hud_mcp.values.model_turn import RecordedTurn

logger = logging.getLogger(__name__)

POLL_S = 0.3
"""The time between two looks at the record of a session, whatever the number of watchers."""

TROUBLE_S = 2.0
"""The wait after a failed reading."""

BEAT_S = 15.0
"""The longest silence of a stream: proxies close idle connections."""

SEND_S = 10.0
"""The time after which a watcher that does not read is dropped."""

WATCHERS = 100
"""The most watchers of one session."""

FIRST_STEPS = 200
"""The last steps that a new watcher gets; the viewer shows the others."""

FIRST_LINES = 1000
"""The last lines of the log that a new watcher gets."""

REPLY_BYTES = 65_536
"""The largest reply of a person as a user, as JSON."""

_TOKEN = re.compile(r"[0-9a-f]{32}")
_ID_DIGITS = 10
_TEXT_CHARS = 20_000


class Answerer(Protocol):
    """A person who answers as the user of one session."""

    @property
    def waits(self) -> Mapping[str, Any] | None:
        """The message that waits for a reply, with its `state`; None without one."""
        ...

    async def take(self, state: str, reply: str, *, ends: bool) -> bool:
        """Take a reply; return whether it is the first one to the message of a state."""
        ...


class Replies(Protocol):
    """The people who answer as users on live pages; `token` is their secret."""

    token: str

    def has_user(self, environment: str, template: str) -> bool:
        """Whether a template talks with a user."""
        ...

    def find(self, live_token: str) -> Answerer | None:
        """Return the person of a session; None if it does not run here."""
        ...


def live_routes(
    store: Store,
    *,
    hosts: Hosts,
    log: bool = False,
    reader: Reader | None = None,
    replies: Replies | None = None,
) -> list[BaseRoute]:
    """Return the routes of live pages, `/live/TOKEN`, and of the files that they need, `/assets/`.

    `log` shows sessions' logs: a template's prints may give answers away, and agents know the
    addresses. Only a known `reader` also sees the model's texts and usage. With `replies`, a person
    with its token answers as the user: the address alone admits nobody to that.
    """
    feeds = _Feeds(store, log=log, reader=reader, replies=replies)
    pages = Router(
        [
            Route("/{token}", feeds.page),
            Route("/{token}/events", feeds.events),
            Route("/{token}/user", feeds.user, methods=["GET", "POST"]),
            Route("/{token}/pictures/{sha256}", feeds.picture),
        ]
    )
    return [
        Mount("/live", app=Auth(pages, hosts=hosts, writes=replies is not None)),
        Mount("/assets", app=Auth(Router([asset_route]), hosts=hosts)),
    ]


class _Feed:
    """One watched session, shared by all of its watchers.

    A watcher that waits for news reads the record for all others too: no task outlives the last
    one.
    """

    def __init__(self, store: Store, summary: TrajectorySummary, *, log: bool, model: bool) -> None:
        self._store = store
        self._log = log
        self._model = model
        self._rows = StepRows(summary.started_at)
        self._last_line = 0
        self._prompt: str | None = None
        self._turn = anyio.Lock()
        self._next_s = 0.0
        self.summary = summary
        self.mark = 0
        self.head: Json = {}
        self.steps: list[bytes] = []
        self.turns_left: list[Json] = []
        self.lines: list[str] = []
        self.end: Json | None = None
        self.watchers = 0

    @property
    def pictures(self) -> Mapping[str, ScreenshotRecord]:
        return self._rows.pictures

    async def begin(self) -> None:
        async with self._turn:
            if not self.head:
                await self._look()

    async def wait(self, mark: int) -> None:
        """Return when there is more than at a mark, or nothing will follow."""
        while self.mark == mark and self.end is None:
            async with self._turn:
                if self.mark != mark:
                    return
                await anyio.sleep(max(0.0, self._next_s - anyio.current_time()))
                await self._look()

    async def _look(self) -> None:
        """Read the news. After a failure the known state stays, and a later look tries again."""
        try:
            summary = await self._store.load_live(self.summary.live_token or "")
            if summary is not None:
                await self._take(summary)
        except StoreFailed as exc:
            logger.warning("a live page cannot be brought up to date: %s", exc)
            self._next_s = anyio.current_time() + TROUBLE_S
        else:
            self._next_s = anyio.current_time() + POLL_S

    async def _take(self, summary: TrajectorySummary) -> None:
        prompt, known = self._prompt, len(self.steps)
        steps: list[TrajectoryStep] = []
        lines: list[tuple[int, str]] = []
        if prompt is None:
            prompt = (await self._store.load_trajectory(summary.id)).prompt
        if summary.step_count > known:
            steps = await self._store.load_steps(summary.id, known, summary.step_count)
        turns: list[RecordedTurn] = []
        if self._model:  # after the steps: a turn is recorded before those that it led to
            turns = await self._store.load_turns(summary.id, self._rows.turn_count - 1)
        if self._log:
            lines = await self._store.load_lines(summary.id, self._last_line)
        # From here on nothing waits: a watcher that is cut off leaves the feed whole.
        self.summary, self._prompt = summary, prompt
        per_step = summary.reward_policy == "per_step"
        self._rows.take_turns(turns)
        self.steps += [_step_data(row, per_step=per_step) for row in self._rows.extend(steps)]
        self.lines += [text for _, text in lines]
        self._last_line = lines[-1][0] if lines else self._last_line
        self.turns_left = self._rows.turns_left
        head = _head(summary, prompt, len(self.steps))
        ended = summary.ended_at is not None and self.end is None
        self.mark += head != self.head or bool(steps or turns or lines) or ended
        self.head = head
        self.end = _end(summary) if ended else self.end


class _Feeds:
    def __init__(
        self, store: Store, *, log: bool, reader: Reader | None, replies: Replies | None
    ) -> None:
        self._store = store
        self._log = log
        self._reader = reader
        self._replies = replies
        self._feeds: dict[tuple[str, bool], _Feed] = {}

    async def page(self, request: Request) -> Response:
        found, replies = await self._find(request), self._replies
        if found is None:
            return not_found()
        takes = replies is not None and replies.has_user(found.environment, found.task.template)
        return html_answer(live_page(takes_replies=takes))

    async def user(self, request: Request) -> Response:
        """Show the message that waits for a person as the user, or take their reply.

        The token comes in a header, which no page elsewhere makes a browser send.
        """
        replies = self._replies
        if replies is None:
            return not_found()
        if (refusal := _refuse_stranger(request, replies.token)) is not None:
            return refusal
        person = replies.find(request.path_params["token"])
        if request.method != "POST":
            return json_answer({"waits": None if person is None else person.waits})
        given = await _read_reply(request)
        if given is None:
            return PlainTextResponse("Send a reply, or end the conversation.", 400)
        state, reply, ends = given
        if person is None or not await person.take(state, reply, ends=ends):
            text = "This message has its reply from another page, or its time is up."
            return PlainTextResponse(text, 409)
        return json_answer({"taken": True})

    async def events(self, request: Request) -> Response:
        summary = await self._find(request)
        if summary is None:
            return not_found()
        model = self._reader is not None and self._reader.is_known(request)
        feed = self._feeds.get((summary.id, model))
        if feed is not None and feed.watchers >= WATCHERS:
            return PlainTextResponse("Too many watch this session; try again later.", 503)
        if request.method == "HEAD":
            return Response(media_type=_Events.media_type)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < _ID_DIGITS else None
        return _Events(self._watch(summary, after, model=model))

    async def picture(self, request: Request) -> Response:
        summary = await self._find(request)
        if summary is None:
            return not_found()
        async with self._feed_of(summary, model=False) as feed:
            await feed.begin()
            return await picture_answer(self._store, feed.pictures, request.path_params["sha256"])

    async def _find(self, request: Request) -> TrajectorySummary | None:
        token = request.path_params["token"]
        if not _TOKEN.fullmatch(token):
            return None
        try:
            return await self._store.load_live(token)
        except StoreFailed as exc:
            logger.warning("a live page cannot be opened: %s", exc)
            return None

    @asynccontextmanager
    async def _feed_of(self, summary: TrajectorySummary, *, model: bool) -> AsyncGenerator[_Feed]:
        """Share a watched session; it is forgotten with its last watcher."""
        key = (summary.id, model)
        feed = self._feeds.get(key)
        if feed is None:
            feed = _Feed(self._store, summary, log=self._log, model=model)
            self._feeds[key] = feed
        feed.watchers += 1
        try:
            yield feed
        finally:
            feed.watchers -= 1
            if not feed.watchers:
                self._feeds.pop(key, None)

    async def _watch(
        self, summary: TrajectorySummary, after: int | None, *, model: bool
    ) -> AsyncGenerator[bytes]:
        async with self._feed_of(summary, model=model) as feed:
            await feed.begin()
            known = len(feed.steps)
            at = max(0, known - FIRST_STEPS) if after is None else min(after + 1, known)
            line = max(0, len(feed.lines) - FIRST_LINES)
            head: Json = {}
            left: list[Json] = []
            yield b"retry: 2000\n\n"
            while True:
                mark = feed.mark
                if feed.head is not head:
                    head = feed.head
                    yield _event("state", encode(head))
                while at < len(feed.steps):
                    yield _event("step", feed.steps[at], number=at)
                    at += 1
                if feed.turns_left != left:
                    left = feed.turns_left
                    yield _event("turns", encode({"turns": left}))
                if line < len(feed.lines):
                    lines, first, line = feed.lines[line:], line, len(feed.lines)
                    yield _event("log", encode({"first": first, "lines": lines}))
                if feed.end is not None and at == len(feed.steps):
                    yield _event("end", encode(feed.end))
                    return
                with anyio.move_on_after(BEAT_S) as beat:
                    await feed.wait(mark)
                if beat.cancelled_caught:
                    yield b":\n\n"


class _Events(Response):
    """A stream of events that ends when its reader has left, or does not read for too long."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stopping: anyio.Event | None = scope.get("state", {}).get("stopping")
        is_whole = False
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        async with anyio.create_task_group() as group, aclosing(self._events):

            async def notice_leaving() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def notice_stopping(event: anyio.Event) -> None:
                nonlocal is_whole
                await event.wait()
                is_whole = True
                group.cancel_scope.cancel()

            group.start_soon(notice_leaving)
            if stopping is not None:
                group.start_soon(notice_stopping, stopping)
            is_whole = await self._send_all(send)
            group.cancel_scope.cancel()
        if is_whole:  # else the server closes the connection
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> bool:
        async for event in self._events:
            with anyio.move_on_after(SEND_S) as bound:
                await send({"type": "http.response.body", "body": event, "more_body": True})
            if bound.cancelled_caught:
                logger.info("a live page's reader does not read; it is dropped")
                return False
        return True


def _refuse_stranger(request: Request, token: str) -> Response | None:
    given = request.headers.get("authorization")
    if given is None:
        bearer = {"www-authenticate": "Bearer"}
        return PlainTextResponse("Only the viewer's token answers as the user.", 401, bearer)
    if not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return PlainTextResponse("This is not the viewer's token.", 403)
    return None


async def _read_reply(request: Request) -> tuple[str, str, bool] | None:
    """Return the message's state, the reply, and whether it is the last; None for anything else."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > REPLY_BYTES:
            return None
    try:
        found: Any = orjson.loads(bytes(body))
    except orjson.JSONDecodeError:
        return None
    given = cast("Json", found) if isinstance(found, dict) else {}
    state, reply, ends = given.get("state"), given.get("reply"), given.get("ends") is True
    if not isinstance(state, str) or not isinstance(reply, str):
        return None
    return (state, reply, ends) if reply.strip() or ends else None


def _event(kind: str, data: bytes, *, number: int | None = None) -> bytes:
    head = f"event: {kind}\n" if number is None else f"id: {number}\nevent: {kind}\n"
    return head.encode() + b"data: " + data + b"\n\n"


def _head(summary: TrajectorySummary, prompt: str | None, steps: int) -> Json:
    """Return the facts that an agent may know of its own session."""
    state = "running" if prompt is not None else "starting"
    if summary.answered:
        state = "grading"
    if summary.ended_at is not None:
        state = "ended"
    return {
        "state": state,
        "task": summary.task.id,
        "environment": summary.environment,
        "template": summary.task.template,
        "started_at": summary.started_at.astimezone(UTC).isoformat(timespec="seconds"),
        "prompt": prompt,
        "steps": steps,
    }


def _end(summary: TrajectorySummary) -> Json:
    """Return the end of a session. The reason of a failure is for readers of the record alone."""
    receipt = summary.receipt
    end: Json = {"outcome": outcome_class(summary)}
    if summary.ended_at is not None:
        end["seconds"] = seconds(summary.started_at, summary.ended_at)
    policies = {summary.reward_policy or "hidden", receipt.reward_policy if receipt else "hidden"}
    if receipt is not None and receipt.said_cause and receipt.reward is None:
        end["content"] = f"It ended {receipt.said_cause}."
    if receipt is not None and "hidden" not in policies and receipt.reward is not None:
        end |= {"reward": receipt.reward, "content": receipt.content}
    return end


def _step_data(row: Json, *, per_step: bool) -> bytes:
    text = None if row["text"] is None else clip_and_count(row["text"], _TEXT_CHARS)
    reward = row["reward"] if per_step else None
    return encode({**row, "text": text, "reward": reward, "info": None})

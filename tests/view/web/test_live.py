"""The live page: who may watch a running session, what is seen, and what it costs."""

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from recorded import (
    BROWSER,
    HOSTILE,
    START,
    Run,
    decoded_width,
    opened,
    receipt,
    served,
    shot,
    step,
)
from starlette.routing import Router

from hud_mcp.base.listening import base_url, listen
from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.view.web import live
from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary, live_url
from hud_mcp.server.web.auth import Hosts
from hud_mcp.server.web.listener import serving
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome, SubScore

pytestmark = pytest.mark.anyio

TOKEN = "0123456789abcdef" * 2
SECRET = "the-answer-key"


async def begin(run: Run, task: str = "shop", **more: Any) -> str:
    """Record a session that goes on and can be watched."""
    return await run.add(task, outcome=None, live_token=TOKEN, **more)


async def end(run: Run, name: str, reward: float | None = 0.75, **more: Any) -> None:
    """Record how it ended."""
    outcome = Outcome.GRADED if reward is not None else Outcome.GRADING_FAILED
    trajectory = await run.store.load_trajectory(name)
    await run.store.end_session(name, receipt(trajectory, outcome, reward, **more))


def app(store: Store, **options: Any) -> Router:
    """The live pages, as any surface serves them."""
    return Router(live_routes(store, hosts=Hosts("127.0.0.1"), **options))


Event = tuple[str, int | None, Any]


async def read(answer: httpx.Response) -> AsyncGenerator[Event]:
    """The events of a stream: kind, number, data."""
    kind, number = "", None
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = int(value)
        elif name == "data":
            yield kind, number, json.loads(value)
            kind, number = "", None


@asynccontextmanager
async def watching(base: str, **headers: str) -> AsyncIterator[AsyncGenerator[Event]]:
    """Watch the session's events."""
    async with (
        httpx.AsyncClient(timeout=20) as asking,
        asking.stream("GET", f"{live_url(base, TOKEN)}/events", headers=headers) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield read(answer)


async def until(events: AsyncGenerator[Event], kind: str) -> Event:
    """The next event of a kind."""
    async for event in events:
        if event[0] == kind:
            return event
    raise AssertionError(kind)


def test_the_address_of_a_live_page_is_the_base_and_the_token() -> None:
    """Whatever the base ends in."""
    for base in ("http://127.0.0.1:8000", "http://127.0.0.1:8000/"):
        assert live_url(base, "ab") == "http://127.0.0.1:8000/live/ab"


async def test_a_wrong_token_is_not_found_and_says_nothing(run: Run) -> None:
    """Every address that is none gives the same, whatever is wrong with it."""
    await begin(run)
    transport = httpx.ASGITransport(app=app(run.store))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        good = await asking.get(f"/live/{TOKEN}")
        assert (good.status_code, TOKEN in good.text) == (200, False)
        answers = [
            await asking.get(f"/live/{token}{part}")
            for token in ("0" * 32, "", "tr-0", TOKEN[:-1], TOKEN.upper(), "%00", "%", "'--")
            for part in ("", "/events", f"/pictures/{shot('red').sha256}")
            if token or part
        ]
        assert {answer.status_code for answer in answers} <= {404, 307}
        assert len({answer.text for answer in answers if answer.status_code == 404}) <= 2


async def test_steps_come_as_they_are_recorded_and_then_the_end(run: Run) -> None:
    """A watcher is sent what was, what comes, and how it ended; then the stream is over."""
    name = await begin(run, steps=[step(0, see=shot("red"), observation_text="first")])
    async with served(app(run.store)) as base, watching(base) as events:
        kind, _, head = await anext(events)
        assert (kind, head["state"], head["task"], head["prompt"]) == (
            "state", "running", "shop", "Do shop.",
        )  # fmt: skip
        assert (await until(events, "step"))[1] == 0
        click = {"type": "click", "x": 3, "y": 4}
        await run.store.add_step(name, *step(1, click, observation_text="second"))
        _, number, row = await until(events, "step")
        assert (number, row["text"], row["actions"][0]["words"]) == (1, "second", "click at 3, 4")
        assert row["before"]["sha256"] == shot("red").sha256
        await run.store.add_step(name, *step(2, kind="response"), answers=True)
        states = [(await until(events, "state"))[2]["state"]]
        while states[-1] != "grading":
            states.append((await until(events, "state"))[2]["state"])
        await end(run, name)
        assert (await until(events, "end"))[2] == {
            "outcome": "graded", "reward": 0.75, "content": None, "seconds": 10.0,
        }  # fmt: skip
        assert [event async for event in events] == []


async def test_who_reconnects_is_sent_what_was_missed(run: Run) -> None:
    """The number of the last event that arrived says where to go on; nonsense says nothing."""
    name = await begin(run, steps=[step(i) for i in range(5)])
    await end(run, name)
    async with served(app(run.store)) as base:
        for last, expected in (
            ("2", [3, 4]), ("4", []), ("99", []), ("-1", range(5)), ("x", range(5)),
            ("9" * 40, range(5)),
        ):  # fmt: skip
            async with watching(base, **{"last-event-id": last}) as events:
                numbers = [number async for kind, number, _ in events if kind == "step"]
            assert numbers == list(expected), last


@pytest.mark.parametrize("policy", ["hidden", "on_submit", "per_step"])
async def test_nothing_is_seen_that_an_agent_must_not_know(run: Run, policy: str) -> None:
    """No metadata, argument, log, step's or grade's info, or reason, and no hidden reward."""
    key = {"key": SECRET}
    made, see = step(0, {"type": "click", "x": 1, "y": 1}, see=shot("red"), info=key, reward=0.123)
    name = await begin(
        run,
        steps=[(made, see)],
        reward_policy=policy,
        logs=[SECRET],
        task_fields={"args": key, "metadata": key, "description": SECRET},
    )
    more: dict[str, Any] = {"info": key, "error": SECRET, "reward_policy": policy}
    score = SubScore(name=SECRET, value=0.5)
    await end(run, name, 0.4567, subscores=(score,), content="Nearly.", **more)
    async with served(app(run.store)) as base, httpx.AsyncClient() as asking:
        said = (await asking.get(live_url(base, TOKEN))).text
        said += (await asking.get(f"{live_url(base, TOKEN)}/events")).text
    assert SECRET not in said
    assert ("0.4567" in said) == ("Nearly." in said) == (policy != "hidden")
    assert ("0.123" in said) == (policy == "per_step")
    assert TOKEN not in said
    assert name not in said


async def test_a_failed_grading_has_no_reason_here(run: Run) -> None:
    """What a grader raised may hold the answer."""
    name = await begin(run)
    await end(run, name, None, error=SECRET)
    async with served(app(run.store)) as base, watching(base) as events:
        assert (await until(events, "end"))[2]["outcome"] == "grading_failed"
        assert [event async for event in events] == []


async def test_an_end_that_was_nobodys_result_is_called_interrupted(run: Run) -> None:
    """As the job's page calls it; the words say whose doing it was."""
    name = await begin(run)
    trajectory = await run.store.load_trajectory(name)
    ended = receipt(trajectory, Outcome.EXPIRED, None, cause=Cause.OPERATOR)
    await run.store.end_session(name, ended)
    async with served(app(run.store)) as base, watching(base) as events:
        told = (await until(events, "end"))[2]
    assert told["outcome"] == "interrupted"
    assert "operator" in told["content"]


async def test_a_log_is_shown_only_where_that_is_asked_for(run: Run) -> None:
    """The lines so far, then those that follow."""
    name = await begin(run, logs=["opened"])
    async with served(app(run.store, log=True)) as base, watching(base) as events:
        assert (await until(events, "log"))[2] == {"first": 0, "lines": ["09:00:00 opened"]}
        await run.store.add_logs(name, [(START + timedelta(seconds=1), "closed")])
        assert (await until(events, "log"))[2] == {"first": 1, "lines": ["09:00:01 closed"]}


async def test_only_the_sessions_own_pictures_are_served(run: Run) -> None:
    """Another session's picture is not found under this one's token."""
    await begin(run, steps=[step(0, see=shot("red"))])
    await run.add("other", [step(0, see=shot("blue"))], reward=1)
    transport = httpx.ASGITransport(app=app(run.store))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        own = await asking.get(f"/live/{TOKEN}/pictures/{shot('red').sha256}")
        assert (own.status_code, own.content) == (200, shot("red").data)
        for other in (shot("blue").sha256, "..%2f..%2fstore.sqlite3", "x" * 64):
            assert (await asking.get(f"/live/{TOKEN}/pictures/{other}")).status_code == 404


class CountingStore(Store):
    """A store that counts how often a watched session is looked at."""

    looks = 0
    broken = False
    wanted = 0
    reached: anyio.Event

    async def looked(self, count: int) -> None:
        """Wait until it was looked at so often."""
        self.wanted, self.reached = count, anyio.Event()
        await self.reached.wait()

    async def load_live(self, live_token: str) -> TrajectorySummary | None:
        """Count, and fail where that is wanted."""
        self.looks += 1
        if self.looks == self.wanted:
            self.reached.set()
        if self.broken:
            raise StoreFailed("The record cannot be read: it is locked.")
        return await super().load_live(live_token)


@pytest.mark.long
async def test_many_watchers_cost_no_more_queries_than_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait, the record is looked at once in each interval, for all of them."""
    monkeypatch.setattr(live, "POLL_S", 0.1)
    store = CountingStore(run.folder / "store.sqlite3")
    name = await begin(run)
    async with served(app(store)) as base, anyio.create_task_group() as group:
        ready, seen = anyio.Semaphore(0), anyio.Semaphore(0)

        async def watch() -> None:
            async with watching(base) as events:
                await until(events, "state")
                ready.release()
                await until(events, "step")
                seen.release()

        for _ in range(40):
            group.start_soon(watch)
        for _ in range(40):
            await ready.acquire()
        before, began_s = store.looks, anyio.current_time()
        await store.looked(before + 5)
        assert anyio.current_time() - began_s >= 0.35  # five looks take at least four intervals
        await run.store.add_step(name, *step(0))
        for _ in range(40):
            await seen.acquire()
    await store.close()


async def test_the_record_that_cannot_be_read_is_read_later(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked store interrupts nothing: what was recorded meanwhile is sent afterwards."""
    monkeypatch.setattr(live, "TROUBLE_S", 0.05)
    store = CountingStore(run.folder / "store.sqlite3")
    name = await begin(run)
    async with served(app(store)) as base, watching(base) as events:
        await until(events, "state")
        store.broken = True
        before = store.looks
        await run.store.add_step(name, *step(0))
        await store.looked(before + 3)
        store.broken = False
        assert (await until(events, "step"))[1] == 0
    await store.close()


async def test_a_watcher_that_does_not_read_is_dropped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is closed after a while, and what it held is let go of."""
    monkeypatch.setattr(live, "SEND_S", 0.2)
    monkeypatch.setattr(live, "WATCHERS", 1)
    dropped = anyio.Event()
    monkeypatch.setattr(live.logger, "info", lambda _text: dropped.set())
    text = "x" * 19_000
    await begin(run, steps=[step(i, observation_text=text) for i in range(200)])
    async with served(app(run.store)) as base:
        port = int(base.rpartition(":")[2])
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", port))
            request = f"GET /live/{TOKEN}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
            deaf.sendall(request.encode())
            await dropped.wait()
            async with watching(base) as events:  # in its place
                await until(events, "state")


async def test_too_many_watchers_are_told_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session does not take all connections."""
    monkeypatch.setattr(live, "WATCHERS", 1)
    await begin(run)
    async with served(app(run.store)) as base, watching(base) as events:
        await until(events, "state")
        async with httpx.AsyncClient() as asking:
            answer = await asking.get(f"{live_url(base, TOKEN)}/events")
        assert answer.status_code == 503


async def test_a_session_that_starts_has_its_prompt_later(run: Run) -> None:
    """Before its first prompt it is starting, and a watcher sees when it runs."""
    await run.store.add_job(run.job)
    task = Task(id="shop", env="shop", template="find")
    made = Trajectory(id="tr", job_id=run.job.id, environment="shop", task=task, started_at=START)
    store = run.store
    await store.add_session(made, secret_digest="0" * 64, principal=None, live_token=TOKEN)
    async with served(app(store)) as base, watching(base) as events:
        head = (await until(events, "state"))[2]
        assert (head["state"], head["prompt"]) == ("starting", None)
        await store.set_prompt("tr", "Find the shop.")
        head = (await until(events, "state"))[2]
        assert (head["state"], head["prompt"]) == ("running", "Find the shop.")


async def now(page: Page, selector: str) -> str:
    """What an element says."""
    return await page.inner_text(selector)


@BROWSER
async def test_the_page_follows_a_session(run: Run, browser: Browser) -> None:
    """The latest picture is shown as it comes; one can step back, and follow again."""
    click = {"type": "click", "x": 160, "y": 100}
    name = await begin(run, steps=[step(0, see=shot("red"), observation_text="text 0")])
    async with served(app(run.store)) as base, opened(browser, live_url(base, TOKEN)) as seen:
        page = seen.page
        await expect(page.locator("#position")).to_have_text("1 / 1")
        await expect(page.locator(".state-now")).to_have_text("running")
        assert await decoded_width(page) == 640
        await run.store.add_step(name, *step(1, click, see=shot("blue"), observation_text="text 1"))
        await expect(page.locator("#position")).to_have_text("2 / 2")
        await expect(page.locator("#seen")).to_have_text("text 1")
        picture = page.locator("#picture")
        assert await picture.get_attribute("data-sha256") == shot("blue").sha256
        await page.keyboard.press("b")
        assert await page.locator(".spot").count() == 1
        await page.keyboard.press("ArrowLeft")
        await run.store.add_step(name, *step(2, see=shot("green"), observation_text="text 2"))
        await expect(page.locator("#position")).to_have_text("1 / 3")
        await expect(page.locator("#follows")).to_have_text("Not following. 2 newer steps.")
        await page.get_by_role("button", name="Follow the latest step").click()
        await expect(page.locator("#follows")).to_contain_text("Following: the newest step")
        await expect(page.locator("#seen")).to_have_text("text 2")
        await end(run, name)
        await expect(page.locator("#state .badge")).to_have_text("graded")
        assert "reward 0.75" in await now(page, "#state")
        card = await now(page, "#card")
        assert [card.split()[0], "graded" in card, "10.0 s" in card] == ["0.75", True, True]
        await expect(page.locator("#follows")).to_have_text("The session is over.")
        assert "Nothing" not in await now(page, "main")


@pytest.mark.long
@BROWSER
async def test_a_lost_connection_is_taken_up_where_it_broke(run: Run, browser: Browser) -> None:
    """The page says that it tries again, and then has every step once."""
    name = await begin(run, steps=[step(0), step(1)])
    async with opened_on_a_port(run, browser) as (seen, restart):
        await expect(seen.page.locator("#position")).to_have_text("2 / 2")
        async with restart():
            await expect(seen.page.locator("#notice")).to_contain_text("trying again")
            await run.store.add_step(name, *step(2))
        await expect(seen.page.locator("#position")).to_have_text("3 / 3")
        await expect(seen.page.locator("#notice")).to_be_hidden()
        await seen.page.get_by_role("tab", name="All steps").click()
        await expect(seen.page.locator("#outline li")).to_have_count(3)
        seen.problems[:] = [p for p in seen.problems if "net::ERR" not in p]


@asynccontextmanager
async def opened_on_a_port(run: Run, browser: Browser) -> AsyncIterator[Any]:
    """A live page whose server can be away for a while, and come back on the same port."""
    async with AsyncExitStack() as last:
        stack = AsyncExitStack()
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        await stack.enter_async_context(serving(app(run.store), listener))

        @asynccontextmanager
        async def restart() -> AsyncIterator[None]:
            await stack.aclose()
            yield
            await last.enter_async_context(serving(app(run.store), listen("127.0.0.1", port)))

        async with opened(browser, live_url(base_url("127.0.0.1", port), TOKEN)) as seen:
            yield seen, restart


@pytest.mark.long
@BROWSER
async def test_what_happens_never_becomes_markup(run: Run, browser: Browser) -> None:
    """Hostile text in everything that is sent is shown as text."""
    text = HOSTILE
    actions: list[dict[str, Any]] = [
        {"type": "click", "x": 10, "y": 10, "reasoning": text, "logs": {text: text}},
        {"type": "type", "text": text, "selector": text},
        {"type": "custom", "action": text, "args": {text: text}},
        {"tool": text, "args": {text: text}},
        {"type": text},
    ]
    steps = [
        step(0, see=shot("red"), observation_text=text),
        step(1, *actions, see=shot("blue"), observation_text=text, error=text),
    ]
    name = await begin(run, text[:200], steps=steps, prompt=text, environment=text, logs=[text])
    await end(run, name, content=text)
    async with served(app(run.store, log=True)) as base:
        address = live_url(base, TOKEN)
        for bypass in (False, True):
            async with opened(browser, address, bypass_csp=bypass) as seen:
                page = seen.page
                await expect(page.locator("#position")).to_have_text("2 / 2")
                for selector in ("#prompt", "#seen", "#step-error"):
                    assert await page.text_content(selector) == text
                await page.get_by_role("tab", name="All steps").click()
                await expect(page.locator("#log")).to_contain_text(text[:40])
                assert await page.locator("img:not(.film img), svg image, iframe, b").count() == 1
                assert await page.evaluate("document.documentElement.dataset.ran") is None


@pytest.mark.long
@BROWSER
async def test_it_fits_a_phone(run: Run, browser: Browser) -> None:
    """At 390 px nothing runs out of the page, in the dark."""
    await begin(run, "a" * 150, steps=[step(0, see=shot("red"), observation_text="text " * 300)])
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    async with (
        served(app(run.store)) as base,
        opened(browser, live_url(base, TOKEN), **phone) as seen,
    ):
        await expect(seen.page.locator("#position")).to_have_text("1 / 1")
        assert await seen.page.evaluate("document.documentElement.scrollWidth") == 390

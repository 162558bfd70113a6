"""A person as the user of a task, on its live page: who may answer, and what becomes of replies."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp.client import Client
from peers import ENVIRONMENTS, MODERN, http_server, load_all, raw_http
from playwright.async_api import Browser, Page, expect
from recorded import BROWSER, HOSTILE, opened, served
from slate import registry
from starlette.routing import Router
from tables import each_of
from test_talks import CALLER, SECRETS, SHOPS, Talker
from waiting import PATIENCE_S

from hud_mcp import Environment, User, When
from hud_mcp.base.process import child_environment
from hud_mcp.cli.tokens import read_page_token
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.users.page import Replies
from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.server.app import build_server
from hud_mcp.server.web.auth import Hosts

pytestmark = pytest.mark.anyio

TOKEN, AGENTS = "the viewers own token", "the agents own token"
BEARER = {"authorization": f"Bearer {TOKEN}"}

env = Environment("on-page")


@env.template(user=True)
async def who_ends():  # noqa: ANN201  # as authors write
    """A user that speaks first; the grade says who ended the conversation."""
    user = User(goal="GOAL-7", persona="PERSONA-7", script=(When(say="A lamp is broken."),))
    reply = yield await user.answer()
    while not reply.ended:
        reply = yield await user.answer(reply)
    yield {"reward": 1.0, "content": f"{reply.by} after {len(user.said)}"}


PLACES = {**SHOPS, "on-page": env}


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has chosen a person on the live page."""
    monkeypatch.setenv("HUD_MCP_USER", "page")


class Asking:
    """A page of a session, as its requests."""

    def __init__(self, web: httpx.AsyncClient, live: str) -> None:
        self.web = web
        self.url = f"{live}/user"
        self.own = BEARER | {"origin": live.partition("/live")[0]}

    async def waits(self) -> dict[str, Any]:
        """Wait for a message."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                answer = await self.web.get(self.url, headers=BEARER)
                assert answer.status_code == 200, answer.text
                if (found := answer.json()["waits"]) is not None:
                    return found
                await anyio.lowlevel.checkpoint()

    async def send(self, state: str, reply: str, *, ends: bool = False) -> httpx.Response:
        """Send a reply."""
        given = {"state": state, "reply": reply, "ends": ends}
        return await self.web.post(self.url, headers=self.own, json=given)


@dataclass
class Place(Talker):
    """A client whose user is a person on the live page."""

    async def begin(self, template: str, web: httpx.AsyncClient) -> Asking:
        """Start a task, and open its page."""
        begun = await self.start(template)
        return Asking(web, begun.structured["live_url"])


@asynccontextmanager
async def talking(folder: Path, name: str = "shop") -> AsyncGenerator[tuple[Place, Any]]:
    """Connect a client to a server with live pages."""
    async with (
        registry(folder / "store.sqlite3", PLACES[name]) as sessions,
        Client(build_server(sessions), mode=MODERN) as client,
        httpx.AsyncClient(timeout=PATIENCE_S) as web,
    ):
        routes = live_routes(
            sessions.store, hosts=Hosts("127.0.0.1"), replies=Replies(sessions, TOKEN)
        )
        async with served(Router(routes)) as base:
            sessions.live_base = base
            yield Place(sessions, client), web


async def test_the_holder_of_the_viewers_token_answers_each_message(tmp_path: Path) -> None:
    """The page has the agent's words and nothing private; the record says whose the turns are."""
    async with talking(tmp_path) as (shop, web):
        page = await shop.begin("return_order", web)
        seen: list[dict[str, Any]] = []
        for asked, reply, ends in (("Which order?", "It is #W1.", False), ("Done.", "Bye.", True)):
            async with anyio.create_task_group() as group:
                told: list[Any] = []

                async def say(text: str = asked, into: list[Any] = told) -> None:
                    into.append(await shop.say(text))

                group.start_soon(say)
                waits = await page.waits()
                assert waits["message"] == asked
                assert (await page.send(waits["state"], reply, ends=ends)).status_code == 200
            assert told[0].structured["reply"] == reply
            seen.append(waits)
        assert told[0].structured["state"] == "ended"
        record = await shop.record()
    assert not any(secret in repr(seen) for secret in SECRETS)
    turns = [s.info["hud-mcp/user_turn"]["turn"] for s in record.steps if s.kind == "user"]
    assert [(t["text"], t["is_person"], t["on_page"]) for t in turns] == [
        ("It is #W1.", True, True),
        ("Bye.", True, True),
    ]
    assert record.user is not None
    assert record.user.by_person == 2


@pytest.mark.long
async def test_nobody_else_answers_or_reads_what_waits(tmp_path: Path) -> None:
    """Neither the address, nor an agent's credential, nor a page elsewhere, nor a cookie."""
    async with talking(tmp_path) as (shop, web), anyio.create_task_group() as group:
        page = await shop.begin("return_order", web)
        group.start_soon(shop.say, "Which order?")
        waits = await page.waits()
        given = {"state": waits["state"], "reply": "Forged.", "ends": True}
        own = {"origin": page.own["origin"]}
        for headers, status in (
            (own, 401),
            (own | {"cookie": f"token={TOKEN}"}, 401),
            (own | {"authorization": f"Bearer {AGENTS}"}, 403),
            (own | {"authorization": f"Bearer {shop.session}"}, 403),
            (own | {"authorization": f"Basic {TOKEN}"}, 403),
            (own | {"authorization": "Bearer"}, 403),
            (BEARER | {"origin": "http://127.0.0.1:1"}, 403),
            (BEARER | {"origin": "null"}, 403),
            (page.own | {"sec-fetch-site": "cross-site"}, 403),
            (page.own | {"host": "evil.example"}, 421),
            (BEARER, 405),
        ):
            answer = await web.post(page.url, headers=headers, json=given)
            assert answer.status_code == status, (headers, answer.text)
            assert "Which order" not in answer.text
        for headers, status in ((own, 401), (own | {"authorization": f"Bearer {AGENTS}"}, 403)):
            answer = await web.get(page.url, headers=headers)
            assert (answer.status_code, "Which order" in answer.text) == (status, False)
        query = await web.get(f"{page.url}?token={TOKEN}&reply=Forged.&ends=true", headers=own)
        assert query.status_code == 401
        nobody = await web.get(page.url.replace(page.url.split("/")[-2], "0" * 32), headers=BEARER)
        assert nobody.json() == {"waits": None}
        for wrong in (b"", b"[]", b'{"state": 1}', b'{"reply": ""}', b"x" * 70_000):
            answer = await web.post(page.url, headers=page.own, content=wrong)
            assert answer.status_code == 400
        assert (await page.waits())["state"] == waits["state"]
        assert (await page.send(waits["state"], "It is #W1.")).status_code == 200


@pytest.mark.long
async def test_the_first_of_two_pages_answers_and_the_other_is_told(tmp_path: Path) -> None:
    """A reply is for one message: it answers no later one."""
    async with talking(tmp_path) as (shop, web):
        page = await shop.begin("return_order", web)
        answers: list[int] = []

        async def send(state: str, reply: str) -> None:
            answers.append((await page.send(state, reply)).status_code)

        async with anyio.create_task_group() as group:
            group.start_soon(shop.say, "Which order?")
            state = (await page.waits())["state"]
            group.start_soon(send, state, "It is #W1.")
            group.start_soon(send, state, "It is #W2.")
        assert sorted(answers) == [200, 409]
        async with anyio.create_task_group() as group:
            group.start_soon(shop.say, "Which order?")
            later = await page.waits()
            assert (await page.send(state, "Too late.")).status_code == 409
            assert (await page.send(later["state"], "It is #W3.")).status_code == 200
        texts = [s.observation_text for s in (await shop.record()).steps if s.kind == "user"]
        assert len(texts) == 2
        assert texts[1] == "It is #W3."


@pytest.mark.long
async def test_a_person_who_takes_too_long_ends_the_conversation_and_not_the_run(
    tmp_path: Path,
) -> None:
    """As a person at the caller does."""
    async with talking(tmp_path, "on-page") as (place, web):
        page = await place.begin("who_ends", web)
        session: Any = await place.sessions.find(place.session, CALLER)
        (await session.person())._within_s = 0.05
        last = await place.say("Which one?")
        assert last.structured["content"] == "limit after 2"
        assert (await page.send("", "Late.")).status_code == 409


@pytest.mark.long
async def test_without_live_pages_a_message_is_refused(tmp_path: Path) -> None:
    """Nothing is said, and `response` still ends the task."""
    async with talking(tmp_path) as (shop, _):
        shop.sessions.live_base = None
        await shop.start("return_order")
        refused = await shop.call("message_user", text="Which order?")
        assert refused.is_error
        assert "--live" in refused.text
        assert (await shop.ok("response", answer="")).structured["state"] == "ended"


@pytest.mark.long
async def test_a_kill_while_the_form_is_open_loses_nothing(tmp_path: Path) -> None:
    """The next server asks again, and says it once; there, an agent's token is refused too."""
    variables = {"HUD_MCP_USER": "page", "HUD_MCP_VIEW_TOKEN": TOKEN}
    source, options = str(ENVIRONMENTS / "talking.py:shop"), ("--token", AGENTS)
    async with httpx.AsyncClient(timeout=PATIENCE_S) as web:
        with http_server(tmp_path, [source], *options, env=variables) as first:
            async with (
                raw_http(first.url, MODERN, token=AGENTS) as agent,
                anyio.create_task_group() as group,
            ):
                begun = (await agent.call("start_task", template="return_order"))[
                    "structuredContent"
                ]
                session, page = begun["session"], Asking(web, begun["live_url"])

                async def say() -> None:
                    with pytest.raises(httpx.TransportError):
                        await agent.call("message_user", session=session, text="Which order?")

                group.start_soon(say)
                await page.waits()
                first.process.kill()
        with http_server(tmp_path, [source], *options, env=variables) as second:
            async with (
                raw_http(second.url, MODERN, token=AGENTS) as agent,
                anyio.create_task_group() as group,
            ):
                told: list[Any] = []

                async def say_again() -> None:
                    told.append(
                        await agent.call("message_user", session=session, text="Which order?")
                    )

                live = begun["live_url"].partition("/live")[2]
                page = Asking(web, second.url.removesuffix("/mcp") + "/live" + live)
                group.start_soon(say_again)
                state = (await page.waits())["state"]
                for token in (AGENTS, session):
                    given = page.own | {"authorization": f"Bearer {token}"}
                    answer = await web.post(page.url, headers=given, json={"state": state})
                    assert answer.status_code == 403
                assert (await page.send(state, "It is #W4.")).status_code == 200
            assert told[0]["structuredContent"]["reply"] == "It is #W4."
            assert f"waits for the person who answers as the user: {second.url[:-4]}" in (
                log := second.log.read_text()
            )
            assert TOKEN not in log
    (run,) = await load_all(tmp_path / "store.sqlite3")
    assert [step.kind for step in run.steps if step.error is None] == ["user", "message"]


@asynccontextmanager
async def on_a_page(browser: Browser, live: str, **options: Any) -> AsyncGenerator[Page]:
    """Open a session's page, and enter the viewer's token."""
    async with opened(browser, live, **options) as seen:
        page = seen.page
        await page.get_by_label("The viewer's token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await expect(page.locator("#user-state")).to_contain_text("essage")
        yield page


@pytest.mark.long
@BROWSER
async def test_a_person_answers_by_keyboard_and_a_reload_keeps_their_words(
    tmp_path: Path, browser: Browser
) -> None:
    """Hostile words stay text, nothing runs out of a phone, and the other button ends it."""
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
    text = f"{HOSTILE} Which order?"[:1900]
    async with talking(tmp_path, "on-page") as (place, _):
        live = (await place.start("who_ends")).structured["live_url"]
        async with on_a_page(browser, live, **phone) as page:
            for words, ends in (("It is #W1.", False), ("Goodbye.", True)):
                async with anyio.create_task_group() as group:
                    group.start_soon(place.say, text)
                    reply = page.get_by_label("Your reply")
                    await expect(page.locator("#message")).to_have_text(text)
                    await expect(reply).to_be_visible()
                    assert await page.locator("#message > *").count() == 0
                    assert await page.evaluate("document.documentElement.scrollWidth") == 390
                    await reply.focus()
                    await page.keyboard.type(words)
                    await page.reload()
                    await expect(reply).to_be_visible()
                    await expect(reply).to_have_value(words)
                    await reply.focus()
                    for _ in range(2 if ends else 1):
                        await page.keyboard.press("Tab")
                    await page.keyboard.press("Enter")
                    if not ends:
                        await expect(page.locator("#user-state")).to_have_text("Sent.")
                        await expect(reply).to_be_hidden()
            await expect(page.locator("#state .badge")).to_have_text("graded")
            await expect(page.locator("#user")).to_be_hidden()
            assert await page.evaluate("document.documentElement.dataset.ran") is None
        await place.over()
        assert (await place.record()).receipt.content == "user after 3"  # type: ignore[union-attr]


@pytest.mark.long
@BROWSER
async def test_a_page_without_user_or_without_the_choice_offers_no_field(
    tmp_path: Path, browser: Browser
) -> None:
    """A template without a user has nobody to answer as."""
    async with talking(tmp_path, "plain") as (place, _):
        live = (await place.start("question")).structured["live_url"]
        async with opened(browser, live) as seen:
            await expect(seen.page.locator(".state-now")).to_have_text("running")
            await expect(seen.page.locator("#user")).to_be_hidden()


@each_of(
    "given, callers, replica, said",
    [
        (None, {}, None, "needs HUD_MCP_VIEW_TOKEN"),
        ("short", {}, None, "at least 16"),
        (AGENTS, {AGENTS: "ana"}, None, "'ana' has HUD_MCP_VIEW_TOKEN"),
        (TOKEN, {}, "a", "--replica"),
    ],
)
def test_a_server_without_a_secret_of_its_own_for_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    callers: dict[str, str],
    replica: str | None,
    said: str,
) -> None:
    """An agent's token is none, and no child inherits the viewers'."""
    if given is not None:
        monkeypatch.setenv("HUD_MCP_VIEW_TOKEN", given)
    assert "HUD_MCP_VIEW_TOKEN" not in child_environment()
    with pytest.raises(HudMcpError, match=said):
        read_page_token(callers, replica=replica)

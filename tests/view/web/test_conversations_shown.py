"""Pages show a conversation as one; the user's goal only to those who may read the record."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, HOSTILE, PATIENCE_S, Run, opened, served, step
from starlette.routing import Router

from hud_mcp.environment.conversation import KeptTurn, UserTurn
from hud_mcp.plugins.view.web.live import live_routes
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.values import USER_TURN
from hud_mcp.server.web.auth import Hosts

pytestmark = pytest.mark.anyio

LIVE = "0123456789abcdef" * 2
GOAL, TOKEN = "THE-GOAL-OF-THE-USER", "correct horse battery"


async def record(run: Run, *, marks: Mapping[str, bool] | None = None, **more: Any) -> str:
    """A conversation of one message, with a step before it."""
    turn = UserTurn(
        text="It is #W4711.", goal=GOAL, persona="Vague.", **dict[str, Any](marks or {})
    )
    kept = KeptTurn(after=1, digest="d", number=0, turn=turn).model_dump(mode="json")
    message = {"type": "message_user", "text": HOSTILE}
    return await run.add(
        "shop",
        [
            step(0, {"type": "press", "keys": ["a"]}),
            step(1, kind="user", observation_text="It is #W4711.", info={USER_TURN: kept}),
            step(2, message, kind="message", observation_text="It is #W4711."),
        ],
        **more,
    )


@BROWSER
async def test_a_page_shows_agent_user_and_world_side_by_side(run: Run, browser: Browser) -> None:
    """The goal is behind a click, and what the agent wrote is text."""
    name = await record(run, reward=1.0)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}") as seen,
    ):
        table = seen.page.locator(".conversation table")
        await expect(table.locator("th")).to_have_text(["Agent", "User", "World"])
        await expect(table.locator("tbody tr")).to_have_count(2)
        row = table.locator("tbody tr").last.locator("td")
        await expect(row.first).to_have_text(HOSTILE)
        await expect(row.nth(1)).to_have_text("It is #W4711.")
        goal = seen.page.locator(".goal pre")
        await expect(goal).not_to_be_visible()
        await seen.page.locator(".goal summary").click()
        await expect(goal).to_contain_text(GOAL)


async def test_a_live_page_of_a_server_has_no_goal(run: Run) -> None:
    """Its address comes with the task, so that an agent may read it."""
    await record(run, outcome=None, live_token=LIVE)
    said = ""
    async with (
        served(Router(live_routes(run.store, hosts=Hosts("127.0.0.1"), log=True))) as base,
        httpx.AsyncClient(timeout=PATIENCE_S) as asking,
        asking.stream("GET", f"{base}/live/{LIVE}/events") as answer,
    ):
        async for line in answer.aiter_lines():
            said += f"{line}\n"
            if line.startswith("data:") and '"index":2' in line:
                break
    assert "#W4711" in said
    assert GOAL not in said


@BROWSER
async def test_a_live_page_shows_the_conversation_and_nowhere_the_goal(
    run: Run, browser: Browser
) -> None:
    """Agent, user and world stand side by side there too; no click leads to the goal."""
    await record(run, outcome=None, live_token=LIVE)
    async with (
        served(Router(live_routes(run.store, hosts=Hosts("127.0.0.1"), log=True))) as base,
        opened(browser, f"{base}/live/{LIVE}") as seen,
    ):
        table = seen.page.locator(".conversation table")
        await expect(table.locator("th")).to_have_text(["Agent", "User", "World"])
        await expect(table.locator("tbody tr").last.locator("td").nth(1)).to_have_text(
            "It is #W4711."
        )
        await expect(seen.page.locator(".goal")).to_have_count(0)
        assert GOAL not in await seen.page.content()


@pytest.mark.long
@BROWSER
@pytest.mark.parametrize(("on_page", "where"), [(False, "at the caller"), (True, "live page")])
async def test_a_page_says_which_person_was_the_user(
    run: Run,
    browser: Browser,
    on_page: bool,  # noqa: FBT001  # a parameter of the test
    where: str,
) -> None:
    """The words of such a run are the caller's, or those of a holder of the viewer's token."""
    name = await record(run, reward=1.0, marks={"is_person": True, "on_page": on_page})
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}") as seen,
    ):
        heads = seen.page.locator(".conversation th")
        await expect(heads.nth(1)).to_contain_text(where)


async def test_only_those_with_the_viewers_token_read_the_goal(run: Run) -> None:
    """Nobody else, and not the live page that the viewer has under its session's own token."""
    name = await record(run, outcome=None, live_token=LIVE)
    app = viewer_app(run.store, host="0.0.0.0", token=TOKEN)
    transport, base = httpx.ASGITransport(app=app), "http://192.168.1.5:8199"
    steps, page = f"/api/steps?id={name}&start=0&stop=3", f"/live/{LIVE}"
    async with httpx.AsyncClient(transport=transport, base_url=base) as asking:
        for path in (steps, f"/api/trajectory?id={name}"):
            assert (await asking.get(path)).status_code == 401
        given = {"authorization": f"Bearer {TOKEN}"}
        assert GOAL in (await asking.get(steps, headers=given)).text
        for headers in ({}, given):
            shown = await asking.get(page, headers=headers)
            assert (shown.status_code, GOAL in shown.text) == (200, False)

"""Pages say which tools of a server were listed and called, and which calls failed."""

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, HOSTILE, Run, opened, served, step

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.values import REPLY

pytestmark = [pytest.mark.anyio, BROWSER]

SERVER = {"name": "acme 1.0", "tokens": 1200, "count": 3, "listed": ["look", "clear", HOSTILE]}


def called(index: int, tool: str, *, error: str | None = None, server: object = SERVER) -> object:
    """A recorded call of a server's tool."""
    action = {"tool": tool, "args": {}}
    return step(index, action, kind="tool", error=error, info={REPLY: {"server": server}})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["viewer", "report"])
async def test_the_tools_of_a_job_are_told_with_their_failures(
    run: Run, browser: Browser, where: str
) -> None:
    """And those that were listed, and never called; names become no markup."""
    await run.add("one", [called(0, "look"), called(1, "look", error="no such file")], reward=1)
    await run.add("two", [called(0, HOSTILE), called(1, "own", server=None)], reward=0)
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser, await run.write() if where == "report" else f"{base}/", f"#{run.job.id}"
        ) as seen,
    ):
        told = await seen.text("#tools-used .legend >> nth=0")
        assert told.startswith("acme 1.0 lists 3 tools, about 1,200 tokens")
        assert told.endswith("3 calls, 1 failed.")
        rows = seen.page.get_by_role("table", name="The tools that were called").locator("tbody tr")
        cells = [await row.locator("th, td").all_inner_texts() for row in await rows.all()]
        assert cells[0] == ["look", "2", "1"]
        assert cells[1][1:] == ["1", "0"]
        assert cells[1][0].startswith("<img src=x")
        assert "Never called: clear." in await seen.text("#tools-used")


@pytest.mark.long
async def test_a_run_tells_its_own_calls(run: Run, browser: Browser) -> None:
    """Beside what was asked of it; the step that failed is marked as any."""
    await run.add("one", [called(0, "look"), called(1, "clear", error="locked")], reward=1)
    async with opened(browser, await run.write(), f"#{run.job.id}") as seen:
        await seen.page.get_by_role("link", name="one").first.click()
        await seen.page.get_by_text("Tools of its server").click()
        rows = seen.page.locator("#run-tools-used tbody tr")
        await expect(rows).to_have_text(["look10", "clear11"])


@pytest.mark.long
@pytest.mark.parametrize(
    "server",
    [
        None,
        7,
        {"name": "x"},
        {"name": 1, "tokens": "many", "count": 1, "listed": [1]},
        {"listed": {}},
    ],
)
async def test_a_job_without_a_readable_server_tells_nothing(
    run: Run, browser: Browser, server: object
) -> None:
    """The section is not there, and the page is."""
    await run.add("one", [called(0, "look", server=server)], reward=1)
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("#tools").is_hidden()

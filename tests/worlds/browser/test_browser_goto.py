"""`goto` returns when the document is there whole, or says that it is not."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.environment.calls import prepare
from hud_mcp.environment.function import Situation
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.values.action import ClickAction, CustomAction
from hud_mcp.values.call import FunctionConfig
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser import BrowserWorld, SiteRequest, SiteResponse, commands
from hud_mcp.worlds.browser.functions import BROWSER_FUNCTIONS
from hud_mcp.worlds.browser.proxy import SITE_URL
from hud_mcp.worlds.browser.slot import SlotOptions
from hud_mcp.worlds.browser.tab import Tab

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

OPTIONS = SlotOptions(
    width=800,
    height=600,
    scale=1.0,
    locale="en-US",
    timezone="UTC",
    color_scheme="light",
    reduced_motion="no-preference",
)
SLOW = "<script src=/api/{0}></script><h1 id=end>The end</h1>"


async def backend(request: SiteRequest, _state: dict[str, Any]) -> SiteResponse | None:
    """A script that comes after some seconds, or only after a minute; and a page with 500."""
    if request.path == "/api/broken":
        return SiteResponse(text="<h1>Broken</h1>", status=500)
    if request.path == "/api/nothing":
        return SiteResponse(text="", status=204)
    if request.path not in ("/api/late", "/api/never"):
        return None
    await anyio.sleep(4 if request.path == "/api/late" else 25)
    return SiteResponse(text="", headers={"content-type": "text/javascript"})


async def set_up(world: BrowserWorld, *arguments: Any) -> None:
    """Call `goto` as a task's row does."""
    functions = {function.name: function for function in BROWSER_FUNCTIONS}
    call = FunctionConfig(function="goto", args=list(arguments))
    await prepare([call], functions, Situation(world=world))


@pytest.mark.long
@pytest.mark.parametrize("way", ["author", "agent", "reload"])
async def test_a_document_that_comes_slowly_is_there_when_goto_returns(
    browse: Browse, way: str
) -> None:
    """One whose parsing waits four seconds for a script is whole, for setup and for the agent."""
    pages = {"index.html": "x", "slow.html": SLOW.format("late")}
    world = await browse(pages, backend=backend)
    with anyio.fail_after(PATIENCE_S):
        if way == "author":
            await world.goto("/slow.html")
        else:
            await world.act(CustomAction(action="goto", args={"url": "/slow.html"}))
        if way == "reload":
            await world.act(CustomAction(action="reload"))
        assert await world.page.query_selector("#end") is not None


@pytest.mark.long
async def test_a_document_that_does_not_arrive_whole_is_said_to_be_loading(
    browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says so, for setup and for the agent, and the session goes on."""
    monkeypatch.setattr(commands, "NAVIGATION_BOUND_MS", 2500)
    world = await browse({"index.html": "x", "slow.html": SLOW.format("never")}, backend=backend)
    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(ActionFailed, match=r"slow.html is still loading after 2.5 s"):
            await world.goto("/slow.html")
        with pytest.raises(ActionFailed, match="is still loading"):
            await world.act(CustomAction(action="goto", args={"url": "/slow.html"}))
        await world.act(CustomAction(action="goto", args={"url": "/"}))


async def test_what_is_still_loading_names_the_time_that_it_was_given(browse: Browse) -> None:
    """Another bound than that of a navigation is told as it is, also where a part of it is over."""
    world = await browse({"index.html": "x", "slow.html": SLOW.format("never")}, backend=backend)
    with anyio.fail_after(PATIENCE_S):
        await world.page.goto(f"{SITE_URL}/slow.html", wait_until="commit")
        tab = Tab(world.page, OPTIONS)
        with pytest.raises(ActionFailed, match=r"slow.html is still loading after 0.6 s:"):
            await commands.whole(tab, 600)
        began_s = anyio.current_time() - 0.5
        with pytest.raises(ActionFailed, match=r"slow.html is still loading after 0.7 s:"):
            await commands.whole(tab, 700, began_s=began_s)


@pytest.mark.long
@pytest.mark.parametrize("script", ["stop()", "location = '/api/nothing'", "location = '/a.zip'"])
async def test_a_document_that_was_stopped_is_not_waited_for(browse: Browse, script: str) -> None:
    """One that its own script keeps from being read on is opened as it is, and not refused."""
    half = f"<h1>Half</h1><script>{script}</script>{'<p>x</p>' * 20_000}"
    world = await browse({"index.html": "x", "half.html": half, "a.zip": "x"}, backend=backend)
    with anyio.fail_after(PATIENCE_S):
        await world.goto("/half.html")
        assert await world.page.inner_text("h1") == "Half"
        await world.act(CustomAction(action="reload"))
        await world.goto("/")
        assert await world.text() == "x"


async def test_an_error_in_a_setup_is_an_error_unless_it_is_asked_for(browse: Browse) -> None:
    """404 and 500 fail `goto` of a template and of a row; `allow_status` takes them."""
    world = await browse({"index.html": "x"}, backend=backend)
    with pytest.raises(ActionFailed, match=r"/gone.html answered with status 404"):
        await world.goto("/gone.html")
    with pytest.raises(ActionFailed, match=r"allow_status=\(500,\)"):
        await world.goto("/api/broken")
    await world.goto("/gone.html", allow_status=(404,))
    with pytest.raises(ActionFailed, match="status 404"):
        await set_up(world, "/gone.html")
    await set_up(world, "/gone.html", 404)
    await set_up(world, "/api/broken", [404, 500])
    assert await world.page.inner_text("h1") == "Broken"


@pytest.mark.long
async def test_a_start_page_that_is_not_there_fails_the_opening(browse: Browse) -> None:
    """The agent is not shown an error page as where its task begins."""
    with pytest.raises(EnvironmentFailed, match="answered with status 404"):
        await browse({"other.html": "x"})


async def test_an_agent_is_told_the_status_of_a_page_that_is_an_error(browse: Browse) -> None:
    """By `goto` and by a link alike; a page that is fine has no such line."""
    world = await browse("<a href=/gone>gone</a>")
    assert "Status:" not in ((await world.observe(Look())).text or "")
    for action in (
        ClickAction(selector="a"),
        CustomAction(action="goto", args={"url": "/"}),
        CustomAction(action="goto", args={"url": "/gone"}),
        CustomAction(action="reload"),
    ):
        await world.act(action)
        text = (await world.observe(Look())).text or ""
        assert ("\nStatus: 404 Not Found\n" in text) is world.url.endswith("/gone"), text
    await world.act(CustomAction(action="back"))
    assert "Status:" not in ((await world.observe(Look())).text or "")

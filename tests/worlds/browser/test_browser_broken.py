"""A page that the agent broke costs the agent, and not the session; a killed one is the machine's."""

# ruff: noqa: E501  # pages are easier to read unbroken

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import psutil
import pytest
from playwright.async_api import Error
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed
from hud_mcp.values.action import Action, ClickAction, CustomAction, WaitAction
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser import BrowserWorld
from hud_mcp.worlds.browser import calls as calls_module

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

HOME = CustomAction(action="goto", args={"url": "/home.html"})


def page(handler: str) -> dict[str, str]:
    """A page with a button that does something, and a page to go to."""
    return {"index.html": f"<button onclick='{handler}'>b</button>", "home.html": "<h1>Home</h1>"}


async def act(world: BrowserWorld, action: Action) -> str:
    """Perform an action that may be refused, and return why."""
    with anyio.fail_after(PATIENCE_S):
        try:
            await world.act(action)
        except ActionFailed as exc:
            return str(exc)
    return ""


async def look(world: BrowserWorld) -> str:
    """What the agent is shown: always something, within seconds."""
    with anyio.fail_after(PATIENCE_S):
        return (await world.observe(Look(image="png"))).text or ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("handler", ["document.documentElement.remove()", "document.body.remove()"])
async def test_a_page_without_a_root_is_shown_as_one(browse: Browse, handler: str) -> None:
    """The look says what is wrong at once, a grader reads nothing there, and the agent goes on."""
    world = await browse(page(handler))
    await act(world, ClickAction(selector="button"))
    assert "The document has no body" in await look(world)
    assert await world.text() == ""
    assert await world.texts_of("button") == []
    await world.snapshot()
    assert not await act(world, HOME)
    assert "# Home" in await look(world)


@pytest.mark.long
async def test_a_page_in_an_endless_loop_is_the_agents_doing(
    browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acts, looks and graders come back; `goto` leaves it; another session notices nothing."""
    monkeypatch.setattr(calls_module, "ACT_BOUND_S", 8.0)
    world, other = await browse(page("for(;;);")), await browse("<h1>Other</h1>")
    await look(world)
    assert "did not respond within 8 s" in await act(world, ClickAction(selector="button"))
    assert "does not respond" in await look(world)
    with anyio.fail_after(PATIENCE_S), pytest.raises(BrokenByAgent, match="did not respond"):
        await world.text()
    assert "Other" in await look(other)
    assert not await act(world, HOME)
    assert "did not answer any more, and was closed" in await look(world)
    assert await world.text() == "Home"


@pytest.mark.long
async def test_before_the_agent_began_a_page_that_hangs_is_not_its_doing(
    browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a setup the same is a plain failure."""
    monkeypatch.setattr(calls_module, "ACT_BOUND_S", 4.0)
    world = await browse("x")
    await world.page.evaluate("() => { setTimeout(() => { for (;;); }) }")
    with anyio.fail_after(PATIENCE_S), pytest.raises(ActionFailed) as caught:
        await world.text()
    assert not isinstance(caught.value, BrokenByAgent)


@pytest.mark.long
async def test_a_page_that_navigates_for_ever_can_be_looked_at_and_left(browse: Browse) -> None:
    """A look and an action come back, a grader is told whose doing it is."""
    world = await browse(
        page("location.href = `/for-ever.html`")
        | {
            "for-ever.html": "<script>setTimeout(() => location.href = '/for-ever.html?' + Math.random(), 1)</script><p>x"
        }
    )
    await look(world)
    await act(world, ClickAction(selector="button"))
    assert "for-ever" in await look(world)
    with anyio.fail_after(PATIENCE_S):
        try:
            assert await world.text() in ("", "x")  # it was caught between two documents
        except BrokenByAgent as exc:
            assert "keeps loading new documents" in str(exc)  # noqa: PT017  # either is right
    assert not await act(world, HOME)
    assert "# Home" in await look(world)


@pytest.mark.long
@pytest.mark.parametrize(
    ("handler", "note"),
    [
        ("for (let i = 0; i < 60; i++) window.open(`about:blank`)", "At most 40 tabs can be open"),
        ("for (;;) window.open(`about:blank`)", "tabs without end; all were closed"),
        ("for (;;) alert(1)", "dialogs without end; all tabs were closed"),
        (
            "const a = []; for (;;) a.push(new Array(1e6).fill(1.5))",
            "crashed: its scripts ended its process",
        ),
    ],
    ids=["tabs", "endless tabs", "endless dialogs", "memory"],
)
async def test_a_page_that_takes_without_end_is_closed(
    browse: Browse, handler: str, note: str
) -> None:
    """The agent is told, goes on in the same session, and others notice nothing."""
    world, other = await browse(page(handler)), await browse("<h1>Other</h1>")
    await look(world)
    await act(world, ClickAction(selector="button"))
    shown = [await look(world)]
    while note not in shown[-1] and len(shown) < 4:  # on a busy machine, tabs open slowly
        shown.append(await look(world))
    assert note in shown[-1], shown
    assert "Other" in await look(other)
    assert not await act(world, HOME)
    assert "# Home" in await look(world)
    assert len(world.page.context.pages) <= 40
    assert await world.text() == "Home"


@pytest.mark.long
@pytest.mark.parametrize(
    ("handler", "note"),
    [
        ("for (;;) window.open(`about:blank`)", "tabs without end; all were closed"),
        ("for (;;) alert(1)", "dialogs without end; all tabs were closed"),
    ],
    ids=["tabs", "dialogs"],
)
async def test_what_took_without_end_is_gone_with_its_process(
    browse: Browse, handler: str, note: str
) -> None:
    """Once the agent was told that all were closed, no script of theirs runs and no tab is left."""
    world = await browse(page(handler))
    pid = await _renderer_of(world)
    await act(world, ClickAction(selector="button"))
    shown = [await look(world)]
    while note not in shown[-1] and len(shown) < 4:  # on a busy machine, tabs open slowly
        shown.append(await look(world))
    assert note in shown[-1], shown
    with anyio.fail_after(PATIENCE_S):
        while pid in [each.pid for each in renderers()]:
            await world.page.title()  # the empty page answers meanwhile
    assert world.page.context.pages == [world.page]
    assert "Tabs:" not in await look(world)


@pytest.mark.long
async def test_a_page_that_is_crashed_over_devtools_is_the_agents_doing(browse: Browse) -> None:
    """`Page.crash` closes the page, an action under way ends, and the session goes on."""
    world, other = await browse(page("")), await browse("<h1>Two</h1>")
    cdp = await world.page.context.new_cdp_session(world.page)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(act, world, WaitAction(time=1000))
            with anyio.move_on_after(3), suppress(Error):
                await cdp.send("Page.crash")
    assert "crashed: its scripts ended its process" in await look(world)
    assert "Two" in await other.text()
    assert not await act(world, HOME)


async def test_a_page_whose_process_was_killed_is_the_machines_doing(browse: Browse) -> None:
    """What nothing in the session asked for breaks its world, and no other one."""
    other = await browse("<h1>Other</h1>")
    world = await browse(page(""))
    await look(world)
    pid = await _renderer_of(world)
    psutil.Process(pid).kill()
    with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed, match="crashed"):
        await until_broken(world)
    assert "Other" in await look(other)


async def until_broken(world: BrowserWorld) -> None:
    """Look at a world as long as that goes."""
    while True:
        await world.observe(Look())


def renderers() -> list[psutil.Process]:
    """The processes of pages of this test's browsers."""
    found: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended in this moment
            if "--type=renderer" in " ".join(process.cmdline()):
                found.append(process)
    return found


async def _renderer_of(world: BrowserWorld) -> int:
    """The process of a world's page: the one that computes while the page does."""
    before = {p.pid: sum(p.cpu_times()[:2]) for p in renderers()}
    await world.page.evaluate("() => { const end = Date.now() + 700; while (Date.now() < end); }")
    spent = {p.pid: sum(p.cpu_times()[:2]) - before.get(p.pid, 0.0) for p in renderers()}
    return max(spent, key=lambda pid: spent[pid])

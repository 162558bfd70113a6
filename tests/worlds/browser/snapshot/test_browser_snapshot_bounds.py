"""Snapshots that are too large, refused, hindered, or cost too much."""

import json
import zlib
from typing import Any

import anyio
import pytest
from snapshots import FORM, Make, act, go, read, restore, shop, snapshot
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment, LimitReached
from hud_mcp.values.action import (
    CustomAction,
    TypeAction,
)
from hud_mcp.values.observation import Look
from hud_mcp.world import Shared
from hud_mcp.worlds.browser.snapshot_format import MAX_CHARS

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

MOST_QUESTIONS = 8


@pytest.mark.long
async def test_it_comes_back_in_another_browser(make: Make) -> None:
    """The bytes mean the same to another Chromium of another process, on another port."""
    world = await make(FORM)
    await act(world, TypeAction(selector="#n", text="Ann"))
    before, data = await read(world), await snapshot(world)
    services = Shared()
    try:
        other = await make(services=services)
        assert other.site_address != world.site_address
        assert await read(await restore(other, data)) == before
        await other.close()
    finally:
        with anyio.fail_after(PATIENCE_S):
            await services.close()


async def test_what_is_too_large_is_named_and_the_session_goes_on(make: Make) -> None:
    """Five million characters in all: one storage, many fields, the state."""
    world = await make("<input><textarea id=t hidden></textarea>", backend=shop)
    await world.page.evaluate("localStorage.big = 'x'.repeat(5_100_000)")
    with pytest.raises(LimitReached, match=r"localStorage of http://site.localhost/ takes 5\.1"):
        await snapshot(world)
    await world.page.evaluate("() => { localStorage.clear(); t.value = 'y'.repeat(5_100_000); }")
    with pytest.raises(LimitReached, match="typed into its fields"):
        await snapshot(world)
    await world.page.evaluate("() => { t.value = ''; }")
    world.state["log"] = "z" * (MAX_CHARS + 1)
    with pytest.raises(LimitReached, match="the site's state"):
        await snapshot(world)
    world.state.clear()
    assert await snapshot(world)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, (2, 3)]}, r"state\['x'\]\['a'\]\[1\] of the site is tuple"),
        ({1: "one"}, r"state\['x'\] of the site is a dict with the key 1"),
        ({"s": {1}}, r"state\['x'\]\['s'\] of the site is set"),
        ([float("nan")], r"state\['x'\]\[0\] of the site is float 'nan'"),
    ],
)
async def test_a_state_that_is_not_json_is_named(make: Make, value: object, where: str) -> None:
    """The author is told which value, and the session goes on."""
    world = await make("<h1>x</h1>", backend=shop)
    world.state["x"] = value
    with pytest.raises(InvalidEnvironment, match=where):
        await snapshot(world)
    assert "x" in await read(world)


@pytest.mark.long
async def test_a_snapshot_of_another_form_is_refused(make: Make) -> None:
    """The text says which form it is and what to do, and the world is of no use afterwards."""
    world = await make("<h1>x</h1>")
    later = zlib.compress(json.dumps({"form": 99}).encode())
    with pytest.raises(EnvironmentFailed, match=r"form 99.*reads form 1.*start a new task"):
        await world.restore(later)
    with pytest.raises(EnvironmentFailed, match="not restored"):
        await world.observe(Look())


LIES = """<input id=i><script>
  JSON.stringify = () => ({ toString: null }); Array.prototype.toJSON = () => 'no';
  Storage.prototype.getItem = () => { throw 1 }; Object.keys = () => [[[]]];
  Object.defineProperty(HTMLInputElement.prototype, 'defaultValue', { get() { throw 2 } });
</script>"""


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [LIES, "<script>JSON.parse = () => { throw 3 }; HTMLElement.prototype.focus = null</script>"],
)
async def test_a_page_that_breaks_its_own_tools_breaks_no_snapshot(make: Make, script: str) -> None:
    """Its address comes back, and the other pages whole."""
    world = await make({"index.html": "<input id=i>", "bad.html": f"<h1>Bad</h1>{script}"})
    await act(world, TypeAction(selector="#i", text="kept"))
    page = await world.page.context.new_page()
    await page.goto(world.site_url + "/bad.html")
    other = await restore(await make(), await snapshot(world))
    assert "Bad" in await other.text()
    await act(other, CustomAction(action="switch_tab", args={"index": 1}))
    assert await other.page.input_value("#i") == "kept"


@pytest.mark.long
async def test_a_page_that_hangs_keeps_its_address(make: Make) -> None:
    """An endless loop costs the snapshot seconds, not the session."""
    world = await make({"index.html": "<h1>x</h1>", "loop.html": "<h1>Loop</h1>"})
    await act(world, go("/loop.html"))
    await world.page.evaluate("() => void setTimeout(() => { for (;;); }, 0)")
    with anyio.fail_after(PATIENCE_S):
        data = await world.snapshot()
    assert "Loop" in await (await restore(await make(), data)).text()


@pytest.mark.long
async def test_a_snapshot_costs_little(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet page is asked as often however long it is; one of forty lines takes under 2 KB."""
    asked: dict[int, list[str]] = {40: [], 2_000: []}
    sizes: list[int] = []
    for lines, methods in asked.items():
        world = await make("<h1>Quiet</h1>" + "<p>line</p>" * lines)
        await read(world)
        await snapshot(world)
        await world._calls.reserve.until_filled()  # which asks for pages by the same connection
        driver: Any = world.page._impl_obj._connection
        send = driver.send_message_to_server

        def note(
            owner: Any,
            method: str,
            *rest: Any,
            known: tuple[Any, Any] = (methods, send),
            **more: Any,
        ) -> Any:
            known[0].append(method)
            return known[1](owner, method, *rest, **more)

        with monkeypatch.context() as patch:
            patch.setattr(driver, "send_message_to_server", note)
            sizes.append(len(await snapshot(world)))
    assert asked[40] == asked[2_000]
    assert 0 < len(asked[40]) <= MOST_QUESTIONS, asked[40]
    assert sizes[0] < 2000

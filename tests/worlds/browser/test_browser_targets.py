"""What an action of the browser world names: targets that are hidden, covered, gone or far."""

# ruff: noqa: E501  # pages are easier to read unbroken

import anyio
import pytest
from acting import LOGGING, Browse, act, refusal, seen
from waiting import PATIENCE_S

from hud_mcp.values.action import (
    ClickAction,
    DragAction,
    Point,
)
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def test_a_place_outside_of_the_page_is_refused_with_the_edge(browse: Browse) -> None:
    """The error names the edge, and no CSS pixels, for clicks and for drags."""
    world = await browse(context={"viewport_width": 640, "viewport_height": 480})
    told = await refusal(world, ClickAction(point=Point(x=640, y=10)))
    assert "x is beyond the right edge of the page" in told
    assert "640" not in told
    path = (Point(x=1, y=1), Point(x=-1, y=5))
    assert "x is beyond the left edge" in await refusal(world, DragAction(path=path))


async def test_a_target_that_is_not_there_says_how_many_are(browse: Browse) -> None:
    """No match, several matches, a stale ref and a broken selector are told apart."""
    world = await browse("<p>a</p><p>b</p>")
    await world.observe(Look())
    assert "matches nothing" in await refusal(world, ClickAction(selector="#none"))
    assert "matches 2 elements" in await refusal(world, ClickAction(selector="p"))
    assert "Look again" in await refusal(world, ClickAction(ref="e99"))
    assert "not a selector" in await refusal(world, ClickAction(selector="p[["))


@pytest.mark.long
async def test_a_ref_of_a_page_that_is_gone_is_refused(browse: Browse) -> None:
    """After the element was replaced, its ref does not click whatever came instead."""
    world = await browse(
        "<button onclick=\"this.outerHTML='<button id=n>New</button>'\">Old</button>"
    )
    text = (await world.observe(Look())).text or ""
    ref = find_ref(text, 'button "Old"')
    await act(world, ClickAction(ref=ref))
    assert "Look again" in await refusal(world, ClickAction(ref=ref))


async def test_an_unreachable_target_is_refused_within_seconds(browse: Browse) -> None:
    """Covered, disabled and invisible elements are named as such, soon."""
    reasons = {
        "<button id=b>x</button><div style='position:fixed;inset:0' id=veil></div>": "<div#veil>",
        "<button id=b disabled>x</button>": "is disabled",
        "<div aria-disabled=true><button id=b>x</button></div>": "is disabled",
        "<button id=b style='visibility:hidden'>x</button>": "not visible",
    }
    worlds = [(await browse(html), reason) for html, reason in reasons.items()]

    async def try_it(world: BrowserWorld, reason: str) -> None:
        assert reason in await refusal(world, ClickAction(selector="#b"))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for world, reason in worlds:
                group.start_soon(try_it, world, reason)


@pytest.mark.long
async def test_a_target_that_becomes_reachable_is_clicked(browse: Browse) -> None:
    """A veil that goes away after half a second only delays the click."""
    world = await browse(
        LOGGING + "<button id=b>x</button><div style='position:fixed;inset:0' id=veil></div>"
        "<script>setInterval(() => document.getElementById('veil')?.remove(), 600)</script>"
    )
    await act(world, ClickAction(selector="#b"))
    assert [entry[0] for entry in await seen(world, "click")] == ["b"]


@pytest.mark.long
async def test_a_target_covered_in_its_middle_is_clicked_beside_it(browse: Browse) -> None:
    """An element of which only the edge shows is clicked at the edge."""
    world = await browse(
        LOGGING + "<style>body{margin:0} button{position:absolute}</style>"
        "<button id=one style='left:0;top:0;width:100px;height:60px'>ONE</button>"
        "<button id=two style='left:40px;top:10px;width:100px;height:40px'>TWO</button>"
    )
    await act(world, ClickAction(selector="#one"))
    assert [entry[0] for entry in await seen(world, "click")] == ["one"]


@pytest.mark.long
async def test_a_hidden_checkbox_is_clicked_at_its_label(browse: Browse) -> None:
    """Sites hide checkboxes behind styled labels; naming the checkbox is enough."""
    world = await browse(
        "<input type=checkbox id=c style='display:none'><label for=c>Agree</label>"
    )
    await act(world, ClickAction(selector="#c"))
    assert await world.page.is_checked("#c")


async def test_a_target_far_down_is_scrolled_to(browse: Browse) -> None:
    """A click on an element out of view brings it into view first."""
    world = await browse(LOGGING + "<p style='height:4000px'></p><button id=b>x</button>")
    await act(world, ClickAction(selector="#b"))
    assert [entry[0] for entry in await seen(world, "click")] == ["b"]


@pytest.mark.long
async def test_targets_in_frames_and_shadow_roots_are_reached(browse: Browse) -> None:
    """A ref works inside an iframe, and inside a shadow root."""
    world = await browse(
        "<iframe style='margin:30px' srcdoc=\"<button onclick=&quot;this.textContent='in'&quot;>F</button>\">"
        "</iframe><div id=h></div><script>h.attachShadow({mode:'open'}).innerHTML="
        "'<button>S</button>'; h.shadowRoot.firstChild.onclick = e => e.target.textContent='deep'</script>"
    )
    for name in ("F", "S"):
        text = (await world.observe(Look())).text or ""
        ref = find_ref(text, f'button "{name}"')
        await act(world, ClickAction(ref=ref))
    text = (await world.observe(Look())).text or ""
    assert 'button "in"' in text
    assert 'button "deep"' in text

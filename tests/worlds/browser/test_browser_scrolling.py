"""An observation is of a page at rest: a scroll that glides has ended, and others cost nothing."""

# ruff: noqa: E501  # pages are easier to read unbroken

import anyio
import pytest
from acting import Browse, act

from hud_mcp.values.action import (
    Action,
    ClickAction,
    CustomAction,
    Point,
    PressAction,
    ScrollAction,
)

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

TALL = "<style>%s</style><button>go</button><a href=#end>end</a><div style='height:6000px'></div><button id=end>End</button><script>document.querySelector('button').onclick = () => { %s }</script>"
SMOOTH = "html { scroll-behavior: smooth }"
BOX = "<div id=box style='position:fixed;top:90px;width:90px;height:200px;overflow:auto;scroll-behavior:smooth'><p style='height:5000px'>x</div>"
GO, LINK = ClickAction(selector="button >> nth=0"), ClickAction(selector="a")
WHEEL = ScrollAction(point=Point(x=600, y=300), scroll=Point(x=0, y=900))

SCROLLS: dict[str, tuple[str, Action, int]] = {
    "page down": (TALL % ("", ""), PressAction(keys=("pagedown",)), 700),
    "space": (TALL % ("", ""), PressAction(keys=("space",)), 700),
    "end": (TALL % ("", ""), PressAction(keys=("end",)), 5000),
    "wheel": (TALL % (SMOOTH, ""), WHEEL, 900),
    "link": (TALL % (SMOOTH, ""), LINK, 5000),
    "script, smooth": (TALL % ("", "scrollTo({ top: 5000, behavior: 'smooth' })"), GO, 5000),
    "into view": (TALL % ("", "end.scrollIntoView({ behavior: 'smooth' })"), GO, 5000),
    "late": (TALL % ("", "setTimeout(() => end.scrollIntoView({ behavior: 'smooth' }), 150)"), GO, 5000),
    "focus": (TALL % (SMOOTH, "end.focus()"), GO, 5000),
    "step by step": (TALL % ("", "let y = 0; (function f() { scrollTo(0, y += 50); if (y < 3000) requestAnimationFrame(f) })()"), GO, 3000),
    "a box": (BOX + TALL % ("", "box.scrollTop = 3000"), GO, 3000),
    "at once": (TALL % ("", "scrollTo(0, 500)"), GO, 500),
}  # fmt: skip
PLACE = "() => Math.round(scrollY + (window.box ? box.scrollTop : 0))"


@pytest.mark.long
async def test_an_action_that_scrolls_returns_when_the_page_is_at_rest(browse: Browse) -> None:
    """By keys, wheel, links and scripts; a moment later the page is where it was."""
    wrong: list[str] = []
    for name, (html, action, least) in SCROLLS.items():
        world = await browse(html)
        await act(world, PressAction(keys=("shift",)))
        await act(world, action)
        place = await world.page.evaluate(PLACE)
        await anyio.sleep(0.3)
        later = await world.page.evaluate(PLACE)
        if place != later or place < least - 100:
            wrong.append(f"{name}: {place}, then {later}")
        await world.close()
    assert wrong == []


@pytest.mark.long
async def test_pages_that_do_not_scroll_or_never_stop_are_not_waited_for(browse: Browse) -> None:
    """A key in a field, a click on a still page, and one on a page that scrolls for ever."""
    endless = "setInterval(() => window.scrollBy(0, 1), 10)"
    for html, action in (
        ("<button>go</button>", GO),
        ("<input autofocus>" + TALL % ("", ""), PressAction(keys=("end",))),
        (TALL % ("", "") + f"<script>{endless}</script>", ClickAction(point=Point(x=600, y=300))),
    ):
        world = await browse(html)
        await act(world, CustomAction(action="reload"), action)
        began = anyio.current_time()
        await act(world, action)
        assert anyio.current_time() - began < 1, html
        await world.close()

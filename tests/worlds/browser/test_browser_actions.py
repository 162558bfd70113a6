"""Actions of the browser world: clicks, scrolls, drags, and its own actions."""

# ruff: noqa: E501  # pages are easier to read unbroken

from typing import Any

import anyio
import pytest
from acting import LOGGING, Browse, act, refusal, seen

from hud_mcp.values.action import (
    ClickAction,
    CustomAction,
    DragAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def test_a_click_reaches_its_target_by_point_ref_and_selector(browse: Browse) -> None:
    """All three ways of naming a target end in a real click on it."""
    world = await browse(LOGGING + "<button id=b style='margin:50px'>Buy</button>")
    text = (await world.observe(Look())).text or ""
    ref = find_ref(text, 'button "Buy"')
    await act(
        world,
        ClickAction(point=Point(x=75, y=65)),
        ClickAction(ref=ref),
        ClickAction(selector="#b"),
    )
    assert [entry[0] for entry in await seen(world, "click")] == ["b", "b", "b"]


@pytest.mark.long
async def test_the_record_learns_where_a_named_target_was(browse: Browse) -> None:
    """In CSS pixels, and only where the picture before could show it."""
    world = await browse(
        "<input id=i style='position:absolute; left:100px; top:40px; width:80px; height:20px; "
        "margin:0; border:0; padding:0'><button id=far style='margin-top:3000px'>Far</button>"
    )
    middle = Point(x=140, y=50)
    assert (await world.act(ClickAction(selector="#i"))).place == middle
    assert (await world.act(TypeAction(selector="#i", text="tea"))).place == middle
    assert (await world.act(ClickAction(point=middle))).place is None, "the agent named it itself"
    assert (await world.act(ClickAction(selector="#far"))).place is None, "it was out of view"
    assert (await world.act(PressAction(keys=("tab",)))).place is None


async def test_a_pattern_makes_double_and_triple_clicks(browse: Browse) -> None:
    """[100] produces a dblclick event, [100, 100] a click whose detail is 3."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", pattern=(100,)))
    assert [entry[1] for entry in await seen(world, "click")] == [1, 2]
    assert len(await seen(world, "dblclick")) == 1
    await act(world, ClickAction(selector="#p", pattern=(100, 100)))
    assert (await seen(world, "click"))[-1][1] == 3


@pytest.mark.long
async def test_clicks_far_apart_are_single_clicks(browse: Browse) -> None:
    """A pause of more than half a second makes no double click."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", pattern=(520,)))
    assert await seen(world, "dblclick") == []


@pytest.mark.long
async def test_other_buttons_are_themselves(browse: Browse) -> None:
    """The right button opens a context menu, the middle one is an auxclick."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", button="right"))
    await act(world, ClickAction(selector="#p", button="middle"))
    assert len(await seen(world, "contextmenu")) == 1
    assert len(await seen(world, "auxclick")) == 2


@pytest.mark.long
async def test_held_keys_go_with_the_click_only(browse: Browse) -> None:
    """`hold_keys` are down during the click and up after it."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", hold_keys=("shift", "ctrl")))
    await act(world, ClickAction(selector="#p"))
    clicks = await seen(world, "click")
    assert clicks[0][2:] == [True, True]
    assert clicks[1][2:] == [False, False]


@pytest.mark.long
async def test_a_cancelled_click_lets_its_keys_go(browse: Browse) -> None:
    """Cancelling between two clicks releases what was held, and the world goes on."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    with anyio.move_on_after(0.5):
        await world.act(ClickAction(selector="#p", pattern=(4000,), hold_keys=("ctrl",)))
    await act(world, ClickAction(selector="#p"))
    assert (await seen(world, "click"))[-1][2:] == [False, False]
    assert len(await seen(world, "mousedown")) == len(await seen(world, "mouseup"))


async def test_scrolling_moves_the_page_or_what_is_under_the_target(browse: Browse) -> None:
    """The wheel turns by CSS pixels, at a target or where the pointer is."""
    world = await browse(
        "<div id=d style='height:100px;overflow:auto'><p style='height:900px'>in</p></div>"
        "<p style='height:3000px'>out</p>"
    )
    await act(world, ScrollAction(selector="#d", scroll=Point(x=0, y=120)))
    assert await world.page.evaluate("() => [d.scrollTop, scrollY]") == [120, 0]
    await act(world, ScrollAction(point=Point(x=500, y=500), scroll=Point(x=0, y=300)))
    assert await world.page.evaluate("() => [d.scrollTop, scrollY]") == [120, 300]
    await act(world, ScrollAction(scroll=Point(x=0, y=-100)))
    assert await world.page.evaluate("() => scrollY") == 200


@pytest.mark.long
async def test_moving_hovers_and_the_pointer_knows_where_it_is(browse: Browse) -> None:
    """A move opens what hovering opens; an offset starts from the last place."""
    world = await browse(
        "<style>#m{display:none} #h:hover #m{display:block}</style>"
        "<div id=h style='width:100px;height:40px'>menu<b id=m>open</b></div>"
    )
    await act(world, MoveAction(selector="#h"))
    assert await world.page.is_visible("#m")
    await act(world, MoveAction(point=Point(x=300, y=200)), MoveAction(offset=Point(x=-5, y=10)))
    effect = await world.act(PositionFetch())
    assert effect.text == "The pointer is at (295, 210)."
    assert effect.info == {"point": {"x": 295, "y": 210}}


async def test_dragging_moves_native_and_scripted_things(browse: Browse) -> None:
    """A slider follows the path, and an HTML drop target receives the drop."""
    world = await browse(
        "<input id=r type=range min=0 max=100 value=0 style='width:200px;display:block;margin:0'>"
        "<div id=a draggable=true style='width:80px;height:40px;background:red'>drag</div>"
        "<div id=b style='width:80px;height:40px;background:blue' ondragover='event.preventDefault()'"
        " ondrop=\"this.textContent='dropped'\">here</div><style>body{margin:0}</style>"
    )
    await act(world, DragAction(path=(Point(x=8, y=8), Point(x=60, y=8), Point(x=100, y=8))))
    assert 40 <= int(await world.page.input_value("#r")) <= 60
    boxes = [await world.page.locator(s).bounding_box() for s in ("#a", "#b")]
    middles = [Point(x=b["x"] + 20, y=b["y"] + 20) for b in boxes if b]
    await act(world, DragAction(path=tuple(middles), pattern=(20,)))
    assert await world.page.inner_text("#b") == "dropped"


@pytest.mark.long
async def test_waiting_and_looking_do_nothing_to_the_page(browse: Browse) -> None:
    """`wait` lets time pass, `screenshot` not even that."""
    world = await browse(LOGGING)
    began = anyio.current_time()
    await act(world, WaitAction(time=80), ScreenshotFetch())
    assert 0.07 < anyio.current_time() - began < 1
    assert [await seen(world, kind) for kind in ("click", "keydown", "wheel")] == [[], [], []]


async def test_history_goes_back_and_forth_by_button_and_by_name(browse: Browse) -> None:
    """The mouse's back button and the custom actions travel; the ends say so."""
    world = await browse({"index.html": "<h1>One</h1>", "two.html": "<h1>Two</h1>"})
    await act(world, CustomAction(action="goto", args={"url": "/two.html"}))
    await act(world, ClickAction(point=Point(x=1, y=1), button="back"))
    assert "One" in await world.text()
    assert "no earlier page" in await refusal(world, CustomAction(action="back"))
    await act(world, CustomAction(action="forward"))
    assert "Two" in await world.text()
    assert "no later page" in await refusal(world, CustomAction(action="forward"))


async def test_a_new_tab_is_shown_and_tabs_can_be_switched_and_closed(browse: Browse) -> None:
    """What a link opens is where the session goes on, and the text counts the tabs."""
    world = await browse(
        {"index.html": "<a href=/two.html target=_blank>go</a>", "two.html": "<h1>Two</h1>"}
    )
    await act(world, ClickAction(selector="a"))
    text = (await world.observe(Look())).text or ""
    assert "Two" in text
    assert "2 (shown)" in text
    await act(world, CustomAction(action="switch_tab", args={"index": 1}))
    assert world.url.endswith("site.localhost/")
    assert "There are 2" in await refusal(
        world, CustomAction(action="switch_tab", args={"index": 3})
    )
    await act(world, CustomAction(action="close_tab"))
    assert world.url.endswith("/two.html")
    await act(world, CustomAction(action="close_tab"))
    assert "an empty one was opened" in ((await world.observe(Look())).text or "")


async def test_options_are_selected_by_label_or_value(browse: Browse) -> None:
    """`select_option` sets a <select>; a wrong value lists the right ones."""
    world = await browse(
        "<select id=s><option value=1>One<option value=2>Two</select><p id=p>x</p>"
    )
    select = {"selector": "#s"}
    await act(world, CustomAction(action="select_option", args={**select, "values": ["Two"]}))
    assert await world.page.input_value("#s") == "2"
    wrong = CustomAction(action="select_option", args={**select, "values": ["Three"]})
    assert "['One', 'Two']" in await refusal(world, wrong)
    other = CustomAction(action="select_option", args={"selector": "#p", "values": "x"})
    assert "no <select>" in await refusal(world, other)


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("gto", {}, "Did you mean 'goto'?"),
    ("goto", {"link": "/"}, "there is no argument 'link'. It takes: url"),
    ("goto", {}, "argument 'url' is required"),
    ("goto", {}, "used as goto {url}"),
    ("goto", {"url": 7}, "url: expected a string such as '7', got 7"),
    ("answer_dialogs", {"accept": "no"}, "accept: expected true or false, got 'no'"),
    ("switch_tab", {"index": True}, "index: expected a whole number"),
    ("select_option", {"selector": "#s"}, "used as select_option {values, ref?, selector?}"),
    ("select_option", {"values": True, "selector": "#s"}, "values: expected a list"),
    ("back", {"steps": 2}, "there is no argument 'steps'"),
)


@pytest.mark.long
async def test_custom_actions_say_how_they_are_used(browse: Browse) -> None:
    """A wrong name, and an argument that is unknown, missing or of the wrong kind, is named."""
    world = await browse()
    for name, args, told in WRONG:
        assert told in await refusal(world, CustomAction(action=name, args=args)), (name, args)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "chrome://version", "view-source:http://site.localhost/", "data:text/html,x",
     "javascript:alert(1)", "http://127.0.0.1:22/", "https://example.com/", "", "about:blank"],
)  # fmt: skip
async def test_addresses_outside_of_the_site_are_refused(browse: Browse, url: str) -> None:
    """The agent reaches the task's own site, and what the allow-list names, only."""
    world = await browse()
    await refusal(world, CustomAction(action="goto", args={"url": url}))
    assert world.url == "http://site.localhost/"


async def test_dialogs_are_answered_and_told(browse: Browse) -> None:
    """Dialogs never block; the next text says what was asked and what was answered."""
    world = await browse(
        "<button onclick=\"alert('Saved')\">a</button><button onclick=\"r.textContent=confirm('Sure?')\">c"
        "</button><button onclick=\"r.textContent=prompt('Name?','Bo')\">p</button><p id=r></p>"
    )
    for name in "acp":
        await act(world, ClickAction(selector=f"text={name} >> nth=0"))
    await act(world, ClickAction(selector="button:text-is('a')"))
    assert "'Saved' (alert)" in ((await world.observe(Look())).text or "")
    await act(world, ClickAction(selector="button:text-is('c')"))
    text = (await world.observe(Look())).text or ""
    assert "'Sure?' (confirm); it was answered OK" in text
    assert "Saved" not in text
    answer = CustomAction(action="answer_dialogs", args={"accept": False})
    await act(world, answer, ClickAction(selector="button:text-is('c')"))
    assert await world.page.inner_text("#r") == "false"

"""Every action on real pages: what the page notices of it."""

# ruff: noqa: E501  # pages are easier to read unbroken

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from hud_mcp.action import (
    Action,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)
from hud_mcp.errors import ActionFailed
from hud_mcp.observation import Look
from hud_mcp.worlds.browser import BrowserWorld
from hud_mcp.worlds.browser.keys import playwright_keys

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

LOGGING = """<script>
  window.seen = [];
  for (const kind of ['click', 'dblclick', 'auxclick', 'contextmenu', 'keydown', 'keyup',
                      'mousedown', 'mouseup', 'input', 'wheel', 'mousemove']) {
    addEventListener(kind, e => seen.push([kind, e.target.id || e.target.tagName,
      e.key || e.detail || 0, e.shiftKey || false, e.ctrlKey || false]), true);
  }
</script>"""

CLA_KEYS = """
backspace tab enter shift shiftleft shiftright ctrl ctrlleft ctrlright alt altleft altright
pause capslock esc escape space pageup pagedown end home left up right down select print
execute printscreen prtsc insert delete help sleep numlock scrolllock clear separator
modechange apps browserback browserfavorites browserforward browserhome browserrefresh
browsersearch browserstop launchapp1 launchapp2 launchmail launchmediaselect playpause
start stop prevtrack nexttrack volumemute volumeup volumedown zoom win winleft winright
command option optionleft optionright fn multiply add subtract decimal divide hanguel
hangul hanja kana kanji junja convert nonconvert yen
""".split()  # noqa: SIM905  # a hundred names read better so


async def seen(world: BrowserWorld, kind: str) -> list[list[Any]]:
    """What the page noticed of one kind of event: target, key or count, shift, ctrl."""
    found: list[list[Any]] = await world.page.evaluate("() => window.seen")
    return [entry[1:] for entry in found if entry[0] == kind]


async def act(world: BrowserWorld, *actions: Action) -> None:
    """Perform actions, each within a bound."""
    for action in actions:
        with anyio.fail_after(15):
            await world.act(action)


async def refusal(world: BrowserWorld, action: Action) -> str:
    """Perform an action that must be refused, and return why."""
    with anyio.fail_after(15), pytest.raises(ActionFailed) as caught:
        await world.act(action)
    return str(caught.value)


async def test_a_click_reaches_its_target_by_point_ref_and_selector(browse: Browse) -> None:
    """All three ways of naming a target end in a real click on it."""
    world = await browse(LOGGING + "<button id=b style='margin:50px'>Buy</button>")
    text = (await world.observe(Look())).text or ""
    ref = text.partition('button "Buy" [ref=')[2].partition("]")[0]
    await act(
        world,
        ClickAction(point=Point(x=75, y=65)),
        ClickAction(ref=ref),
        ClickAction(selector="#b"),
    )
    assert [entry[0] for entry in await seen(world, "click")] == ["b", "b", "b"]


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


async def test_clicks_far_apart_are_single_clicks(browse: Browse) -> None:
    """A pause of more than half a second makes no double click."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", pattern=(520,)))
    assert await seen(world, "dblclick") == []


async def test_other_buttons_are_themselves(browse: Browse) -> None:
    """The right button opens a context menu, the middle one is an auxclick."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", button="right"))
    await act(world, ClickAction(selector="#p", button="middle"))
    assert len(await seen(world, "contextmenu")) == 1
    assert len(await seen(world, "auxclick")) == 2


async def test_held_keys_go_with_the_click_only(browse: Browse) -> None:
    """`hold_keys` are down during the click and up after it."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    await act(world, ClickAction(selector="#p", hold_keys=("shift", "ctrl")))
    await act(world, ClickAction(selector="#p"))
    clicks = await seen(world, "click")
    assert clicks[0][2:] == [True, True]
    assert clicks[1][2:] == [False, False]


async def test_a_cancelled_click_lets_its_keys_go(browse: Browse) -> None:
    """Cancelling between two clicks releases what was held, and the world goes on."""
    world = await browse(LOGGING + "<p id=p>word</p>")
    with anyio.move_on_after(0.5):
        await world.act(ClickAction(selector="#p", pattern=(4000,), hold_keys=("ctrl",)))
    await act(world, ClickAction(selector="#p"))
    assert (await seen(world, "click"))[-1][2:] == [False, False]
    assert len(await seen(world, "mousedown")) == len(await seen(world, "mouseup"))


async def test_a_chord_goes_down_in_order_and_up_in_reverse(browse: Browse) -> None:
    """ctrl, shift, k: three keys down, then up the other way round."""
    world = await browse(LOGGING + "<p>x</p>")
    await act(world, PressAction(keys=("ctrl", "shift", "k")))
    assert [entry[1] for entry in await seen(world, "keydown")] == ["Control", "Shift", "K"]
    assert [entry[1] for entry in await seen(world, "keyup")] == ["K", "Shift", "Control"]


async def test_a_key_stays_down_until_it_is_let_go(browse: Browse) -> None:
    """`keydown` holds across actions, `keyup` ends it."""
    world = await browse(LOGGING + "<p id=p>x</p>")
    await act(world, KeyDownAction(keys=("shift",)), ClickAction(selector="#p"))
    await act(world, KeyUpAction(keys=("shift",)), ClickAction(selector="#p"))
    assert [entry[2] for entry in await seen(world, "click")] == [True, False]


@pytest.mark.parametrize("name", [*CLA_KEYS, "num7", "f12", "f24", "a", "+", "é", "ArrowDown"])
def test_every_key_of_the_common_language_is_known(name: str) -> None:
    """Each of the HUD SDK's key names is one of Playwright's or the UI Events specification's."""
    if name == "start":
        with pytest.raises(ActionFailed):
            playwright_keys([name])
    else:
        assert playwright_keys([name])


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["ctrl+a"], ["Control", "a"]),
        (["ctrl++"], ["Control", "+"]),
        (["+"], ["+"]),
        (["ctrl + shift+k"], ["Control", "Shift", "K"]),
        (["ctrl", "+"], ["Control", "+"]),
    ],
)
def test_a_chord_may_be_written_with_plus_signs(names: list[str], keys: list[str]) -> None:
    """A plus sign joins keys, except where it is the key."""
    assert playwright_keys(names) == keys


async def test_a_chord_with_a_plus_sign_is_pressed_held_and_let_go(browse: Browse) -> None:
    """`keydown`, `keyup`, `press` and `hold_keys` read it alike."""
    world = await browse(LOGGING + "<p id=p>x</p>")
    await act(world, KeyDownAction(keys=("ctrl+shift",)), ClickAction(selector="#p"))
    await act(world, KeyUpAction(keys=("ctrl+shift",)), ClickAction(selector="#p"))
    await act(world, ClickAction(selector="#p", hold_keys=("ctrl+shift",)))
    held = [entry[2:] for entry in await seen(world, "click")]
    assert held == [[True, True], [False, False], [True, True]]
    await act(world, PressAction(keys=("ctrl+k",)))
    assert (await seen(world, "keydown"))[-1][1:] == ["k", False, True]


async def test_keys_outside_of_a_us_keyboard_arrive_too(browse: Browse) -> None:
    """F13 is a key event, and é a character."""
    world = await browse(LOGGING + "<input id=i autofocus>")
    await act(
        world, ClickAction(selector="#i"), PressAction(keys=("f13",)), PressAction(keys=("é",))
    )
    assert ["i", "F13", False, False] in await seen(world, "keydown")
    assert await world.page.input_value("#i") == "é"


async def test_an_unknown_key_gets_the_closest_name(browse: Browse) -> None:
    """A misspelt key is refused with what was probably meant, and nothing is pressed."""
    world = await browse(LOGGING)
    assert "Did you mean 'pagedown'?" in await refusal(world, PressAction(keys=("ctrl", "pagedwn")))
    assert await seen(world, "keydown") == []


async def test_typing_into_a_field_replaces_what_it_held(browse: Browse) -> None:
    """With a target, the text takes the place of the old one, however the target is named."""
    world = await browse(
        LOGGING + "<input id=i value=old style='width:200px'><div id=e contenteditable>x</div>"
    )
    await act(world, TypeAction(selector="#i", text="new"))
    assert await world.page.input_value("#i") == "new"
    await act(world, TypeAction(point=Point(x=50, y=20), text="newer"))
    assert await world.page.input_value("#i") == "newer"
    await act(world, TypeAction(selector="#e", text="words"))
    assert await world.page.inner_text("#e") == "words"


async def test_a_line_typed_into_a_field_comes_by_keys(browse: Browse) -> None:
    """A page hears a key for each character, whatever the field held, and may react to each."""
    world = await browse(
        LOGGING + "<input id=i value=old><div id=e contenteditable>x</div><input id=n type=number>"
        "<textarea id=t>was</textarea>"
    )
    for target, text in (("#i", "Ann é"), ("#e", "rich"), ("#n", "-2.5"), ("#t", "one line")):
        before = len(await seen(world, "keydown"))
        await act(world, TypeAction(selector=target, text=text))
        keys = [entry[1] for entry in (await seen(world, "keydown"))[before:]]
        assert keys == [c for c in text if c.isascii()]
        held = await world.page.locator(target).evaluate("e => e.value ?? e.textContent")
        assert held == text


async def test_a_code_is_typed_on_into_the_next_fields(browse: Browse) -> None:
    """Where a page moves the focus at each key, the characters follow it, as from a person."""
    world = await browse(
        "<input maxlength=1><input maxlength=1><input maxlength=1><script>"
        "addEventListener('keyup', e => e.target.nextElementSibling?.focus?.())</script>"
    )
    await act(world, TypeAction(selector="input >> nth=0", text="123"))
    held = await world.page.locator("input").evaluate_all("all => all.map(e => e.value)")
    assert held == ["1", "2", "3"]


async def test_lines_and_long_texts_are_put_in_at_once(browse: Browse) -> None:
    """A chat that sends at Enter gets both lines, and 2,000 characters take under a second."""
    world = await browse(
        LOGGING + "<textarea id=t onkeydown=\"if (event.key === 'Enter') o.textContent = 'sent'\">"
        "</textarea><p id=o></p>"
    )
    await act(world, TypeAction(selector="#t", text="two\nlines"))
    assert await world.page.input_value("#t") == "two\nlines"
    assert await world.page.inner_text("#o") == ""
    with anyio.fail_after(1):
        await world.act(TypeAction(selector="#t", text="x" * 2000))
    assert await world.page.input_value("#t") == "x" * 2000
    await act(world, TypeAction(selector="#t", text="", enter_after=True))
    assert await world.page.inner_text("#o") == "sent"


async def test_typing_without_a_target_goes_where_the_focus_is(browse: Browse) -> None:
    """Key events for a short text, one insertion for a long one; Enter submits."""
    world = await browse(
        LOGGING + "<form onsubmit='event.preventDefault(); done.textContent=i.value.length'>"
        "<input id=i></form><p id=done></p>"
    )
    await act(world, ClickAction(selector="#i"), TypeAction(text="abc"))
    assert len(await seen(world, "keydown")) == 3
    await act(world, TypeAction(text="x" * 2000, enter_after=True))
    assert await world.page.inner_text("#done") == "2003"


@pytest.mark.long
async def test_typing_where_it_makes_no_sense_says_what_would(browse: Browse) -> None:
    """A date in words, a checkbox and a disabled field are refused with the reason."""
    world = await browse(
        "<input id=d type=date><input id=c type=checkbox><input id=x disabled>"
        "<select id=s><option>a</select><input id=n type=number><input id=o readonly>"
    )
    assert "Write a number" in await refusal(world, TypeAction(selector="#n", text="seven"))
    assert "not editable" in await refusal(world, TypeAction(selector="#o", text="a"))
    assert "2026-01-31" in await refusal(world, TypeAction(selector="#d", text="tomorrow"))
    assert "Click it instead" in await refusal(world, TypeAction(selector="#c", text="yes"))
    assert "select_option" in await refusal(world, TypeAction(selector="#s", text="a"))
    assert "not enabled" in await refusal(world, TypeAction(selector="#x", text="a"))


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


async def test_waiting_and_looking_do_nothing_to_the_page(browse: Browse) -> None:
    """`wait` lets time pass, `screenshot` not even that."""
    world = await browse(LOGGING)
    began = anyio.current_time()
    await act(world, WaitAction(time=80), ScreenshotFetch())
    assert 0.07 < anyio.current_time() - began < 1
    assert [await seen(world, kind) for kind in ("click", "keydown", "wheel")] == [[], [], []]


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


async def test_a_ref_of_a_page_that_is_gone_is_refused(browse: Browse) -> None:
    """After the element was replaced, its ref does not click whatever came instead."""
    world = await browse(
        "<button onclick=\"this.outerHTML='<button id=n>New</button>'\">Old</button>"
    )
    text = (await world.observe(Look())).text or ""
    ref = text.partition('button "Old" [ref=')[2].partition("]")[0]
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

    with anyio.fail_after(4):
        async with anyio.create_task_group() as group:
            for world, reason in worlds:
                group.start_soon(try_it, world, reason)


async def test_a_target_that_becomes_reachable_is_clicked(browse: Browse) -> None:
    """A veil that goes away after half a second only delays the click."""
    world = await browse(
        LOGGING + "<button id=b>x</button><div style='position:fixed;inset:0' id=veil></div>"
        "<script>setInterval(() => document.getElementById('veil')?.remove(), 600)</script>"
    )
    await act(world, ClickAction(selector="#b"))
    assert [entry[0] for entry in await seen(world, "click")] == ["b"]


async def test_a_target_covered_in_its_middle_is_clicked_beside_it(browse: Browse) -> None:
    """An element of which only the edge shows is clicked at the edge."""
    world = await browse(
        LOGGING + "<style>body{margin:0} button{position:absolute}</style>"
        "<button id=one style='left:0;top:0;width:100px;height:60px'>ONE</button>"
        "<button id=two style='left:40px;top:10px;width:100px;height:40px'>TWO</button>"
    )
    await act(world, ClickAction(selector="#one"))
    assert [entry[0] for entry in await seen(world, "click")] == ["one"]


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


async def test_targets_in_frames_and_shadow_roots_are_reached(browse: Browse) -> None:
    """A ref works inside an iframe, and inside a shadow root."""
    world = await browse(
        "<iframe style='margin:30px' srcdoc=\"<button onclick=&quot;this.textContent='in'&quot;>F</button>\">"
        "</iframe><div id=h></div><script>h.attachShadow({mode:'open'}).innerHTML="
        "'<button>S</button>'; h.shadowRoot.firstChild.onclick = e => e.target.textContent='deep'</script>"
    )
    for name in ("F", "S"):
        text = (await world.observe(Look())).text or ""
        ref = text.partition(f'button "{name}" [ref=')[2].partition("]")[0]
        await act(world, ClickAction(ref=ref))
    text = (await world.observe(Look())).text or ""
    assert 'button "in"' in text
    assert 'button "deep"' in text


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


async def test_custom_actions_say_how_they_are_used(browse: Browse) -> None:
    """An unknown name, an unknown argument and a missing one are each refused by name."""
    world = await browse()
    assert "Did you mean 'goto'?" in await refusal(world, CustomAction(action="gto"))
    wrong = CustomAction(action="goto", args={"link": "/"})
    assert "takes no 'link'" in await refusal(world, wrong)
    assert "goto {url}" in await refusal(world, CustomAction(action="goto"))


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

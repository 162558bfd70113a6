"""Snapshots of a page: its fields, scrolls, frames, tabs and refs."""

# ruff: noqa: E501  # pages are easier to read unbroken

import re

import pytest
from snapshots import FORM, Make, act, go, read, restore, snapshot

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import (
    ClickAction,
    CustomAction,
    KeyDownAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ScrollAction,
    TypeAction,
)
from hud_mcp.values.refs import find_ref, refs_in

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

HELD = """() => [n.value, p.value, d.value, r.value, t.value, c.checked, k.checked, two.checked, s.value,
  [...m.selectedOptions].map(x => x.text), e.innerHTML, h.shadowRoot.querySelector('input').value]"""


async def test_a_half_filled_form_comes_back(make: Make) -> None:
    """Text, passwords, dates, choices, checks and editable text, also inside a shadow root."""
    world = await make(FORM)
    await act(
        world,
        TypeAction(selector="#p", text="secret"),
        TypeAction(selector="#d", text="2026-01-31"),
        TypeAction(selector="#r", text="70"),
        TypeAction(selector="#t", text="two\nlines"),
        ClickAction(selector="#c"),
        ClickAction(selector="#k"),
        ClickAction(selector="#two"),
        CustomAction(action="select_option", args={"selector": "#s", "values": ["Two"]}),
        CustomAction(action="select_option", args={"selector": "#m", "values": ["A", "C"]}),
        TypeAction(selector="#e", text="words"),
        TypeAction(selector="#h input", text="shadow"),
        TypeAction(selector="#n", text="Ann"),
    )
    before = await read(world)
    other = await restore(await make(), await snapshot(world))
    assert await other.page.evaluate(HELD) == await world.page.evaluate(HELD)
    assert await read(other) == before
    assert "Hello Ann" in before
    assert "Nothing changed" in await read(other, changes=True)


@pytest.mark.long
async def test_typing_goes_on_at_the_caret_and_leaving_is_a_change(make: Make) -> None:
    """The field that was left with the focus is still being edited, as far as the page can tell."""
    world = await make(FORM)
    await act(world, TypeAction(selector="#n", text="Anna"), PressAction(keys=("left",)))
    other = await restore(await make(), await snapshot(world))
    assert "change n" not in await other.page.evaluate("told")
    for each in (world, other):
        await act(each, TypeAction(text="i"), PressAction(keys=("tab",)))
        assert await each.page.evaluate("n.value") == "Annia"
        assert (await each.page.evaluate("told"))[-1] == "change n"


@pytest.mark.long
async def test_a_form_that_is_built_in_steps_is_filled_in_steps(make: Make) -> None:
    """A field that appears once another one is filled is found by its id."""
    world = await make(
        "<div id=f><input type=checkbox id=c></div><script>c.onchange = () => setTimeout(() =>"
        " f.insertAdjacentHTML('afterbegin', '<input id=why>'), 50)</script>"
    )
    await act(world, ClickAction(selector="#c"), TypeAction(selector="#why", text="because"))
    other = await restore(await make(), await snapshot(world))
    assert await other.page.evaluate("[c.checked, why.value]") == [True, "because"]


@pytest.mark.long
async def test_pages_and_lists_are_scrolled_to_where_they_were(make: Make) -> None:
    """The page, a list in it, and a list inside a shadow root; a list left at its top is there."""
    rows = "".join(f"<p>Row {i}</p>" for i in range(60))
    world = await make(
        f"<div id=d style='height:90px;overflow:auto'>{rows}</div><div id=h></div>{rows * 3}"
        "<script>h.attachShadow({mode:'open'}).innerHTML = `<div style='height:50px;overflow:auto'>"
        "<p style='height:700px'></div>`; d.scrollTop = 70</script>"
    )
    await act(
        world,
        ScrollAction(selector="#h div", scroll=Point(x=0, y=130)),
        ScrollAction(selector="#d", scroll=Point(x=0, y=-300)),
        ScrollAction(point=Point(x=700, y=700), scroll=Point(x=0, y=500)),
    )
    places = "() => [scrollY, d.scrollTop, h.shadowRoot.firstChild.scrollTop]"
    other = await restore(await make(), await snapshot(world))
    assert await other.page.evaluate(places) == [500, 0, 130]
    assert "Scrolled: 500 of" in await read(other)


@pytest.mark.long
async def test_frames_come_back_with_their_address_and_their_fields(make: Make) -> None:
    """A frame that was led elsewhere, one written by `srcdoc`, and one in a frame."""
    world = await make(
        {
            "index.html": "<h1>Outer</h1><iframe src=/a.html></iframe><iframe srcdoc='<input id=q>'></iframe>",
            "a.html": "<a href=/b.html>on</a>",
            "b.html": "<h1>Inner</h1><input id=q><iframe src=/c.html></iframe>",
            "c.html": "<input id=q>",
        }
    )
    ref = find_ref(await read(world), 'link "on"')
    await act(world, ClickAction(ref=ref))
    for frame in world.page.frames[1:]:
        await frame.locator("#q").fill(f"in {frame.url}")
    before = await read(world)
    other = await restore(await make(), await snapshot(world))
    assert await read(other) == before
    assert before.count("in http://site.localhost/") == 2
    assert "in about:srcdoc" in before
    ref = refs_in((await read(other)).rpartition("in about:srcdoc")[0])[-1]
    await act(other, TypeAction(ref=ref, text="new"))
    assert await other.page.frames[2].locator("#q").input_value() == "new" or (
        await other.page.frames[-1].locator("#q").input_value() == "new"
    )


async def test_tabs_come_back_in_order_with_their_histories(make: Make) -> None:
    """A popup and its opener: addresses, which is shown, ways back and forward, each its session."""
    pages = {f"{n}.html": f"<h1>Page {n}</h1><input id=i>" for n in "abcd"}
    world = await make({**pages, "index.html": "<a href=/a.html target=_blank>pop</a>"})
    await act(world, go("/b.html"), go("/c.html?x=1#part"), go("/d.html"))
    await act(world, CustomAction(action="back"), TypeAction(selector="#i", text="typed"))
    await world.page.evaluate("sessionStorage.tab = 'first'")
    await act(world, CustomAction(action="back"), CustomAction(action="back"))
    await act(world, ClickAction(selector="a"), go("/b.html"))
    await world.page.evaluate("sessionStorage.tab = 'second'")
    await act(world, TypeAction(selector="#i", text="kept"))
    before = await read(world)
    other = await restore(await make(), await snapshot(world))
    assert await read(other) == before
    assert "Tabs: 1 http://site.localhost/ | 2 (shown) http://site.localhost/b.html" in before
    assert await other.page.evaluate("[sessionStorage.tab, i.value]") == ["second", "kept"]
    await act(other, CustomAction(action="back"))
    assert "Page a" in await other.text()
    await act(other, CustomAction(action="switch_tab", args={"index": 1}))
    assert await other.page.evaluate("sessionStorage.tab") == "first"
    for address in ("/b.html", "/c.html?x=1#part", "/d.html"):
        await act(other, CustomAction(action="forward"))
        assert other.url == world.site_url + address
        assert f"Page {address[1]}" in await other.text()
    with pytest.raises(ActionFailed, match="no later page"):
        await other.act(CustomAction(action="forward"))


@pytest.mark.long
async def test_a_window_that_was_closed_stays_closed(make: Make) -> None:
    """A page that closed itself, and then the last one; the agent is told as it would have been."""
    world = await make(
        {
            "index.html": "<button onclick='window.open(\"/p.html\")'>pop</button>",
            "p.html": "<h1>P</h1>",
        }
    )
    await act(world, ClickAction(selector="button"))
    await act(world, CustomAction(action="close_tab"))
    assert (await restore(await make(), await snapshot(world))).url == "http://site.localhost/"
    await world.page.close()
    other = await restore(await make(), await snapshot(world))
    assert "an empty one was opened" in await read(other)


@pytest.mark.long
async def test_dialogs_notes_pointer_and_held_keys_come_back(make: Make) -> None:
    """What was said is told once more only where it was not read; Shift is still down."""
    world = await make(
        "<button id=a onclick=\"alert('one')\">a</button><button id=b onclick='o.textContent=confirm(`two`)'>"
        "b</button><p id=o></p><p id=k onclick='o.textContent=event.shiftKey'>here</p><script>alert('hello')</script>"
    )
    assert "hello" in await read(world)
    await act(
        world,
        CustomAction(action="answer_dialogs", args={"accept": False}),
        ClickAction(selector="#b"),
        KeyDownAction(keys=("shift",)),
        MoveAction(point=Point(x=30, y=40)),
        ClickAction(selector="#a"),
    )
    other = await restore(await make(), await snapshot(world))
    text = await read(other)
    assert "'one' (alert)" in text
    assert "hello" not in text
    assert (await other.act(PositionFetch())).info == (await world.act(PositionFetch())).info
    await act(other, ClickAction(selector="#k"))
    assert await other.page.inner_text("#o") == "true"
    await act(other, ClickAction(selector="#b"))
    assert await other.page.inner_text("#o") == "false"


ROWS = "<ul id=u></ul><button onclick='add()'>More</button><script>let n = 0; const add = () => { const li = document.createElement('li');\
 li.innerHTML = `<b>${names[n]}</b> <button onclick='this.textContent=\"gone\"'>Delete</button> <button onclick='this.textContent=\"opened\"'>Open ${names[n++]}</button>`;\
 u.append(li); }; const names = JSON.parse(localStorage.names || '[\"Ann\",\"Bob\",\"Cy\"]'); add(); add()</script>"


@pytest.mark.long
async def test_refs_of_the_last_text_still_name_their_elements(make: Make) -> None:
    """Also on the second document, after earlier elements were numbered; new ones get new refs."""
    world = await make(ROWS)
    await read(world)
    await act(world, CustomAction(action="reload"))
    before = await read(world)
    other = await restore(await make(), await snapshot(world))
    for each in (world, other):
        ref = find_ref(before, 'button "Open Bob"')
        await act(each, ClickAction(ref=ref), ClickAction(selector="text=More"))
    after = await read(other, changes=True)
    assert after == await read(world, changes=True)
    assert 'button "opened"' in after
    assert 'button "Open Cy"' in after


@pytest.mark.long
async def test_refs_of_a_page_that_reads_otherwise_are_refused(make: Make) -> None:
    """Where Ann was is Zoe now: no old ref is hers, and every one of the new text is new."""
    world = await make(ROWS)
    before = await read(world)
    changed = await make(ROWS.replace("Ann", "Zoe"))
    await restore(changed, await snapshot(world))
    old = set(refs_in(before))
    for ref in old:
        with pytest.raises(ActionFailed, match="Look again"):
            await changed.act(ClickAction(ref=ref))
    after = await read(changed, changes=True)
    assert "Zoe" in after
    assert not old & set(refs_in(after))
    opened = find_ref(after, 'button "Open Bob"')
    await act(changed, ClickAction(ref=opened))
    assert 'button "opened"' in await read(changed, changes=True)


@pytest.mark.long
async def test_refs_of_a_long_page_that_is_scrolled_still_name_their_elements(make: Make) -> None:
    """Also where the text had only what was in view."""
    world = await make(
        "".join(
            f"<p style='height:40px'><button onclick='t=this.id' id=b{i}>{i}</button></p>"
            for i in range(300)
        )
    )
    await act(world, ScrollAction(scroll=Point(x=0, y=6000)))
    before = await read(world, max_text_chars=2000)
    assert re.search(r"\d+ [a-z]+s? out of view", before)
    other = await restore(await make(), await snapshot(world))
    assert await read(other, max_text_chars=2000) == before
    number, ref = re.findall(r'button "(\d+)" \[(\w+)', before)[3]
    await act(other, ClickAction(ref=ref))
    assert await other.page.evaluate("t") == f"b{number}"

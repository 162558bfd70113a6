"""What a session's browser holds comes back in another one, and what cannot is told."""

# ruff: noqa: E501  # pages are easier to read unbroken

import json
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from hud_mcp.action import (
    Action,
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
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidEnvironment, LimitReached
from hud_mcp.observation import Look
from hud_mcp.world import Opening, Restorable, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld, SiteRequest
from hud_mcp.worlds.browser.snapshot_format import MAX_CHARS

pytestmark = [pytest.mark.anyio, pytest.mark.browser]
MOST_QUESTIONS = 8

Make = Callable[..., Awaitable[BrowserWorld]]


@pytest.fixture
async def make(shared: Shared, tmp_path: Path) -> AsyncIterator[Make]:
    """Open a world on the pages in a folder, which all worlds of a test share."""
    worlds: list[BrowserWorld] = []

    async def open_world(
        pages: str | dict[str, str] | None = None, *, services: Shared | None = None, **options: Any
    ) -> BrowserWorld:
        for name, html in (
            {"index.html": pages} if isinstance(pages, str) else pages or {}
        ).items():
            (tmp_path / name).write_text(html)
        opening = Opening(folder=tmp_path, shared=services or shared, seed=3)
        world = await Browser(".", **options).open(opening)
        worlds.append(world)
        return world

    yield open_world
    for world in worlds:
        await world.close()


async def act(world: BrowserWorld, *actions: Action) -> None:
    """Perform actions, each within a bound."""
    for action in actions:
        with anyio.fail_after(15):
            await world.act(action)


async def read(world: BrowserWorld, **options: Any) -> str:
    """The text of an observation."""
    with anyio.fail_after(15):
        return (await world.observe(Look(**options))).text or ""


async def snapshot(world: BrowserWorld) -> bytes:
    """A snapshot, within a bound."""
    with anyio.fail_after(15):
        return await world.snapshot()


async def restore(world: BrowserWorld, data: bytes) -> BrowserWorld:
    """The world, after it took a snapshot up."""
    with anyio.fail_after(60):
        await world.restore(data)
    return world


def go(url: str) -> CustomAction:
    """Go to an address."""
    return CustomAction(action="goto", args={"url": url})


STORED = """<p id=o></p><script>
  const seen = [document.cookie, localStorage.l, sessionStorage.s, localStorage.visits];
  localStorage.visits = 1 + +(localStorage.visits || 0);
  const asked = indexedDB.open('notes', 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore('n');
  window.put = value => new Promise(done => {
    const t = asked.result.transaction('n', 'readwrite'); t.objectStore('n').put(value, 'k'); t.oncomplete = () => done(); });
  asked.onsuccess = () => { asked.result.transaction('n').objectStore('n').get('k').onsuccess =
    e => { o.textContent = JSON.stringify([...seen, e.target.result && e.target.result.deep[0]]); } };
</script>"""


async def test_cookies_and_every_storage_are_there_when_pages_start(make: Make) -> None:
    """Scripts find them as the page loads, and what loading changed is set right again."""
    world = await make(STORED)
    assert isinstance(world, Restorable)
    context = world.page.context
    await context.add_cookies(
        [{"name": "h", "value": "1", "url": world.site_url, "httpOnly": True, "expires": 4e9}]
    )
    await world.page.evaluate(
        "async () => { document.cookie = 'c=2'; localStorage.l = 'ä\\ud800'; sessionStorage.s = 'S';"
        " await put({ deep: [7] }); }"
    )
    other = await restore(await make(), await snapshot(world))
    seen = json.loads(await other.text())
    assert seen == ["c=2", "ä\ud800", "S", "1", 7]
    assert await other.page.evaluate("localStorage.visits") == "1"
    cookies = await other.page.context.cookies()
    assert [c for c in cookies if c["name"] == "h"] == [
        c for c in await context.cookies() if c["name"] == "h"
    ]


async def test_what_setup_stored_gives_way_to_what_was_stored(make: Make) -> None:
    """What the session deleted after its setup does not come back."""
    page = "<script>localStorage.a = sessionStorage.b = 1; document.cookie = 'c=1'</script>"
    world = await make({"index.html": page, "two.html": "<h1>Two</h1>"})
    await act(world, go("/two.html"))
    await world.page.evaluate(
        "() => { localStorage.clear(); sessionStorage.clear(); document.cookie = 'c=; max-age=0'; }"
    )
    other = await restore(await make(), await snapshot(world))
    held = await other.page.evaluate(
        "[localStorage.length, sessionStorage.length, document.cookie]"
    )
    assert held == [0, 0, ""]


FORM = """<title>Form</title><form><input id=n placeholder=Name><input id=p type=password>
<input id=d type=date><input id=r type=range><textarea id=t>old</textarea>
<input type=checkbox id=c><input type=checkbox id=k checked>
<input type=radio name=x value=1 checked><input type=radio name=x value=2 id=two>
<select id=s><option value=1>One<option value=2>Two</select>
<select id=m multiple><option>A<option>B<option>C</select></form>
<div id=e contenteditable><b>bold</b></div><div id=h></div><p id=o></p>
<script>window.told = [];
for (const kind of ['input', 'change']) addEventListener(kind, e => told.push(kind + ' ' + e.target.id));
h.attachShadow({ mode: 'open' }).innerHTML = '<input id=deep>';
n.addEventListener('input', () => { o.textContent = 'Hello ' + n.value; });</script>"""

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


async def test_a_form_that_is_built_in_steps_is_filled_in_steps(make: Make) -> None:
    """A field that appears once another one is filled is found by its id."""
    world = await make(
        "<div id=f><input type=checkbox id=c></div><script>c.onchange = () => setTimeout(() =>"
        " f.insertAdjacentHTML('afterbegin', '<input id=why>'), 50)</script>"
    )
    await act(world, ClickAction(selector="#c"), TypeAction(selector="#why", text="because"))
    other = await restore(await make(), await snapshot(world))
    assert await other.page.evaluate("[c.checked, why.value]") == [True, "because"]


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
    ref = (await read(world)).partition('link "on" [ref=')[2].partition("]")[0]
    await act(world, ClickAction(ref=ref))
    for frame in world.page.frames[1:]:
        await frame.locator("#q").fill(f"in {frame.url}")
    before = await read(world)
    other = await restore(await make(), await snapshot(world))
    assert await read(other) == before
    assert before.count("in http://site.localhost/") == 2
    assert "in about:srcdoc" in before
    ref = (await read(other)).rpartition("in about:srcdoc")[0].rpartition("[ref=")[2][:4]
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


@pytest.fixture
async def elsewhere(shared: Shared, tmp_path: Path) -> AsyncIterator[BrowserWorld]:
    """Another site, on a port of its own, that can go away."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "index.html").write_text(
        "<h1>Elsewhere</h1><input id=q><p id=o></p><script>o.textContent = localStorage.v || 'nothing'</script>"
    )
    world = await Browser(folder, start=None).open(Opening(shared=shared))
    yield world
    await world.close()


async def test_a_page_that_does_not_load_any_more_shows_its_error(
    make: Make, elsewhere: BrowserWorld, tmp_path: Path
) -> None:
    """A server that is gone and a file that is gone: the other tabs come back, notes say which."""
    address = elsewhere.site_address
    allow = {"allow": [address.removeprefix("http://")]}
    world = await make(
        {"index.html": f"<a href={address}/ target=_blank>a</a><a href=/gone.html target=_blank>b</a><input id=i>",
         "gone.html": "<h1>Here</h1>"}, **allow)  # fmt: skip
    first = CustomAction(action="switch_tab", args={"index": 1})
    await act(world, ClickAction(selector="a >> nth=0"), first, ClickAction(selector="a >> nth=1"))
    await act(world, first, TypeAction(selector="#i", text="typed"))
    before = await read(world)
    assert f"2 {address}/ | 3 http://site.localhost/gone.html" in before
    data = await snapshot(world)
    await elsewhere.close()
    other = await make(**allow)
    await anyio.Path(tmp_path / "gone.html").unlink()
    text = await read(await restore(other, data))
    assert f"The page {address}/ did not open again: HTTP status 502" in text
    assert "gone.html did not open again: HTTP status 404" in text
    assert "typed" in text
    assert text.count("Note:") == 2
    await act(other, CustomAction(action="switch_tab", args={"index": 3}))
    assert "There is no /gone.html" in await read(other)


async def test_storage_of_sites_that_were_left_comes_back(
    make: Make, elsewhere: BrowserWorld
) -> None:
    """Written and left in one action, in a closed popup, and in a frame of another site."""
    address = elsewhere.site_address
    allow = {"allow": [address.removeprefix("http://")]}
    world = await make("<h1>Home</h1>", **allow)
    await world.page.evaluate("localStorage.home = sessionStorage.home = 'sweet'")
    await snapshot(world)
    await act(world, go(address))
    await world.page.evaluate("localStorage.v = 'there'")
    await world.goto("/")
    await world.page.evaluate("localStorage.later = 1")
    await act(world, go(address))
    data = await snapshot(world)
    assert await snapshot(world) == data
    other = await restore(await make(**allow), data)
    assert "there" in await other.text()
    await act(other, CustomAction(action="back"))
    held = await other.page.evaluate("[localStorage.home, localStorage.later, sessionStorage.home]")
    assert held == ["sweet", "1", "sweet"]


async def test_a_frame_of_another_site_keeps_its_own_storage(
    make: Make, elsewhere: BrowserWorld
) -> None:
    """It is apart from what that site stores in a page of its own, and its script finds it."""
    address = elsewhere.site_address
    allow = {"allow": [address.removeprefix("http://")]}
    world = await make(f"<h1>Home</h1><iframe src={address}/></iframe>", **allow)
    frame = world.page.frames[1]
    await frame.evaluate("localStorage.v = 'apart'")
    await frame.locator("#q").fill("typed")
    other = await restore(await make(**allow), await snapshot(world))
    frame = other.page.frames[1]
    assert await frame.inner_text("#o") == "apart"
    assert await frame.locator("#q").input_value() == "typed"


COUNTED = "<h1>Shop</h1><p id=o></p><script>fetch('/api/visit').then(r => r.json()).then(j => o.textContent = j.visits)</script>"


async def shop(request: SiteRequest, state: dict[str, Any]) -> dict[str, Any]:
    """Count visits."""
    state["visits"] = state.get("visits", 0) + 1
    return {"visits": state["visits"]}


async def test_the_sites_state_comes_back_in_place(make: Make) -> None:
    """What a template holds of it stays part of it, and loading the page again counts as nothing."""
    spec = {"backend": shop, "state": {"cart": {"items": []}, "old": 1}}
    world = await make(COUNTED, **spec)
    world.state["cart"]["items"].append({"id": "lamp", "price": 2.5})
    del world.state["old"]
    other = await make(**spec)
    page = other.page
    state, cart, items = other.state, other.state["cart"], other.state["cart"]["items"]
    await restore(other, await snapshot(world))
    assert (
        other.state
        == world.state
        == {"cart": {"items": [{"id": "lamp", "price": 2.5}]}, "visits": 1}
    )
    assert (other.state is state, state["cart"] is cart, cart["items"] is items) == (
        True,
        True,
        True,
    )
    assert other.page is page
    await act(other, CustomAction(action="reload"))
    assert state["visits"] == 2


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


async def test_refs_of_the_last_text_still_name_their_elements(make: Make) -> None:
    """Also on the second document, after earlier elements were numbered; new ones get new refs."""
    world = await make(ROWS)
    await read(world)
    await act(world, CustomAction(action="reload"))
    before = await read(world)
    other = await restore(await make(), await snapshot(world))
    for each in (world, other):
        ref = before.rpartition('button "Open Bob" [ref=')[2].partition("]")[0]
        await act(each, ClickAction(ref=ref), ClickAction(selector="text=More"))
    after = await read(other, changes=True)
    assert after == await read(world, changes=True)
    assert 'button "opened"' in after
    assert 'button "Open Cy"' in after


async def test_refs_of_a_page_that_reads_otherwise_are_refused(make: Make) -> None:
    """Where Ann was is Zoe now: no old ref is hers, and every one of the new text is new."""
    world = await make(ROWS)
    before = await read(world)
    changed = await make(ROWS.replace("Ann", "Zoe"))
    await restore(changed, await snapshot(world))
    old = set(re.findall(r"\[ref=(\w+)\]", before))
    for ref in old:
        with pytest.raises(ActionFailed, match="Look again"):
            await changed.act(ClickAction(ref=ref))
    after = await read(changed, changes=True)
    assert "Zoe" in after
    assert not old & set(re.findall(r"\[ref=(\w+)\]", after))
    opened = after.partition('button "Open Bob" [ref=')[2].partition("]")[0]
    await act(changed, ClickAction(ref=opened))
    assert 'button "opened"' in await read(changed, changes=True)


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
    assert "lines out of view" in before
    other = await restore(await make(), await snapshot(world))
    assert await read(other, max_text_chars=2000) == before
    number, ref = re.findall(r'button "(\d+)" \[ref=(\w+)\]', before)[3]
    await act(other, ClickAction(ref=ref))
    assert await other.page.evaluate("t") == f"b{number}"


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
        with anyio.fail_after(15):
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
    with anyio.fail_after(8):
        data = await world.snapshot()
    assert "Loop" in await (await restore(await make(), data)).text()


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

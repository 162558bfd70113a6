"""What a person sees and can use on a page is in its text, with a ref that works."""

# ruff: noqa: E501  # pages are easier to read unbroken

import json
import re

import anyio
import pytest
from acting import Browse, act
from waiting import PATIENCE_S

from hud_mcp.values.action import ClickAction, Point, ScrollAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

WORDS = "word " * 250
TOLD: dict[str, tuple[str, list[str]]] = {
    "an editor": ("<div contenteditable role=textbox aria-label=Reply>first draft</div>", ["first draft"]),
    "one without a name": ("<div contenteditable role=textbox>unnamed words</div>", ["unnamed words"]),
    "one that is read": ("<div role=textbox aria-readonly=true>KEY-4711</div>", ["KEY-4711"]),
    "one of several lines": ("<div role=textbox aria-multiline=true contenteditable>one<div>two <a href=#x>link</a></div>three</div>", ["one", "two", "link", "three"]),
    "one in a shadow root": ("<div id=h></div><script>h.attachShadow({mode: 'open'}).innerHTML = '<div role=textbox contenteditable>in shadow</div>'</script>", ["in shadow"]),
    "one in a frame": ("<iframe srcdoc='<div role=textbox contenteditable>in frame</div>'></iframe>", ["in frame"]),
    "one in an editor": ("<div role=textbox contenteditable>outer <div role=textbox>inner</div></div>", ["outer", "inner"]),
    "a document in design mode": ("<p>designed</p><script>document.designMode = 'on'</script>", ["designed"]),
    "a search box": ("<div role=searchbox contenteditable>sought</div>", ["searchbox", "sought"]),
    "a textarea": ("<textarea>one\n  two: 2\nthree</textarea>", ["one\n  two: 2\nthree"]),
    "a textarea in a frame": ("<iframe srcdoc='<textarea>one\ntwo</textarea>'></iframe>", ["one\ntwo"]),
    "pre": ("<pre><b>def</b> f():\n    return 1</pre>", ["def f():\n    return 1"]),
    "kept breaks": ("<div contenteditable style='white-space:pre-wrap'>x \"y\"\nz</div>", ['x "y"\nz']),
    "a long cell": (f"<table><tr><td>{WORDS}END</td></tr></table>", ["END"]),
    "a long heading": (f"<h1>{WORDS}END</h1>", ["END"]),
    "a long link": (f"<a href=#x>{WORDS}END</a>", ["END"]),
    "a long button": (f"<button>{WORDS}END</button>", ["END"]),
}  # fmt: skip


async def read(world: BrowserWorld) -> str:
    """The text of a look."""
    with anyio.fail_after(PATIENCE_S):
        return (await world.observe(Look())).text or ""


def ref_of(text: str, words: str) -> str:
    """The ref of the first element that says these words and has one; else empty."""
    return find_ref(text, words) or ""


async def test_every_text_that_is_seen_is_told_with_its_lines(browse: Browse) -> None:
    """Editors, fields and kept breaks, wherever they stand; a value's breaks as JSON writes them."""
    wrong: list[str] = []
    for name, (html, told) in TOLD.items():
        world = await browse(html)
        text = await read(world)
        missing = [e for e in told if e not in text and json.dumps(e)[1:-1] not in text]
        wrong += [f"{name}: {missing} in {text[-300:]}"] if missing else []
        await world.close()
    assert wrong == []


async def test_what_is_typed_into_an_editor_is_told(browse: Browse) -> None:
    """By its ref, and then in what changed; an empty editor is a text box too."""
    world = await browse(
        "<div contenteditable role=textbox aria-label=Reply></div>" + "<p>x</p>" * 9
    )
    await act(
        world, TypeAction(ref=ref_of(await read(world), 'textbox "Reply"'), text="second draft")
    )
    assert "second draft" in ((await world.observe(Look(changes=True))).text or "")


@pytest.mark.long
async def test_what_an_author_asks_playwright_for_is_as_ever(browse: Browse) -> None:
    """A grader's own tree of a page has no marks of ours, right after a look."""
    world = await browse("<pre>one\n  two</pre><input type=password value=4711 aria-label=Pin>")
    await read(world)
    tree = await world.page.aria_snapshot()
    assert "one two" in tree
    assert "4711" in tree


CLICKABLE: dict[str, str] = {
    "a star": "<p>Rate <span class=c onclick=\"did('a star')\">a star</span></p>",
    "no address": "<p>See <a class=c onclick=\"did('no address')\">no address</a></p>",
    "bold": "<p>See <b class=c onclick=\"did('bold')\">bold</b></p>",
    "in the order": "<p>See <span tabindex=0 onclick=\"did('in the order')\">in the order</span></p>",
    "an attribute": "<p>See <span onclick=\"did('an attribute')\">an attribute</span></p>",
    "a listener": "<p>See <i id=l>a listener</i></p><script>l.addEventListener('click', () => did('a listener'))</script>",
    "a property": "<p>See <i id=y>a property</i></p><script>y.onclick = () => did('a property')</script>",
    "from above": '<p onclick="did(event.target.textContent)">See <span class=c>from above</span></p>',
    "a custom one": "<p>See <my-star class=c onclick=\"did('a custom one')\">a custom one</my-star></p>",
    "drawn": "<svg width=90 height=20><text y=15 class=c onclick=\"did('drawn')\">drawn</text></svg>",
    "a summary": "<details><summary onclick=\"did('a summary')\">a summary</summary>more</details>",
    "of a hidden box": "<p>See <input type=checkbox id=k style='opacity:0;width:0' onclick=\"did('of a hidden box')\"><label for=k>of a hidden box</label></p>",
    "in a frame": "<iframe srcdoc=\"<p>See <span style='cursor:pointer' onclick='parent.did(this.textContent)'>in a frame</span></p>\"></iframe>",
    "in shadow": "<p id=h></p><script>h.attachShadow({mode: 'open'}).innerHTML = 'See <span style=\"cursor:pointer\" onclick=\"did(this.textContent)\">in shadow</span>'</script>",
}  # fmt: skip


MAP = """<body style="height:3000px"><div style="height:1000px"></div><img alt=Plan usemap="#plan" width=100 height=50
 style="padding:7px;border:3px solid" src='data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50"/>'>
<map name=plan><area coords=0,0,20,50 href="#" onclick="did('hall')" alt=Hall>
<area shape=circle coords=75,25,20 href="#" onclick="did('tower')" alt=Tower>
<area shape=poly coords="25,0,50,0,50,50,45,50,45,5,25,5" onclick="did('wall')" alt=Wall></map>
<script>var done = ''; function did(what) { done = what }</script>"""


@pytest.mark.long
async def test_the_areas_of_a_map_are_pressed_by_their_refs(browse: Browse) -> None:
    """Whatever their shape is, and wherever on the page their image is."""
    world = await browse(MAP)
    text = await read(world)
    assert re.search(
        r'img "Plan" link "Hall" \[\w+\] link "Tower" \[\w+\] link "Wall" \[\w+\]', text
    )
    for name in ("Hall", "Tower", "Wall"):
        await act(world, ClickAction(ref=ref_of(text, f'link "{name}"')))
        assert await world.page.evaluate("() => done") == name.lower()


CLOSED = """<div id=h>slotted</div><p id=o></p><script>
  const root = h.attachShadow({mode: 'closed'}), seen = [];
  root.innerHTML = '<button>inner</button><input aria-label=field><slot></slot>';
  const button = root.firstChild;
  button.onclick = event => seen.push(event.composedPath().length);
  h.onclick = event => seen.push(event.composedPath()[0].id, event.target.id);
  const told = [h.shadowRoot, root.mode, h.firstChild.assignedSlot, root.constructor === ShadowRoot,
    `${Element.prototype.attachShadow}`.includes('native'), 'get' in Object.getOwnPropertyDescriptor(Element.prototype, 'shadowRoot')];
</script>"""


async def test_a_closed_root_is_read_and_acted_on_and_stays_closed_for_the_page(
    browse: Browse,
) -> None:
    """Its words, its elements by their refs, what is typed; the page's own scripts see no more."""
    world = await browse(CLOSED)
    text = await read(world)
    assert "slotted" in text
    await act(world, ClickAction(ref=ref_of(text, 'button "inner"')))
    await act(world, TypeAction(ref=ref_of(text, 'textbox "field"'), text="words"))
    assert re.search(r'textbox "field" \[\w+ focused\]: words', await read(world))
    assert await world.page.evaluate("() => seen") == [7, "h", "h"]
    told = await world.page.evaluate("() => told")
    assert told == [None, "closed", None, True, True, True]


@pytest.mark.long
async def test_a_drawn_control_has_its_state(browse: Browse) -> None:
    """Also where nothing but its label is on the page, or no word is; a press changes it."""
    world = await browse(
        "<label><input type=checkbox style='display:none'>Gift</label><label style='display:block;"
        "width:30px;height:20px'><input type=radio hidden aria-label=Express></label>"
    )
    text = await read(world)
    for name in ("Gift", "Express"):
        await act(world, ClickAction(ref=ref_of(text, f'"{name}"')))
    text = await read(world)
    assert re.search(r'checkbox "Gift" \[e\d+ checked\]', text)
    assert re.search(r'radio "Express" \[e\d+ checked\]', text)


@pytest.mark.long
async def test_what_a_person_would_click_has_a_ref_that_works(browse: Browse) -> None:
    """Inline text with a pointer, a listener or a place in the order of focus; no other text."""
    world = await browse(
        "<style>.c{cursor:pointer}</style><script>var done = ''; function did(what) { done = what }</script>"
        + "".join(CLICKABLE.values())
        + "<p>so <span>plain</span> it is</p><p><a href=#x class=c><span>inner</span></a></p>"
    )
    text = await read(world)
    wrong: list[str] = []
    for words in CLICKABLE:
        ref = ref_of(text, words)
        if ref:
            await act(world, ClickAction(ref=ref))
        did = await world.page.evaluate("() => done")
        wrong += [] if did == words else [f"{words}: {ref!r} did {did!r}"]
    assert wrong == [], text
    assert "so plain it is" in text, "a text that nobody can click is in one"
    assert text.count("inner") == 1


LINES = [f"line {i}: step {i * 7} finished without trouble" for i in range(600)]
LOG = "\n".join(LINES)
PROSE = " ".join(f"line {i}: the party shall not do thing {i}." for i in range(600))
SPANS = "\n".join(f"<b>line</b> {i}: <i>step</i> finished without trouble" for i in range(600))

LONG: dict[str, tuple[str, int]] = {
    "a log": (f"<pre>{LOG}</pre>", 600),
    "a log in colours": (f"<pre>{SPANS}</pre>", 600),
    "a paragraph": (f"<p>{PROSE}</p>", 600),
    "small print": (f"<p style='font-size:6px'>{PROSE}</p><p style='height:900px'>", 60),
    "lines in a paragraph": (f"<p>{'<br>'.join(LINES)}</p>", 600),
    "a textarea": (f"<textarea rows=20 cols=80>{LOG}</textarea>", 300),
    "a narrow textarea": (f"<textarea rows=30 cols=30>{LOG}</textarea>", 450),
    "a letter": (f"<textarea rows=20 cols=60 style='font:14px serif'>{PROSE}</textarea>", 300),
    "an editor": (f"<div role=textbox contenteditable style='white-space:pre-wrap;height:400px;overflow:auto'>{LOG}</div>", 350),
    "a box on a tall page": (f"<div style='height:1200px'><pre style='height:400px;overflow:auto'>{LOG}</pre></div>", 350),
    "a frame": (f"<iframe style='width:800px;height:400px' srcdoc='<pre>{LOG}</pre>'></iframe>", 350),
    "a tall frame": (f"<iframe style='width:80px;height:12000px;border:0' srcdoc='<pre>{LOG}</pre>'></iframe>", 600),
    "a shadow root": (f"<div id=h></div><template id=t><pre>{LOG}</pre></template><script>h.attachShadow({{mode: 'open'}}).append(t.content)</script>", 600),
    "a dense page": (f"<div style='font:4px/4px serif'>{''.join(f'<p style=margin:0>{line}</p>' for line in LINES)}</div>", 100),
    "a cell": (f"<table><tr><td>{PROSE}</td></tr></table>", 600),
}  # fmt: skip


@pytest.mark.long
async def test_every_part_of_a_long_text_is_read_by_scrolling(browse: Browse) -> None:
    """As its notice says: one element of 25,000 characters, whatever it is and whatever it is in."""
    wrong: list[str] = []
    for name, (html, by) in LONG.items():
        world = await browse("<!doctype html><body style='margin:0'>" + html)
        read_: set[int] = set()
        text, before = await read(world), ""
        if not re.search(r"… \d+ more .* to see (?:them|more|the rest)", text):
            wrong.append(f"{name}: no notice")
        while text != before:
            read_ |= {int(found) for found in re.findall(r"line (\d+):", text)}
            before = text
            x = 400 if "tall frame" in name else 50
            await act(world, ScrollAction(point=Point(x=x, y=200), scroll=Point(x=0, y=by)))
            text = await read(world)
        missing = sorted(set(range(600)) - read_)
        wrong += [f"{name}: {len(missing)} lines, from {missing[0]} on"] if missing else []
        await world.close()
    assert wrong == []

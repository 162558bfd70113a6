"""What an agent sees: the text with its refs, what changed in it, and the picture."""

# ruff: noqa: E501  # pages are easier to read unbroken

import io
import re
from collections.abc import Awaitable, Callable

import anyio
import pytest
from PIL import Image
from waiting import PATIENCE_S

from hud_mcp.values.action import ClickAction, CustomAction, Point, ScrollAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref, named_refs, refs_in
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

FORM = """<title>Form</title><h1>Order</h1><input id=n placeholder=Name value=Ann>
<input type=checkbox id=c checked><label for=c>Gift</label><select id=s><option>Red<option selected>Blue
</select><button onclick="o.textContent='Sent'">Send</button><p id=o></p>"""


async def read(world: BrowserWorld, **options: object) -> str:
    """The text of an observation."""
    with anyio.fail_after(PATIENCE_S):
        return (await world.observe(Look(**options))).text or ""  # type: ignore[arg-type]


def picture(data: bytes) -> Image.Image:
    """The decoded picture."""
    return Image.open(io.BytesIO(data)).convert("RGB")


async def test_the_text_says_where_one_is_and_what_the_fields_hold(browse: Browse) -> None:
    """Title, address, values, checks and choices are in the text, with refs to act on."""
    text = await read(await browse(FORM))
    assert text.startswith("Page: Form\nURL: http://site.localhost/\n")
    assert re.search(r'textbox "Name" \[e\d+\]: Ann', text)
    assert re.search(r'checkbox "Gift" \[e\d+ checked\]', text)
    assert re.search(r"combobox \[e\d+\]: Blue \(Red \| Blue\)", text)


FACTS = {
    "<label>Name <input required></label>": r'textbox "Name" \[e\d+ required\]',
    "<input aria-label=Mail aria-invalid=true aria-errormessage=m><p id=m>No @</p>": r'invalid "No @"\]',
    "<input type=range min=1 max=9 value=4 aria-label=Volume>": r'slider "Volume" \[e\d+\]: 4 \(1\.\.9\)',
    "<progress value=30 max=100 aria-label=Load></progress>": r'progressbar "Load": 30',
    "<table><tr><th aria-sort=ascending>Item</th><th>Price</th></tr></table>": r"\| Item \[sorted ascending\]",
    "<button aria-expanded=false>Menu</button>": r'button "Menu" \[e\d+ collapsed\]',
    "<a href=/x aria-current=page>Here</a>": r'link "Here" \[e\d+ /x current\]',
    "<details><summary>More</summary>x</details>": r'"More" \[e\d+ collapsed\]',
    "<div draggable=true>Drag me</div>": r'"Drag me" \[e\d+ draggable\]',
    "<div contenteditable><p>one</p></div>": r"textbox \[e\d+ editable\]: one",
    "<div style='height:50px;overflow:auto'><p>1<p>2<p>3<p>4</div>": r"\[e\d+ scrolls\]:\n 1\n 2",
    "<div onclick='1'>listens</div>": r'"listens" \[e\d+\]',
}  # fmt: skip


async def test_a_text_has_the_facts_that_a_snapshot_leaves_out(browse: Browse) -> None:
    """States, ranges, orders, and everything else that one can act on has a ref."""
    text = await read(await browse("".join(FACTS)))
    assert [pattern for pattern in FACTS.values() if not re.search(pattern, text)] == [], text


@pytest.mark.long
async def test_no_page_writes_facts_of_its_elements(browse: Browse) -> None:
    """Characters of our own in a page's text, in a name or in a frame change no other element."""
    told = "\U0010fa14e2 click;e3 ref=e2\U0010fa14"
    for mark in ("", "0" * 12):
        faked = told.replace("\U0010fa14", f"\U0010fa14{mark}\U0010fa14") if mark else told
        text = await read(
            await browse(
                f"<title>[e2] {faked}</title><script>alert('[e2] x')</script>"
                f"<button>One</button><button>Two</button><p>{faked}</p><p title='{faked}'>x</p>"
                f"<style>p::after {{ content: '{faked}' }}</style><iframe srcdoc='{faked}'></iframe>"
            )
        )
        one, two = find_ref(text, 'button "One"'), find_ref(text, 'button "Two"')
        assert one != two
        assert len(refs_in(text)) == len(set(refs_in(text))) == 2, text


@pytest.mark.long
async def test_no_page_writes_areas_of_its_own(browse: Browse) -> None:
    """Neither in names and texts, nor beside areas that it has; nor does a broken address hurt."""
    fake = "[areas=%5B%5B%22a%22,%22b%22,0%5D%5D]"
    text = await read(
        await browse(
            f"<button aria-label='{fake} [ref=e1] {fake}'>One</button><p>{fake}</p><p>- img {fake}</p>"
            f"<img usemap='#m' width=9 height=9 alt='x\" [ref=e1] {fake} [areas=x]'><map name=m>"
            f"<area href='/\"] - [e9]' alt='a\" [e9]:\n- button'>{'<area href=/b alt=%s>' % ('b' * 400) * 60}</map>"
            "<a href='http://['>Bad</a><a href=disabled>Off</a>"
        )
    )
    refs = refs_in(text)
    assert len(refs) == len(set(refs)) == 53, text
    assert "e9" not in refs
    assert all(not each.states for each in named_refs(text))


async def test_a_part_is_read_alone(browse: Browse) -> None:
    """By its ref, with all options of a select, up to the limit, and from a line on."""
    options = "".join(f"<option>Country {i}</option>" for i in range(60))
    rows = "".join(f"<tr><td>Item {i}</td></tr>" for i in range(200))
    world = await browse(
        f"<select aria-label=Country>{options}</select><table>{rows}</table><p>Last</p>"
    )
    whole = await read(world, max_text_chars=2000)
    select = find_ref(whole, 'combobox "Country"')
    assert f"more; observe {select}" in whole
    assert "Country 59" in await read(world, part=select or "")
    (table,) = re.findall(r"more rows; scroll, or observe (e\d+)", whole)
    first = await read(world, part=table, max_text_chars=1000)
    assert "Last" not in first
    (rest,) = re.findall(rf"more lines; observe ({table}:\d+) shows them", first)
    shown = first.count("| Item")
    assert f"\n| Item {shown}\n" in await read(world, part=rest, max_text_chars=1000)
    assert "There is no 'e999' in the page now" in await read(world, part="e999")
    assert re.search(r"has \d+ lines now", await read(world, part=f"{table}:999999"))
    assert "| Item 0" in await read(world, part=f"{table}:0")


async def test_looking_changes_nothing(browse: Browse) -> None:
    """Two looks without an action between them are the same, notes included."""
    world = await browse(FORM + "<script>alert('hello')</script>")
    assert await read(world) == await read(world)
    first, second = [(await world.observe(Look(image="png"))).image for _ in range(2)]
    assert first is not None
    assert second is not None
    assert first.sha256 == second.sha256


@pytest.mark.long
async def test_half_a_character_in_a_title_or_a_dialog_is_no_obstacle(browse: Browse) -> None:
    """What a page cuts in the middle of a surrogate pair can still be sent on as UTF-8."""
    world = await browse("<script>document.title = 'a\\ud83d'; alert('b\\ude00')</script><p>x</p>")
    text = await read(world)
    assert text.startswith("Page: a?\n")
    assert "'b\ufffd' (alert)" in text
    assert text.encode().decode() == text


async def test_only_what_changed_is_told_when_asked(browse: Browse) -> None:
    """The diff has the changed field and the new text with their refs, and no more."""
    world = await browse("<p>long</p>" * 30 + FORM)
    await read(world)
    await world.act(TypeAction(selector="#n", text="Bob"))
    await world.act(ClickAction(selector="button"))
    text = await read(world, changes=True)
    assert re.search(r'^\+ textbox "Name" \[e\d+\]: Bob', text, re.MULTILINE)
    assert re.search(r"^\+ .*Sent$", text, re.MULTILINE)
    assert "Gift" not in text
    assert "Ann" not in text
    assert "Nothing changed" in await read(world, changes=True)


@pytest.mark.long
async def test_what_is_gone_is_told_as_gone(browse: Browse) -> None:
    """A removed element has a line of its own."""
    world = await browse(
        "<p>x</p>" * 20 + "<ul><li>One<li id=t>Two</ul><button onclick='t.remove()'>b</button>"
    )
    await read(world)
    await world.act(ClickAction(selector="button"))
    assert "\n- - Two" in await read(world, changes=True)


@pytest.mark.long
async def test_a_new_document_is_told_in_full(browse: Browse) -> None:
    """After a navigation, `changes` gives the whole new page."""
    world = await browse({"index.html": FORM, "two.html": FORM})
    await read(world)
    await world.act(CustomAction(action="goto", args={"url": "/two.html"}))
    text = await read(world, changes=True)
    assert "Gift" in text
    assert "Changed since" not in text


async def test_a_long_page_shows_what_is_in_view(browse: Browse) -> None:
    """A text over its limit is cut, and further down reduced to what is in view."""
    world = await browse("".join(f"<p style='height:40px'>Row {i}</p>" for i in range(300)))
    top = await read(world, max_text_chars=2000)
    assert len(top) <= 2000
    assert "Row 3" in top
    assert "Row 250" not in top
    assert re.search(r"… \d+ more lines; scroll to see more", top)
    await world.act(ScrollAction(scroll=Point(x=0, y=14_000)))
    further = await read(world, max_text_chars=2000)
    assert re.search(r"Row 2[45]\d", further)
    assert re.search(r"Scrolled: 14000 of \d+ px down", further)
    assert re.search(r"… \d+ paragraphs out of view", further)
    assert "[box=" not in further


@pytest.mark.long
async def test_the_rows_in_view_stand_below_the_headings_of_their_table(browse: Browse) -> None:
    """Also where those are scrolled away, in a page that is read as a whole or near its view."""
    for count in (300, 6000):
        head = "<tr><th><button>Item</button><th>Price</tr>"
        body = "".join(f"<tr><td>Thing {i}</td><td>{i} EUR</td></tr>" for i in range(count))
        world = await browse(f"<h1>Stock</h1><table>{head}{body}</table>")
        await read(world, max_text_chars=2000)
        await world.act(ScrollAction(scroll=Point(x=0, y=4_000)))
        text = await read(world, max_text_chars=2000)
        assert re.search(r'\n\| button "Item" \[e\d+\] \| Price\n\|--\n', text), text
        assert re.search(r"\| Thing 1\d\d \|", text)
        assert "| Thing 5 |" not in text


MESSAGES = """<p id=o role=status></p><div id=t></div><button onclick="say('Saved [e1] x')">Save</button>
<button onclick="say('Working…')">Work</button><button onclick="say('There'); clearTimeout(timer)">Stay</button>
<button onclick="for (let i = 0; i < 40; i++) pop('No. ' + i + ' ' + 'w'.repeat(4000))">Storm</button>
<script>let timer;
const say = text => { o.textContent = text; timer = setTimeout(() => o.textContent = '', 200); };
const pop = text => { const each = document.createElement('p'); each.role = 'alert'; each.append(text); t.append(each); setTimeout(() => each.remove(), 200); };
</script>"""


@pytest.mark.long
async def test_a_live_message_that_came_and_went_is_told_once(browse: Browse) -> None:
    """In the next text alone; what is there, or was under way, is not, and no page tells much."""
    world = await browse(MESSAGES)
    text = await read(world)
    told: dict[str, str] = {}
    for name in ("Save", "Work", "Stay", "Storm"):
        await world.act(ClickAction(ref=find_ref(text, f'button "{name}"')))
        told[name] = await read(world)
        assert await read(world) == told[name]
    assert "The page said 'Saved \\[e1] x', which is gone" in told["Save"]
    assert "Saved" not in told["Work"]
    assert "Note" not in told["Work"] + told["Stay"]
    assert "status: There" in told["Stay"]
    assert told["Storm"].count("Note") == 3
    assert len(told["Storm"]) < len(text) + 1000


@pytest.mark.long
async def test_a_wordy_page_is_cut_at_a_lines_end(browse: Browse) -> None:
    """Even what is in view keeps to the limit."""
    world = await browse("".join(f"<span> <b>Word {i}</b> </span>" for i in range(400)))
    text = await read(world, max_text_chars=1000)
    assert len(text) <= 1000
    assert re.search(r"… \d+ more lines; scroll to see more$", text)


async def test_a_picture_is_of_the_size_that_was_asked_for(browse: Browse) -> None:
    """PNG and JPEG decode to the viewport, one picture pixel for one CSS pixel."""
    world = await browse("<body style='background:#ff0000'>")
    for kind in ("png", "jpeg"):
        image = (await world.observe(Look(text=False, image=kind))).image
        assert image is not None
        assert (image.width_px, image.height_px, image.scale) == (1280, 800, 1.0)
        assert image.mime_type == f"image/{kind}"
        red, green, blue = picture(image.data).getpixel((600, 400))  # type: ignore[misc]
        assert (red > 250, green < 5, blue < 5) == (True, True, True)


@pytest.mark.long
async def test_a_sharp_screens_pixels_map_back_to_where_one_clicks(browse: Browse) -> None:
    """At two pixels per CSS pixel, a place found in the picture times its scale is hit."""
    world = await browse(
        "<body style='margin:0;background:#fff'><button id=b style='position:absolute;left:300px;"
        "top:200px;width:40px;height:30px;background:#0000ff;border:0' onclick=\"this.style.background="
        "'#00ff00'\"></button>",
        context={"device_scale_factor": 2.0, "viewport_width": 800, "viewport_height": 600},
    )
    image = (await world.observe(Look(image="png"))).image
    assert image is not None
    assert (image.width_px, image.scale) == (1600, 0.5)
    pixels = picture(image.data)
    blue = [(x, y) for x in range(0, 1600, 10) for y in range(0, 1200, 10)
            if pixels.getpixel((x, y)) == (0, 0, 255)]  # fmt: skip
    x, y = blue[0]
    await world.act(ClickAction(point=Point(x=x * image.scale, y=y * image.scale)))
    assert await world.page.evaluate("() => b.style.background") == "rgb(0, 255, 0)"


async def test_the_context_decides_how_a_page_sees_the_world(browse: Browse) -> None:
    """Locale, time zone, colours, motion and size reach the page."""
    world = await browse(
        context={
            "locale": "de-DE",
            "timezone": "Europe/Berlin",
            "color_scheme": "dark",
            "reduced_motion": "no-preference",
            "viewport_width": 1024,
        }
    )
    facts = await world.page.evaluate(
        "() => [navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, innerWidth,"
        " matchMedia('(prefers-color-scheme: dark)').matches,"
        " matchMedia('(prefers-reduced-motion: reduce)').matches]"
    )
    assert facts == ["de-DE", "Europe/Berlin", 1024, True, False]


@pytest.mark.long
async def test_a_seed_makes_a_pages_random_numbers_repeat(browse: Browse) -> None:
    """The same seed gives the same Math.random, another seed another one."""
    page = "<p id=o></p><script>o.textContent = Math.random()</script>"
    texts = [await (await browse(page, seed=seed)).text() for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.long
async def test_every_visit_draws_numbers_of_its_own_that_repeat(browse: Browse) -> None:
    """Without a seed too, and those of `crypto`: no two visits alike, and all as the last time."""
    page = (
        "<p id=o></p><script>const a = crypto.getRandomValues(new Uint16Array(3));"
        "o.textContent = [Math.random(), a, crypto.randomUUID()].join(' ')</script>"
    )
    lives: list[list[str]] = []
    for _ in range(2):
        world = await browse({"index.html": page, "two.html": page})
        lives.append([await world.text()])
        for action in ("/two.html", "/", "/"):
            await world.act(CustomAction(action="goto", args={"url": action}))
            lives[-1].append(await world.text())
        await world.act(CustomAction(action="reload"))
        lives[-1].append(await world.text())
    assert lives[0] == lives[1]
    assert len({word for text in lives[0] for word in text.split()}) == 3 * 5
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(uuid, text.split()[2]) for text in lives[0])


@pytest.mark.long
async def test_numbers_are_random_where_nothing_is_to_repeat(browse: Browse) -> None:
    """A world that is not replayable, and that nobody gave a seed, is left alone."""
    page = "<p id=o></p><script>o.textContent = Math.random()</script>"
    texts = [await (await browse(page, replayable=False)).text() for _ in range(2)]
    assert texts[0] != texts[1]


@pytest.mark.long
async def test_a_page_that_hangs_is_told_and_can_be_left(browse: Browse) -> None:
    """An endless loop in a page does not hang the session; closing it stays quick."""
    world = await browse("<h1>x</h1>")
    await world.page.evaluate("() => void setTimeout(() => { for (;;); }, 0)")
    assert "does not respond" in await read(world)
    with anyio.fail_after(PATIENCE_S):
        await world.close()


def rows(count: int) -> str:
    """A table with a link, a field and a button in each row, under a menu that stays in place."""
    row = (
        "<tr><td>{0}</td><td><a href='/item'>Item {0}</a></td><td><b>x</b> <i>y</i></td>"
        "<td><input type=checkbox aria-label='Choose {0}'></td>"
        "<td><button onclick='document.title=\"Bought {0}\"'>Buy {0}</button></td></tr>"
    )
    menu = "<div style='height:40px'><nav style='position:fixed;top:0;right:0'>Menu</nav></div>"
    return f"<title>Rows</title>{menu}<table>{''.join(row.format(n) for n in range(count))}</table>"


@pytest.mark.long
async def test_a_page_of_5000_rows_is_read_near_the_view(browse: Browse) -> None:
    """Each look is bounded, says what it leaves out, and its refs stand for what is there."""
    world = await browse(rows(5000))
    with anyio.fail_after(PATIENCE_S):
        top = (await world.observe(Look())).text or ""
        assert "Item 0" in top
        assert "only what is near the view was read" in top
        assert "elements below or to the right were left out" in top
        assert "elements above" not in top
        scroll = ScrollAction(point=Point(x=300, y=300), scroll=Point(x=0, y=50_000))
        await world.act(scroll)
        down = (await world.observe(Look())).text or ""
        assert "elements above or to the left were left out" in down
        assert "Item 0" not in down
        assert "Menu" in down  # its header was scrolled away, and it was not
        found = re.search(r'button "(Buy \d+)" \[(e\d+)\]', down)
        assert found is not None
        await world.act(ClickAction(ref=found[2]))
        assert await world.page.title() == found[1].replace("Buy", "Bought")
        again = (await world.observe(Look(changes=True))).text or ""
        assert "does not respond" not in again


@pytest.mark.long
async def test_a_page_notices_nothing_of_a_look_near_its_view(browse: Browse) -> None:
    """What the look skips is there for the page's own scripts, then and later."""
    world = await browse(rows(1500))
    count = """() => { let n = 0;
      for (let row = document.querySelector('tr'); row; row = row.nextSibling) n++;
      return n; }"""
    with anyio.fail_after(PATIENCE_S):
        assert "were left out" in ((await world.observe(Look())).text or "")
        assert await world.page.evaluate(count) == 1500
        assert len(await world.page.query_selector_all("tr")) == 1500

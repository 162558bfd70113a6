"""What is done on each page of MiniWoB++ that scripts animate: for `stress.py`.

A plan looks at the page through Playwright's page and gives the actions that are known by then,
again and again; each way of solving does all that one look gave, and then the plan looks anew. It
looks at what a person would see, and at variables of the page where a person would read on.
"""

import calendar
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from hud_mcp.values.action import (
    Action,
    ClickAction,
    DragAction,
    MoveAction,
    Point,
    PressAction,
    TypeAction,
)

__all__ = ["LEFT_OUT", "PLANS", "PREPARATIONS", "UNJUDGED", "Plan"]

Steps = AsyncGenerator[Sequence[Action], None]
Plan = Callable[[Any], Steps]

LOOK_MS = 60_000
"""How long a plan waits for what it looks for: the machine is busy."""

_UTTERANCE = "() => core.getUtterance()"
MONTHS = [calendar.month_name[number] for number in range(1, 13)]

_DONE = "() => window.WOB_DONE_GLOBAL"
_MIDDLE = """element => {
  const box = element.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""


def click(selector: str) -> ClickAction:
    """A click on the one element of a selector."""
    return ClickAction(selector=selector)


def by_text(selector: str, text: str) -> str:
    """The first element of a selector with exactly this text."""
    return f'{selector}:text-is("{text}") >> nth=0'


async def quoted(page: Any) -> str:
    """What the page's question has in quotes last."""
    return re.findall(r'"([^"]+)"', await page.evaluate(_UTTERANCE))[-1]


async def middle(page: Any, selector: str) -> Point:
    """The middle of an element."""
    x, y = await page.eval_on_selector(selector, _MIDDLE)
    return Point(x=x, y=y)


def clicks(script: str) -> Plan:
    """Clicks on what a script of the page names, as selectors in order."""

    async def plan(page: Any) -> Steps:
        yield [click(selector) for selector in await page.evaluate(script)]

    return plan


async def pie(page: Any) -> Steps:
    """Open the pie, and click a slice as it comes out.

    The slice that is selected from the start is made anew under the pointer: no click counts there.
    """
    want = await quoted(page)
    index = await page.evaluate(
        """want => [...document.querySelectorAll('svg text[id*="-title-"]')]
          .find(title => title.textContent === want).id.match(/\\d+$/)[0]""",
        want,
    )
    yield [click("#wheelnav-divWheel-spreadertitle")]
    await page.wait_for_function(
        """index => {
          const place = id => document.querySelector(id).getBoundingClientRect();
          const title = place('#wheelnav-divWheel-title-' + index);
          const spreader = place('#wheelnav-divWheel-spreader');
          return Math.hypot(title.x - spreader.x, title.y - spreader.y) > 20;
        }""",
        arg=index,
        timeout=LOOK_MS,
    )
    yield [click(f"#wheelnav-divWheel-title-{index}")]


async def moving(page: Any) -> Steps:
    """Click the edge where the last circle waits to come in, and see the others pass."""
    x, y = await page.evaluate(
        """() => {
          const box = document.querySelector('svg').getBoundingClientRect();
          const last = document.querySelector('#item-9');
          const left = Number(last.getAttribute('cx')) < 80;
          const y = Math.min(Math.max(Number(last.getAttribute('cy')), 2), box.height - 2);
          return [box.x + (left ? 2 : 158), box.y + y];
        }"""
    )
    yield [ClickAction(point=Point(x=x, y=y))]
    await page.wait_for_function(_DONE, timeout=LOOK_MS)


async def simon(page: Any) -> Steps:
    """Watch which buttons are pushed, and push them."""
    pushed = await page.wait_for_function(
        """() => {
          const seen = window.pushes || [];
          const at = seen.length ? seen[seen.length - 1].at : Infinity;
          const over = seen.length % 2 === 0 && performance.now() - at > 2500;
          return over ? seen.filter(each => each.down).map(each => each.id) : null;
        }""",
        timeout=LOOK_MS,
    )
    yield [click(f"#{each}") for each in await pushed.json_value()]


async def stock(page: Any) -> Steps:
    """Wait for a good price, stop the ticker at it, and buy."""
    await page.wait_for_function(
        """() => {
          const limit = parseFloat(core.getUtterance().match(/\\$([\\d.]+\\d)/)[1]);
          const price = parseFloat(document.querySelector('#stock-price').textContent.slice(1));
          if (!(price <= limit)) return false;
          clearInterval(timer);
          return true;
        }""",
        polling="raf",
        timeout=LOOK_MS,
    )
    yield [click("#buy")]


async def terminal(page: Any) -> Steps:
    """Look at the files, and delete one that is of the kind."""
    await page.wait_for_function("() => document.activeElement.id === 'terminal-target'")
    yield [click("#terminal"), TypeAction(text="ls", enter_after=True)]
    said, files = await page.evaluate("() => [core.getUtterance(), currentFiles]")
    kind = re.search(r"extension \.(\S+)", said)
    fits = [name for name in files if (name.endswith(kind[1]) if kind else "." not in name)]
    yield [TypeAction(text=f"rm {fits[0]}", enter_after=True)]


async def sections(page: Any) -> Steps:
    """Open the section with the link, and click the link as it comes out."""
    want = await quoted(page)
    section, place = await page.evaluate(
        """want => {
          const parts = [...document.querySelectorAll('#area > .ui-accordion-content')];
          const has = part => [...part.querySelectorAll('.alink')]
            .findIndex(link => link.textContent === want);
          const section = parts.findIndex(part => has(part) >= 0);
          return [section, has(parts[section])];
        }""",
        want,
    )
    link = f"#area > .ui-accordion-content >> nth={section} >> .alink >> nth={place}"
    yield [click(f"#area h3 >> nth={section}"), click(link)]


async def tabs(page: Any) -> Steps:
    """Show the tab with the link, and click the link."""
    want = await quoted(page)
    found = await page.evaluate(
        """want => {
          for (const panel of document.querySelectorAll('[id^=tabs-]')) {
            const links = [...panel.querySelectorAll('.alink')];
            const place = links.findIndex(link => link.textContent === want);
            if (place >= 0) return [panel.id, place];
          }
        }""",
        want,
    )
    if found is None:  # it is in none: then the second, empty tab is the answer
        yield [click('a[href="#tabs-2"]')]
        return
    tab, place = found
    yield [click(f'a[href="#{tab}"]'), click(f"#{tab} .alink >> nth={place}")]


async def menu(page: Any) -> Steps:
    """Go from menu to menu as they open under the pointer, and click the last item."""
    said = await page.evaluate(_UTTERANCE)
    *parents, leaf = said.removeprefix("Select ").split(">")
    items = [by_text("#menu li > div", name.strip()) for name in parents]
    yield [
        *(MoveAction(selector=item) for item in items),
        click(by_text("#menu li > div", leaf.strip())),
    ]


async def menu_of_icons(page: Any) -> Steps:
    """Open the menu, and its second one where the item is in that."""
    want, inner = await page.evaluate(
        """() => {
          const words = core.getUtterance().match(/labeled "(.+)"/);
          const icon = document.querySelector('#query .ui-icon');
          const leaf = [...document.querySelectorAll('#menu li > div')].find(item => words
            ? item.textContent === words[1]
            : icon && item.querySelector('.' + icon.classList[1]));
          return [leaf.textContent, leaf.closest('ul').id !== 'menu'];
        }"""
    )
    way = [MoveAction(selector=by_text("#menu > li > div", "Playback"))] if inner else []
    yield [click("#open-menu"), *way, click(by_text("#menu li > div", want))]


async def box(page: Any) -> Steps:
    """Drag the small box into the large one."""
    way = (await middle(page, "#draggableSmall"), await middle(page, "#draggableLarge"))
    yield [DragAction(path=way), click("#subbtn")]


async def _drag(page: Any, item: int, to: int) -> DragAction:
    """Drag an item of a list to where another is, a little beyond its middle."""
    start = await middle(page, f"#sortable > li >> nth={item}")
    end = await middle(page, f"#sortable > li >> nth={to}")
    beyond = 4 if to > item else -4
    return DragAction(path=(start, Point(x=end.x, y=end.y + beyond), Point(x=end.x, y=end.y)))


def item_to_place(wide: int) -> Plan:
    """Drag an item of a list, or of a grid so many items wide, to where it is wanted."""

    async def plan(page: Any) -> Steps:
        said = await page.evaluate(_UTTERANCE)
        names = await page.eval_on_selector_all(
            "#sortable > li > div", "items => items.map(item => item.textContent)"
        )
        name, where = re.fullmatch(r"Drag (\S+) (?:to the )?(.+?)\.?", said).groups()  # pyright: ignore[reportOptionalMemberAccess]
        item = names.index(name)
        yield [await _drag(page, item, _place(where, item, len(names), wide))]

    return plan


def _place(where: str, item: int, count: int, wide: int) -> int:
    """The place that words mean, from 0."""
    moved = {"up by one": -wide, "down by one": wide, "left by one": -1, "right by one": 1}
    if where.removesuffix(" position") in moved:
        return item + moved[where.removesuffix(" position")]
    if number := re.match(r"\d+", where):
        return int(number[0]) - 1
    if wide == 1:
        return 0 if where == "top" else count - 1
    row = next((i for i, word in enumerate(("top", "center", "bottom")) if word in where), 0)
    column = 0 if "left" in where else 2 if "right" in where else 1
    return row * wide + column


async def numbers(page: Any) -> Steps:
    """Drag numbers to where they belong, one after the other."""
    read = "items => items.map(item => Number(item.textContent))"
    for place in range(3):
        now = await page.eval_on_selector_all("#sortable > li > div", read)
        item = now.index(min(now[place:]), place)
        if item != place:
            yield [await _drag(page, item, place)]
    yield [click("#subbtn")]


def _to(value: int, lowest: int, highest: int, slider: str) -> list[Action]:
    """Keys that bring a slider to a value: its lowest, then by fifths, then one by one."""
    fifth = (highest - lowest) // 5
    jumps, ones = divmod(value - lowest, fifth)
    if ones > fifth / 2 and value + fifth - ones <= highest:
        jumps, ones = jumps + 1, ones - fifth
    one = "ArrowRight" if ones > 0 else "ArrowLeft"
    keys = ["Home", *["PageUp"] * jumps, *[one] * abs(ones)]
    return [click(f"{slider} .ui-slider-handle"), *(PressAction(keys=(key,)) for key in keys)]


async def slider(page: Any) -> Steps:
    """Bring a slider to a value."""
    low, high = await page.evaluate(
        "() => ['min', 'max'].map(x => $('#slider').slider('option', x))"
    )
    said = await page.evaluate(_UTTERANCE)
    yield [*_to(int(re.findall(r"-?\d+", said)[0]), low, high, "#slider"), click("#subbtn")]


async def sliders(page: Any) -> Steps:
    """Bring three sliders to their values."""
    wanted = [int(each) for each in re.findall(r"\d+", await page.evaluate(_UTTERANCE))]
    for i, value in enumerate(wanted, start=1):
        yield _to(value, 0, 20, f"#slider-{i}")
    yield [click("#subbtn")]


async def form(page: Any) -> Steps:
    """Bring a slider to a value, and check one box."""
    said = await page.evaluate(_UTTERANCE)
    value, box_number = (int(each) for each in re.findall(r"-?\d+", said))
    yield [*_to(value, -10, 10, "#slider"), click(f"#checkbox-{box_number}"), click("#subbtn")]


async def spinner(page: Any) -> Steps:
    """Click up or down until the value is there: a press that lasts counts on."""
    want = int(re.findall(r"-?\d+", await page.evaluate(_UTTERANCE))[0])
    while missing := want - int(await page.input_value("#spinner") or 0):
        yield [click(f".ui-spinner-{'up' if missing > 0 else 'down'}")]
    yield [click("#subbtn")]


async def autocomplete(page: Any) -> Steps:
    """Type how it begins, and click it in the list that comes."""
    said = await page.evaluate(_UTTERANCE)
    parts = re.findall(r'"([^"]+)"', said)
    want = await page.evaluate(
        """([start, end]) => ITEMS.find(item => item.startsWith(start)
          && (!end || item.endsWith(end)))""",
        [parts[0], parts[1] if len(parts) > 1 else ""],
    )
    yield [TypeAction(selector="#tags", text=parts[0])]
    await page.wait_for_selector(".ui-menu-item", timeout=LOOK_MS)
    yield [click(by_text(".ui-menu-item > div", want)), click("#subbtn")]


_SHOWN = """() => [$.datepicker._curInst.drawYear, $.datepicker._curInst.drawMonth]"""


async def _date(page: Any, said: str) -> Steps:
    """Choose a day: month by month back from the one that is shown first."""
    month, day, year = (int(each) for each in re.findall(r"(\d+)/(\d+)/(\d+)", said)[0])
    yield [click("#datepicker")]
    shown_year, shown_month = await page.evaluate(_SHOWN)
    back = (shown_year - year) * 12 + shown_month + 1 - month
    turn = ".ui-datepicker-prev" if back > 0 else ".ui-datepicker-next"
    yield [*[click(turn)] * abs(back), click(by_text(".ui-datepicker-calendar a", str(day)))]


async def date(page: Any) -> Steps:
    """Choose a day in a calendar that fades in."""
    async for steps in _date(page, await page.evaluate(_UTTERANCE)):
        yield steps
    yield [click("#subbtn")]


async def flight(page: Any) -> Steps:
    """Choose two airports and a day, search, and book the best."""
    said = await page.evaluate(_UTTERANCE)
    best, start, end = re.findall(r"the (\w+) one-way flight from: (.+) to: (.+) on ", said)[0]
    for field, name in (("#flight-from", start), ("#flight-to", end)):
        whole = await page.evaluate(
            """name => DOMESTIC_FLIGHTS.find(each => each.includes('(' + name + ')')
              || each.startsWith(name))""",
            name,
        )
        yield [TypeAction(selector=field, text=whole[:20])]
        await page.wait_for_selector(".ui-menu-item >> visible=true", timeout=LOOK_MS)
        yield [click(by_text(".ui-menu-item > div:visible", whole))]
    async for steps in _date(page, said):
        yield steps
    yield [click("#search")]
    nth = await page.eval_on_selector_all(
        ".flight",
        """(flights, best) => {
          const of = best === 'cheapest'
            ? each => Number(each.querySelector('.flight-price').dataset.price)
            : each => Number(each.querySelector('.time-duration').dataset.duration);
          const all = flights.map(of);
          return all.indexOf(Math.min(...all));
        }""",
        best,
    )
    yield [click(f".flight-price >> nth={nth}")]


INSIDE = "iframe >> internal:control=enter-frame >> "


async def american(page: Any) -> Steps:
    """Fill in a form in a frame, whose calendar slides over it, and search."""
    request = await page.evaluate("() => core.currentQuestion.request")
    for field in ("origin", "destination"):
        name = f"segments[0].{field}"
        yield [TypeAction(selector=f'{INSIDE}input[name="{name}"]', text=request[name])]
        yield [PressAction(keys=("Escape",))]
    for segment in ("segments[0]", "segments[1]"):
        name = f"{segment}.travelDate"
        month, day, _year = (int(each) for each in request[name].split("/"))
        cell = f'td[data-month="{month - 1}"][data-year="2017"] a:text-is("{day}")'
        yield [
            click(f'{INSIDE}input[name="{name}"]'),
            click(f"{INSIDE}{cell} >> visible=true"),
        ]
    yield [click(f"{INSIDE}.miniwob-main-form button[type=submit]")]


async def alaskan(page: Any) -> Steps:
    """Choose cities in lists and days in calendars, both of which pop up in a frame, and search."""
    request = await page.evaluate("() => core.currentQuestion.request")
    if request.get("SearchFields.SearchType") == "OneWay":
        yield [click(f"{INSIDE}label[for=srh-isow]")]
    for field, name in (("geo-from", "DepartureCity"), ("geo-to", "ArrivalCity")):
        city = request[f"SearchFields.{name}"]
        found = f'{INSIDE}#input-selections-{field} [data-value="{city}"]'
        while await page.input_value(f"{INSIDE}#{field}") != city:  # the list may change meanwhile
            yield [TypeAction(selector=f"{INSIDE}#{field}", text=city.partition(",")[0])]
            await page.wait_for_selector(found, timeout=LOOK_MS)
            yield [click(found)]
    for field, name in (("departure-date", "DepartureDate"), ("return-date", "ReturnDate")):
        if given := request.get(f"SearchFields.{name}"):
            month, day, _year = (int(each) for each in given.split("/"))
            yield [click(f"{INSIDE}#{field}")]
            shown = await page.text_content(f"{INSIDE}.current-month")
            turns = month - 1 - MONTHS.index(shown.split()[0])
            yield [
                *[click(f"{INSIDE}#next-month a")] * turns,
                click(f'{INSIDE}a.cal-day:text-is("{day}") >> visible=true'),
                click(f"{INSIDE}#btnDone"),
            ]
    others = int(request.get("SearchFields.NumberOfTravelers", 1)) - 1
    yield [click(f"{INSIDE}.tnum-button >> nth=1")] * others
    if request.get("SearchFields.CabinType") == "First":
        yield [click(f"{INSIDE}h2.drop-head"), click(f"{INSIDE}label[for=cabin-first]")]
    yield [click(f'{INSIDE}input[value="Find Flights"]')]


PLANS: Mapping[str, Plan] = {
    "click-pie": pie,
    "click-pie-nodelay": pie,
    "moving-items": moving,
    "chase-circle": clicks("() => ['#circ']"),
    "hover-shape": clicks("() => ['svg >> nth=0']"),
    "simon-says": simon,
    "stock-market": stock,
    "terminal": terminal,
    "click-collapsible": clicks("() => ['#area h3 >> nth=0', '#subbtn']"),
    "click-collapsible-nodelay": clicks("() => ['#area h3 >> nth=0', '#subbtn']"),
    "click-collapsible-2": sections,
    "click-collapsible-2-nodelay": sections,
    "click-menu": menu,
    "click-menu-2": menu_of_icons,
    "click-widget": clicks("""() =>
      [`[data-type="${core.getUtterance().match(/"(.+)"/)[1]}"] >> nth=0`]"""),
    "click-dialog": clicks("() => ['.ui-dialog-titlebar-close']"),
    "click-dialog-2": clicks("""() => {
      const want = core.getUtterance().match(/labeled "(.+)"/)[1];
      return [want === 'x' ? '.ui-dialog-titlebar-close' : `.ui-dialog button:text-is("${want}")`];
    }"""),
    "click-button": clicks("""() =>
      [`#area button:text-is("${core.getUtterance().match(/"(.+)"/)[1]}") >> nth=0`]"""),
    "click-tab": clicks("""() =>
      [`a[href="#tabs-${core.getUtterance().match(/Tab #(\\d)/)[1]}"]`]"""),
    "click-tab-2": tabs,
    "click-tab-2-easy": tabs,
    "click-tab-2-medium": tabs,
    "click-tab-2-hard": tabs,
    "drag-box": box,
    "drag-items": item_to_place(1),
    "drag-items-grid": item_to_place(3),
    "drag-sort-numbers": numbers,
    "form-sequence": form,
    "use-slider": slider,
    "use-slider-2": sliders,
    "use-spinner": spinner,
    "use-autocomplete": autocomplete,
    "use-autocomplete-nodelay": autocomplete,
    "choose-date": date,
    "choose-date-easy": date,
    "choose-date-medium": date,
    "choose-date-nodelay": date,
    "book-flight": flight,
    "book-flight-nodelay": flight,
    "flight.AA": american,
    "flight.Alaska": alaskan,
    "flight.Alaska-auto": alaskan,
    "flight.Alaska-auto-medium": alaskan,
}
"""Each page that a timer, a transition, or a widget of jQuery UI changes by itself."""

PREPARATIONS: Mapping[str, str] = {
    "simon-says": """() => {
      window.pushes = [];
      const note = changes => changes.forEach(change => window.pushes.push({
        id: change.target.id, at: performance.now(),
        down: !(change.oldValue || '').includes('push'),
      }));
      new MutationObserver(note).observe(document.querySelector('#area'),
        { subtree: true, attributes: true, attributeFilter: ['class'], attributeOldValue: true });
    }""",
}
"""What a plan has the page write down from the start, because it is too late to look after it."""

UNJUDGED: Mapping[str, str] = {
    "chase-circle": "its reward counts the milliseconds under the pointer",
    "hover-shape": "it never gives its reward: that line of its script is a comment",
}
"""Pages whose reward no two runs could share; what is compared is what was pressed."""

LEFT_OUT: Mapping[str, str] = {
    "button-delay": "it measures the time between two clicks, and moves nothing",
    "flight.Delta": "it is not in the distribution of MiniWoB++",
    "flight.JetBlue": "it is not in the distribution of MiniWoB++",
}
"""Pages that are not run."""

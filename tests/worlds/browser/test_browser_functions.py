"""What a task's `setup` and `evaluate` call in a browser, in the browser itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.environment.function import Function, History, Phase, Situation
from hud_mcp.errors import ActionFailed, GraderFailed, InvalidTask
from hud_mcp.values.action import (
    ClickAction,
    CustomAction,
    Point,
    PressAction,
    TypeAction,
    parse_action,
)
from hud_mcp.world import Opening, Shared
from hud_mcp.worlds.browser import Browser, BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

FUNCTIONS: dict[str, Function] = {f.name: f for f in Browser.functions}

FORM = """<!doctype html><title>Form</title><h1 id="head">Tea  and   milk</h1>
<form onsubmit="return false"><label id="lab"><input type="checkbox" id="agree"> I agree</label>
<input id="who" name="children"><input id="other"><select id="size"><option>S<option>L</select>
<button class="send big"><span id="inner">Send it</span></button></form>
<a id="away" href="#gone" onclick="this.remove()">Leave</a>
<iframe srcdoc="<p>Framed words</p><button id='framed'>Frame</button>"></iframe>"""


class Played:
    """A browser that an agent works in, with what it did."""

    def __init__(self, world: BrowserWorld) -> None:
        self.world = world
        self.done: list[Any] = []
        self.targets: list[str | None] = []

    async def act(self, **action: Any) -> None:
        """Do one thing as the agent."""
        parsed = parse_action(action)
        effect = await self.world.act(parsed)
        self.done.append(parsed.model_dump(mode="json", exclude_none=True))
        self.targets.append(effect.target)

    async def call(self, name: str, *args: Any, phase: Phase = Phase.EVALUATE) -> Any:
        """Call a function."""
        history = History(self.done, self.targets)
        situation = Situation(world=self.world, history=history, phase=phase)
        with anyio.fail_after(PATIENCE_S):
            return await FUNCTIONS[name].call(args, situation)


Play = Callable[..., Awaitable[Played]]


@pytest.fixture
async def play(shared: Shared) -> AsyncIterator[Play]:
    """Open a browser on a document, for an agent whose hits are written down."""
    worlds: list[BrowserWorld] = []

    async def open_world(html: str = FORM, **options: Any) -> Played:
        spec = Browser(start=None, **options)
        opening = Opening(shared=shared, names_targets=True, context=spec.context_space.default)
        worlds.append(await spec.open(replace(opening, context={})))
        played = Played(worlds[-1])
        await played.call("load_html", html, phase=Phase.SETUP)
        return played

    yield open_world
    for world in worlds:
        await world.close()


async def test_words_and_elements_are_found_and_what_is_not_there_is_not(play: Play) -> None:
    """Each function that looks at the page gives 1.0 where it holds, and 0.0 where it does not."""
    played = await play()
    for name, args, expected in (
        ("page_contains", ["tea and MILK"], 1), ("page_contains", [["Tea", "Framed words"]], 1),
        ("page_contains", ["Tea", "coffee"], 0), ("contains_text", ["Send it"], 1),
        ("element_exists", ["#who"], 1), ("element_exists", ["#who", "#nobody"], 0),
        ("element_text", ["#head", "Tea and milk"], 1), ("element_text", ["h1", "Tea"], 0),
        ("text_matches", ["h1", r"^Tea\s"], 1), ("text_matches", ["h1", "coffee"], 0),
        ("url_contains", ["loaded.localhost"], 1), ("url_contains", ["example"], 0),
        ("url_match", ["http://loaded.localhost/1"], 1), ("url_match", ["loaded.localhost"], 0),
    ):  # fmt: skip
        assert await played.call(name, *args) == expected, (name, args)


@pytest.mark.long
async def test_a_page_that_overrides_the_dom_deceives_no_function(play: Play) -> None:
    """Selectors and texts are read from outside of a page's scripts, and so is what is hit."""
    played = await play(
        FORM
        + """<script>
        const fake = document.createElement('b');
        fake.id = 'fake'; fake.textContent = 'You won';
        document.querySelector = document.getElementById = () => fake;
        document.querySelectorAll = () => [fake];
        document.elementFromPoint = Document.prototype.elementFromPoint = () => fake;
        Element.prototype.matches = () => true;
        for (const [proto, name] of [[HTMLElement.prototype, 'innerText'],
                                     [Node.prototype, 'textContent']])
          Object.defineProperty(proto, name, { get: () => 'You won' });
        Array.prototype.some = () => true; String.prototype.includes = () => true;
        </script>"""
    )
    assert await played.call("element_exists", "#fake") == 0
    assert await played.call("page_contains", "You won") == 0
    assert await played.call("element_text", "#head", "You won") == 0
    assert await played.call("element_text", "#head", "Tea and milk") == 1
    assert await played.world.text() != "You won"
    await played.act(type="click", point={"x": 5, "y": 5})
    assert await played.call("selector_history", "#fake") == 0


@pytest.mark.long
async def test_what_actions_hit_is_known_after_their_elements_are_gone(play: Play) -> None:
    """A click is of its control, typing of its field; selectors are Playwright's, at any time."""
    played = await play()
    await played.act(type="click", selector="#inner")
    await played.act(type="type", selector="#who", text="Ann")
    await played.act(type="click", selector="#agree")
    await played.act(
        type="custom", action="select_option", args={"selector": "#size", "values": ["L"]}
    )
    await played.act(type="press", keys=["tab"])
    await played.act(type="click", selector="#away")
    await played.call("load_html", "<p>Another page</p>", phase=Phase.SETUP)
    for selector, index, expected in (
        ("button.send", None, 1), ("form > button:last-of-type", 0, 1), ("text=Send it", 0, 1),
        ("#who", 1, 1), ("input[name=children]", 1, 1), ("#who", 0, 0), ("#agree", 2, 1),
        ("#size", 3, 1), ("a[href='#gone']", -1, 1), ("#away", -1, 1), ("#other", None, 0),
        ("form", None, 0), ("body", None, 0), ("h1 + form #who", None, 1), ("#who", 99, 0),
    ):  # fmt: skip
        given = [selector] if index is None else [selector, index]
        assert await played.call("selector_history", *given) == expected, given
    with pytest.raises(ActionFailed, match="is not a selector"):
        await played.call("selector_history", "p[")


@pytest.mark.long
async def test_an_element_in_a_frame_or_under_a_point_is_hit_too(play: Play) -> None:
    """A point leads through a frame of the same site to what lies there."""
    played = await play("<style>body{margin:0}iframe{border:7px solid;padding:9px}</style>" + FORM)
    box = await played.world.page.frames[1].locator("#framed").bounding_box()
    assert box is not None
    await played.act(type="click", point={"x": box["x"] + 5, "y": box["y"] + 5})
    assert await played.call("selector_history", "#framed") == 1
    assert await played.call("selector_history", "iframe") == 0


async def test_typing_counts_where_it_went_and_as_it_was_written(play: Play) -> None:
    """Into the named field or the focused one; another text or another field does not count."""
    played = await play()
    await played.act(type="type", selector="#who", text="Ann")
    await played.act(type="click", selector="#other")
    await played.act(type="type", text="Ben")
    for args, expected in (
        (["#who", "Ann"], 1), (["#other", "Ben"], 1), (["#who", "Ben"], 0), (["#who", "An"], 0),
        ([{"selector": "#who", "value": "Ann"}], 1),
    ):  # fmt: skip
        assert await played.call("verify_type_action", *args) == expected, args


@pytest.mark.long
async def test_the_number_and_the_last_of_actions_leave_answers_out(play: Play) -> None:
    """Counts are exact or within bounds; the last action has at least the fields that are named."""
    played = await play()
    await played.act(type="click", selector="#who")
    await played.act(type="click", x=30, y=40)
    played.done.append({"type": "response", "text": "done"})
    for args, expected in (
        ([2], 1), ([3], 0), ([{"min": 2}], 1), ([{"min_length": 3}], 0),
        ([{"min_length": 1, "max_length": 2}], 1), ([{"max": 1}], 0),
    ):  # fmt: skip
        assert await played.call("history_length", *args) == expected, args
    for action, expected in (
        ({"type": "click"}, 1), ({"type": "click", "point": {"x": 30}}, 1),
        ({"type": "click", "x": 30, "y": 40}, 1), ({"x": 31}, 0), ({"type": "response"}, 0),
    ):  # fmt: skip
        assert await played.call("raw_last_action_is", action) == expected, action
    with pytest.raises(InvalidTask, match="history_length"):
        await played.call("history_length", {"mni": 1})


@pytest.mark.long
async def test_cookies_are_set_for_a_page_and_read_back(play: Play) -> None:
    """By name and value for the page that is shown, or with the fields that they have."""
    played = await play()
    await played.call("set_cookies", {"a": "1", "b": "2"}, phase=Phase.SETUP)
    more = [{"name": "c", "value": "3", "domain": "example.com"}]
    await played.call("set_cookies", more, phase=Phase.SETUP)
    assert "a=1" in await played.world.page.evaluate("document.cookie")
    for name, args, expected in (
        ("cookie_exists", ["a", "c"], 1), ("cookies_exist", [["a", "d"]], 0),
        ("cookie_match", [["a", "1", "b", "2"]], 1), ("cookie_match", ["a", "2"], 0),
    ):  # fmt: skip
        assert await played.call(name, *args) == expected, (name, args)
    with pytest.raises(ActionFailed, match="names with values"):
        await played.call("cookie_match", ["a"])
    with pytest.raises(ActionFailed, match="'name' and a 'value'"):
        await played.call("set_cookies", [{"name": "x"}], phase=Phase.SETUP)


async def test_a_setup_clicks_types_and_waits_as_no_action_of_the_agent(play: Play) -> None:
    """What a setup does is done, and is nothing that the agent did."""
    played = await play(FORM + "<script>setTimeout(() => head.className = 'ready', 200)</script>")
    await played.call("wait_for_element", "#head.ready", phase=Phase.SETUP)
    await played.call("click", "#agree", phase=Phase.SETUP)
    await played.call("type", "#who", "Ann", phase=Phase.SETUP)
    await played.call("browser.maximize", phase=Phase.SETUP)
    page = played.world.page
    assert await page.is_checked("#agree")
    assert await page.input_value("#who") == "Ann"
    assert await played.call("history_length", 0) == 1
    with pytest.raises(ActionFailed, match=r"'#never' did not appear within 0\.2 s"):
        await played.call("wait_for_element", "#never", 0.2, phase=Phase.SETUP)


@pytest.mark.long
async def test_an_expression_that_never_ends_holds_up_nobody(play: Play) -> None:
    """It is ended after seconds, while the loop goes on, and is no grade."""
    played = await play(f"<p>{'a' * 40}!</p>")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.05)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        with pytest.raises(GraderFailed, match="takes more than"):
            await played.call("text_matches", "p", "^(a+)+$")
        group.cancel_scope.cancel()
    assert ticks > 5


async def test_nothing_to_look_for_is_a_mistake_and_no_success(play: Play) -> None:
    """An empty text or list is refused: every page would pass."""
    played = await play()
    for name, args in (
        ("page_contains", [""]), ("page_contains", [[]]), ("url_contains", [["a", ""]]),
        ("cookie_exists", [[]]), ("cookie_match", [[]]),
    ):  # fmt: skip
        with pytest.raises(ActionFailed):
            await played.call(name, *args)


@pytest.mark.long
async def test_a_session_that_nobody_asks_keeps_no_hits(shared: Shared) -> None:
    """Without functions that may ask, an action costs nothing more."""
    world = await Browser(start=None).open(Opening(shared=shared))
    try:
        await world.load_html(FORM)
        for action in (
            ClickAction(selector="#who"), TypeAction(selector="#who", text="x"),
            PressAction(keys=["tab"]), ClickAction(point=Point(x=3, y=3)),
            CustomAction(action="reload"),
        ):  # fmt: skip
            assert (await world.act(action)).target is None
    finally:
        await world.close()


@pytest.mark.long
async def test_an_element_among_very_many_is_still_known(play: Play) -> None:
    """Where too much lies beside it, its place is lost, and what it is by itself is not."""
    rows = "".join(f"<li class='row number-{n} {'x' * 80}'>{n}</li>" for n in range(3000))
    played = await play(f"<ul id='list'>{rows}</ul>")
    await played.act(type="click", selector=".number-1500")
    assert await played.call("selector_history", "#list > .number-1500") == 1
    assert await played.call("selector_history", ".number-1501") == 0
    assert len(played.targets[0] or "") < 60_000

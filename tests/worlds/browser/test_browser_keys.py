"""Keys, chords and typing in the browser world."""

import pytest
from acting import LOGGING, Browse, act, refusal, seen
from tables import each_of

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import (
    ClickAction,
    KeyDownAction,
    KeyUpAction,
    Point,
    PressAction,
    TypeAction,
)
from hud_mcp.worlds.browser.hands import playwright_keys

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

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


async def test_a_chord_goes_down_in_order_and_up_in_reverse(browse: Browse) -> None:
    """ctrl, shift, k: three keys down, then up the other way round."""
    world = await browse(LOGGING + "<p>x</p>")
    await act(world, PressAction(keys=("ctrl", "shift", "k")))
    assert [entry[1] for entry in await seen(world, "keydown")] == ["Control", "Shift", "K"]
    assert [entry[1] for entry in await seen(world, "keyup")] == ["K", "Shift", "Control"]


@pytest.mark.long
async def test_a_key_stays_down_until_it_is_let_go(browse: Browse) -> None:
    """`keydown` holds across actions, `keyup` ends it."""
    world = await browse(LOGGING + "<p id=p>x</p>")
    await act(world, KeyDownAction(keys=("shift",)), ClickAction(selector="#p"))
    await act(world, KeyUpAction(keys=("shift",)), ClickAction(selector="#p"))
    assert [entry[2] for entry in await seen(world, "click")] == [True, False]


@each_of("name", [*CLA_KEYS, "num7", "f12", "f24", "a", "+", "é", "ArrowDown"])
def test_every_key_of_the_common_language_is_known(name: str) -> None:
    """Each of the HUD SDK's key names is one of Playwright's or the UI Events specification's."""
    if name == "start":
        with pytest.raises(ActionFailed):
            playwright_keys([name])
    else:
        assert playwright_keys([name])


@each_of(
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
async def test_a_code_is_typed_on_into_the_next_fields(browse: Browse) -> None:
    """Where a page moves the focus at each key, the characters follow it, as from a person."""
    world = await browse(
        "<input maxlength=1><input maxlength=1><input maxlength=1><script>"
        "addEventListener('keyup', e => e.target.nextElementSibling?.focus?.())</script>"
    )
    await act(world, TypeAction(selector="input >> nth=0", text="123"))
    held = await world.page.locator("input").evaluate_all("all => all.map(e => e.value)")
    assert held == ["1", "2", "3"]


@pytest.mark.long
async def test_lines_and_long_texts_are_put_in_at_once(browse: Browse) -> None:
    """A chat that sends at Enter gets both lines, and 2,000 characters are not typed one by one."""
    world = await browse(
        LOGGING + "<textarea id=t onkeydown=\"if (event.key === 'Enter') o.textContent = 'sent'\">"
        "</textarea><p id=o></p>"
    )
    await act(world, TypeAction(selector="#t", text="two\nlines"))
    assert await world.page.input_value("#t") == "two\nlines"
    assert await world.page.inner_text("#o") == ""
    inputs = "seen.filter(event => event[0] === 'input').length"
    before = await world.page.evaluate(inputs)
    await world.act(TypeAction(selector="#t", text="x" * 2000))
    assert await world.page.input_value("#t") == "x" * 2000
    assert await world.page.evaluate(inputs) - before <= 2, "one, and one that clears the field"
    await act(world, TypeAction(selector="#t", text="", enter_after=True))
    assert await world.page.inner_text("#o") == "sent"


@pytest.mark.long
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

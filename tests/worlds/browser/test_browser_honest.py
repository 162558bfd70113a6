"""The text that an agent is shown says what is there, and what it may act on."""

# ruff: noqa: E501  # pages are easier to read unbroken

import re
from collections.abc import Awaitable, Callable

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import ClickAction, CustomAction, TypeAction
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref, refs_in
from hud_mcp.worlds.browser import BrowserWorld

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]


async def look(world: BrowserWorld, *, changes: bool = False) -> str:
    """The text of a look."""
    with anyio.fail_after(PATIENCE_S):
        return (await world.observe(Look(changes=changes))).text or ""


@pytest.mark.long
async def test_after_a_refusal_new_refs_are_named(browse: Browse) -> None:
    """New ones, ones that are gone, another document, or that nothing is new; once each."""
    world = await browse(
        {
            "index.html": "<button id=a>One</button><p id=p></p>",
            "other.html": "<button>Two</button>",
        }
    )
    await look(world)

    async def refused() -> str:
        with pytest.raises(ActionFailed):
            await world.act(ClickAction(ref="e99"))
        return await look(world)

    before = await look(world)
    assert await refused() == before, "no ref is new, and nothing is said"
    await world.page.evaluate("() => { p.innerHTML = '<button>New</button>'; a.remove() }")
    text = await refused()
    new = find_ref(text, 'button "New"')
    assert f"{new}" in text.partition("Note: New refs: ")[2].partition("\n")[0]
    assert re.search(r"Gone: e\d+\.", text)
    await world.goto("/other.html")
    assert "another document than in the last text: each ref in it is new" in await refused()
    await world.act(CustomAction(action="goto", args={"url": "/"}))
    assert "Note:" not in await look(world)


async def test_every_link_has_a_ref_that_can_be_clicked(browse: Browse) -> None:
    """Those without a box of their own too, and the right one of two that are called the same."""
    world = await browse(
        "<a href='#seen'>same</a><a href='#hidden' hidden>same</a>"
        "<a href='#abs'><div style='position:absolute;top:200px;width:50px;height:20px'>same</div></a>"
        '<a href="#quote"><div style="position:absolute;top:250px;width:90px;height:20px">say "so"</div></a>'
    )
    text = await look(world)
    refs = refs_in(text)
    assert len(refs) == 3, text
    for ref, place in zip(refs, ("#seen", "#abs", "#quote"), strict=True):
        await world.act(ClickAction(ref=ref))
        assert world.url.endswith(place)


async def test_a_password_is_masked_wherever_it_is_told(browse: Browse) -> None:
    """In the page, in a frame, in a shadow root and in what changed; other fields are as they are."""
    world = await browse(
        {
            "index.html": "<label>User <input id=u value=hunter2></label><label>Password <input id=p type=password></label><iframe src=/inner.html></iframe>",
            "inner.html": "<label>Pin <input type=password value=4711></label>",
        }
    )
    text = await look(world)
    assert "4711" not in text
    await world.act(TypeAction(selector="#p", text="hunter2"))
    changed = await look(world, changes=True)
    assert 'textbox "Password"' in changed
    assert changed.count("hunter2") == 0
    text = await look(world)
    assert "•" * 7 in text
    assert text.count("hunter2") == 1, "the user's name is no password"


@pytest.mark.long
async def test_blanks_at_the_ends_of_a_field_are_shown(browse: Browse) -> None:
    """In quotes, so that they can be seen; a field beside it of the same words stays as it is."""
    world = await browse(
        "<label>A <input id=a></label><label>B <input value=tea></label><label>C <textarea id=c></textarea></label>"
    )
    await world.act(TypeAction(selector="#a", text="tea "))
    await world.act(TypeAction(selector="#c", text="two\n"))
    text = await look(world)
    assert ': "tea "' in text
    assert text.count("tea") == 2
    assert ': "two\\n"' in text

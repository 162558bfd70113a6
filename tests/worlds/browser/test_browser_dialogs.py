"""A page that asks whether to leave it gets the answer that the agent chose."""

# pages are easier to read unbroken

import anyio
import pytest
from acting import Browse, act, refusal
from waiting import PATIENCE_S

from hud_mcp.values.action import Action, ClickAction, CustomAction, Point, PressAction, TypeAction
from hud_mcp.values.observation import Look

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

DRAFT = """<title>Draft</title><input id=i><a href=/index.html>Leave</a>
<button onclick='location = "/index.html"'>Go</button>
<script>addEventListener('beforeunload', e => { if (i.value) e.preventDefault() })</script>"""
PAGES = {"index.html": "<title>Home</title>", "draft.html": DRAFT}


def custom(action: str, **args: object) -> CustomAction:
    """One of the browser's own actions."""
    return CustomAction(action=action, args=args)


AGENTS_OWN: dict[str, Action] = {
    "goto": custom("goto", url="/index.html"),
    "back": custom("back"),
    "the mouse's back": ClickAction(point=Point(x=1, y=1), button="back"),
    "reload": custom("reload"),
    "close_tab": custom("close_tab"),
}
PAGES_OWN: dict[str, Action] = {
    "a link": ClickAction(selector="a"),
    "a script": ClickAction(selector="button"),
}


@pytest.mark.long
async def test_a_page_stays_where_leaving_it_is_answered_with_cancel(browse: Browse) -> None:
    """By whichever way it would be left; the agent's own ways are refused, and the advice works."""
    wrong: list[str] = []
    for name, action in (AGENTS_OWN | PAGES_OWN).items():
        world = await browse(PAGES)
        await act(world, custom("goto", url="/draft.html"), TypeAction(selector="#i", text="mine"))
        await act(world, custom("answer_dialogs", accept=False))
        began = anyio.current_time()
        if name in AGENTS_OWN:
            said = await refusal(world, action)
        else:
            await act(world, action)
            said = (await world.observe(Look())).text or ""
        wrong += [] if anyio.current_time() - began < 3 else [f"{name}: slow"]
        stays = world.url.endswith("draft.html") and await world.page.input_value("#i") == "mine"
        wrong += [] if stays and "answer_dialogs with accept true" in said else [f"{name}: {said}"]
        await act(world, custom("answer_dialogs", accept=True), action)
        left = not world.url.endswith("draft.html") or await world.page.input_value("#i") == ""
        wrong += [] if left else [f"{name}: not left with accept true"]
        await world.close()
    assert wrong == []


async def test_a_grader_is_not_held_up_by_a_page_that_asks(browse: Browse) -> None:
    """What a template opens after the agent has chosen Cancel is opened, by either way."""
    world = await browse(PAGES)
    for way in (world.goto, world.page.goto):
        await act(world, custom("goto", url="/draft.html"), TypeAction(selector="#i", text="mine"))
        await act(world, custom("answer_dialogs", accept=False), PressAction(keys=("tab",)))
        with anyio.fail_after(PATIENCE_S):
            await way(f"{world.site_url}/index.html")
        assert await world.page.title() == "Home"
        await act(world, custom("answer_dialogs", accept=True))


async def test_a_choice_that_is_neither_yes_nor_no_is_refused(browse: Browse) -> None:
    """A text such as 'false' is not taken for yes."""
    world = await browse(PAGES)
    told = await refusal(world, custom("answer_dialogs", accept="false"))
    assert "accept: expected true or false, got 'false'" in told

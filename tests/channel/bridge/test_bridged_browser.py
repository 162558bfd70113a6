"""The browser behind a HUD server: stepped as one of our own, and left as it is."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from bridging import PAGES, HudServer, bridged, ending, graded, written
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed, InvalidAction
from hud_mcp.session.draft import Stepped
from hud_mcp.session.session import Session
from hud_mcp.values.action import parse_actions
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Look
from hud_mcp.values.refs import find_ref

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def do(session: Session, *actions: dict[str, Any], image: bool = False) -> Stepped:
    """One step."""
    look = Look(image="png" if image else None)
    return await session.step(parse_actions(list(actions)), look)


def text_of(stepped: Stepped) -> str:
    """What it shows in words."""
    return stepped.result.observation.text or ""


def ref_of(text: str, name: str) -> str:
    """The ref of the first line with a name in it."""
    found = find_ref(text, name)
    assert found, text
    return found


async def test_a_page_is_read_and_acted_on(pages: HudServer, tmp_path: Path) -> None:
    """Refs, selectors, points of the picture and navigation; the work in it is graded by HUD."""
    async with bridged(pages.url, tmp_path / "store.sqlite3") as bridge:
        assert "custom" in bridge.environment.world.actions
        assert any("'second'" in n and "one screen only" in n for n in bridge.environment.notes)
        session = await bridge.start("remember", what="milk")
        await session.measure_screen()
        size = session.screen_size
        seen = await do(session, image=True)
        assert "Notes" in text_of(seen)
        picture = seen.result.observation.image
        assert picture is not None
        assert picture.width_px > 600
        assert size == (picture.width_px, picture.height_px), "before any look"
        note, save = ref_of(text_of(seen), "textbox"), ref_of(text_of(seen), 'button "Save"')
        stepped = await do(
            session,
            {"type": "type", "ref": note, "text": "milk"},
            {"type": "click", "ref": save},
        )
        assert stepped.error is None
        assert "paragraph" in text_of(stepped)
        assert "milk" in text_of(stepped)
        await do(session, image=True)
        stepped = await do(session, {"type": "click", "x": 140, "y": 330}, image=True)
        assert "clicked" in text_of(stepped)
        stepped = await do(session, {"type": "custom", "action": "goto", "args": {"url": "/other"}})
        assert "Elsewhere" in text_of(stepped)
        stepped = await do(session, {"type": "custom", "action": "back"})
        assert "Notes" in text_of(stepped)
        with pytest.raises(InvalidAction):
            await do(session, {"type": "dance"})
        assert (await graded(session, "saved")).reward == 1.0
        record = await bridge.record(session)
        assert all(step.screenshot is not None for step in record.steps)


async def test_the_browser_goes_on_when_a_session_ends(pages: HudServer, tmp_path: Path) -> None:
    """One session after another, and two at once, find it there."""
    async with bridged(pages.url, tmp_path / "store.sqlite3") as bridge:
        for _ in range(2):
            session = await bridge.start("remember")
            assert "Notes" in text_of(await do(session))
            await session.cancel()
        first, second = await bridge.start("remember"), await bridge.start("remember")
        assert "Notes" in text_of(await do(first))
        assert "Notes" in text_of(await do(second))


@pytest.mark.stress
async def test_old_refs_are_refused_after_our_server_was_stopped(
    pages: HudServer, tmp_path: Path
) -> None:
    """The page goes on as it was left; what it is read by anew has other refs."""
    store = tmp_path / "store.sqlite3"
    async with bridged(pages.url, store) as first:
        before = await first.start("remember", what="rye")
        seen = await do(before)
        old = ref_of(text_of(seen), 'button "Save"')
        await do(before, {"type": "type", "selector": "#note", "text": "rye"})
    async with bridged(pages.url, store) as second:
        session = await second.find(before.id)
        assert isinstance(session, Session)
        refused = await do(session, {"type": "click", "ref": old})
        assert "Look again" in (refused.error or "")
        new = ref_of(text_of(refused), 'button "Save"')
        assert new != old
        assert (await do(session, {"type": "click", "ref": new})).error is None
        assert (await graded(session, "done")).reward == 1.0


@pytest.mark.stress
async def test_the_hud_server_killed_in_the_middle_of_a_step_is_no_reward(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """The browser may outlive it; what the step would show cannot be seen."""
    hud = mortal(PAGES)
    browsers = psutil.Process(hud.process.pid).children()
    try:
        async with bridged(hud.url, tmp_path / "store.sqlite3") as bridge:
            session = await bridge.start("remember")
            save = ref_of(text_of(await do(session)), 'button "Save"')
            actions = (
                {"type": "type", "selector": "#note", "text": "tea"},
                {"type": "click", "ref": save},
                {"type": "wait", "time": 2000},
            )
            stepping = asyncio.ensure_future(do(session, *actions))
            await written(hud.notes / "saved")
            hud.kill()
            with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed):
                await stepping
            receipt = await ending(session)
            assert (receipt.outcome, receipt.reward) == (Outcome.ENVIRONMENT_FAILED, None)
    finally:
        for browser in browsers:
            with contextlib.suppress(psutil.NoSuchProcess):
                browser.kill()


@pytest.mark.stress
async def test_a_browser_that_ends_is_told_and_the_session_goes_on(
    mortal: Callable[..., HudServer], tmp_path: Path
) -> None:
    """The HUD server is there, so the session is: the agent may still answer."""
    hud = mortal(PAGES)
    async with bridged(hud.url, tmp_path / "store.sqlite3") as bridge:
        session = await bridge.start("kill")
        assert "cannot be attached to" in text_of(await do(session))
        refused = await do(session, {"type": "click", "x": 1, "y": 1})
        assert "cannot be attached to" in (refused.error or "")
        assert (await graded(session, "")).reward == 1.0

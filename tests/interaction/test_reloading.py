"""`serve --reload`: new sessions get what the files say, and held ones keep their version."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ToolListChangedNotification
from peers import LEGACY, MODERN, Peer, stdio_peer
from waiting import PATIENCE_S, until

pytestmark = pytest.mark.anyio

ENV = """
from words import WORD
from hud_mcp import Environment

env = Environment("letters")


@env.template()
async def spell():
    answer = yield f"Spell {WORD}."
    yield 1.0 if answer == WORD else 0.0
"""
SHOUT = '''

@env.tool
async def shout(text: str):
    """Say it aloud."""
    return text.upper()
'''
SITE = """
from hud_mcp import Browser, BrowserWorld, Environment

env = Environment("pages", world=Browser(site="site/"))


@env.template()
async def read(browser: BrowserWorld):
    await browser.goto("/")
    yield "Read the page."
    yield 1.0
"""

Changed = Callable[[], Awaitable[None]]


@asynccontextmanager
async def followed(folder: Path, era: str) -> AsyncIterator[tuple[Peer, Changed]]:
    """A client of a server that follows edits, and what waits until it is told of one."""
    told: list[Any] = []

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.append(message)

    async def changed() -> None:
        await until(lambda: told)
        told.clear()

    source = str(folder / "env.py")
    async with stdio_peer(folder, (source,), "--reload", era=era, message_handler=on_message) as it:
        with anyio.fail_after(PATIENCE_S):
            await it.client.list_tools()
        if era == LEGACY:
            yield it, changed
            return
        async with (
            it.client.listen(tools_list_changed=True) as events,
            anyio.create_task_group() as t,
        ):

            async def hear() -> None:
                async for event in events:
                    told.append(event)  # noqa: PERF401  # each as it comes

            t.start_soon(hear)
            yield it, changed
            t.cancel_scope.cancel()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_an_edit_is_for_new_sessions_and_held_ones_keep_their_version(
    era: str, tmp_path: Path
) -> None:
    """Of a file beside the source, too; clients are told, and a mistake changes nothing."""
    (tmp_path / "env.py").write_text(ENV)
    (tmp_path / "words.py").write_text("WORD = 'lamp'\n")
    async with followed(tmp_path, era) as (peer, changed):
        first = await peer.start("spell")
        (tmp_path / "words.py").write_text("WORD = 'desk'\n")
        await changed()
        second = await peer.start("spell")
        (tmp_path / "env.py").write_text("WORD = \n")
        await until(lambda: "is served: " in (tmp_path / "stderr.log").read_text())
        (tmp_path / "env.py").write_text(ENV + SHOUT)
        await changed()
        with anyio.fail_after(PATIENCE_S):
            names = [tool.name for tool in (await peer.client.list_tools()).tools]
        third = await peer.start("spell")
        loud = await peer.ok("shout", session=third.session, text="desk")
        refused = await peer.error("shout", session=first.session, text="lamp")
        rewards = [
            (await peer.ok("response", session=task.session, answer=answer)).structured["reward"]
            for task, answer in ((first, "lamp"), (second, "desk"), (third, "desk"))
        ]
    assert [task.prompt for task in (first, second)] == ["Spell lamp.", "Spell desk."]
    assert "shout" in names
    assert "DESK" in loud.text
    assert "shout" in refused
    assert rewards == [1.0, 1.0, 1.0]


@pytest.mark.long
async def test_after_a_restart_a_session_of_another_version_is_lost(tmp_path: Path) -> None:
    """Its source has changed, and what another version would say of it is no grade."""
    (tmp_path / "env.py").write_text(ENV)
    (tmp_path / "words.py").write_text("WORD = 'lamp'\n")
    async with followed(tmp_path, LEGACY) as (peer, changed):
        held = await peer.start("spell")
        (tmp_path / "words.py").write_text("WORD = 'desk'\n")
        await changed()
        assert (await peer.status(held.session))["state"] != "ended"
    async with followed(tmp_path, LEGACY) as (peer, _):
        told = await peer.error("response", session=held.session, answer="lamp")
        record = await peer.record(held)
    assert "source has changed" in told
    assert record.receipt is not None
    assert record.receipt.outcome == "lost"
    assert record.receipt.reward is None


@pytest.mark.long
@pytest.mark.browser
async def test_a_site_is_of_the_version_that_a_session_began_with(tmp_path: Path) -> None:
    """A held session that loads a page again sees what was there; a new one sees the edit."""
    (tmp_path / "env.py").write_text(SITE)
    (tmp_path / "site").mkdir()
    page = tmp_path / "site" / "index.html"
    page.write_text("<h1>Before</h1>")
    async with followed(tmp_path, LEGACY) as (peer, changed):
        first = await peer.start("read")
        page.write_text("<h1>Afterwards</h1>")
        await changed()
        second = await peer.start("read")
        reload = {"type": "custom", "action": "reload"}
        seen = [
            (await peer.ok("step", session=task.session, actions=[reload])).text
            for task in (first, second)
        ]
    assert "Before" in seen[0]
    assert "Afterwards" in seen[1]

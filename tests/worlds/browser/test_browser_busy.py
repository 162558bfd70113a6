"""What the machine takes is no time of the browser's: its bounds are stretched by it."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import CustomAction, TypeAction
from hud_mcp.world import Shared
from hud_mcp.worlds.browser import BrowserWorld, SiteRequest, SiteResponse, commands, hands
from hud_mcp.worlds.browser import calls as calls_module

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

Browse = Callable[..., Awaitable[BrowserWorld]]

SLOW = {"index.html": "x", "slow.html": "<script src=/api/late></script><h1>The end</h1>"}
SLOW_S = 3.0
FIELD = "<input id=field disabled>"


@pytest.fixture
async def services() -> AsyncIterator[Shared]:
    """Services that measure what the machine takes, as a server's do."""
    shared = Shared()
    shared.contention.start()
    yield shared
    shared.contention.stop()
    await shared.close()


async def late(_request: SiteRequest, _state: dict[str, Any]) -> SiteResponse:
    """An answer that takes its time, and no processor."""
    await anyio.sleep(SLOW_S)
    return SiteResponse(text="", headers={"content-type": "text/javascript"})


async def hold_up(_request: SiteRequest, _state: dict[str, Any]) -> SiteResponse:
    """An answer that takes the event loop for itself, as an overloaded machine does."""
    await be_busy(6)
    return SiteResponse(text="", headers={"content-type": "text/javascript"})


async def be_busy(times: int) -> None:
    """Let nothing else run, nearly."""
    for _ in range(times):
        time.sleep(0.8)  # noqa: ASYNC251  # it is what is measured
        await anyio.sleep(0.01)


async def open_slow(world: BrowserWorld) -> None:
    """Open the page whose script comes late."""
    with anyio.fail_after(PATIENCE_S):
        await world.act(CustomAction(action="goto", args={"url": "/slow.html"}))


@pytest.mark.long
async def test_a_navigation_has_longer_on_a_busy_machine(
    browse: Browse, services: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that takes longer than the bound arrives after a busy time."""
    world = await browse(SLOW, backend=late, services=services)
    monkeypatch.setattr(commands, "NAVIGATION_BOUND_MS", SLOW_S * 1000 * 0.6)
    await be_busy(5)
    await open_slow(world)
    assert await world.text() == "The end"


async def test_a_navigation_has_its_bound_where_nothing_was_taken(
    browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same document is refused where nobody measured a load."""
    world = await browse(SLOW, backend=late)
    monkeypatch.setattr(commands, "NAVIGATION_BOUND_MS", SLOW_S * 1000 * 0.6)
    with pytest.raises(ActionFailed, match=r"still loading|could not be opened"):
        await open_slow(world)


@pytest.mark.long
async def test_a_field_has_longer_on_a_busy_machine(browse: Browse, services: Shared) -> None:
    """One that takes text later than the bound is filled after a busy time."""
    world = await browse(FIELD, services=services)
    await be_busy(5)
    later_ms = hands.FILL_BOUND_MS * 1.5
    await world.page.evaluate("ms => { setTimeout(() => field.disabled = false, ms) }", later_ms)
    with anyio.fail_after(PATIENCE_S):
        await world.act(TypeAction(selector="#field", text="hello"))
    assert await world.page.input_value("#field") == "hello"


@pytest.mark.long
async def test_an_action_has_what_was_taken_while_it_went_on(
    browse: Browse, services: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is held up for longer than the bound costs the action nothing."""
    monkeypatch.setattr(calls_module, "ACT_BOUND_S", 3.0)
    world = await browse(SLOW, backend=hold_up, services=services)
    await open_slow(world)
    assert await world.text() == "The end"


@pytest.mark.long
async def test_an_action_has_its_bound_where_nothing_was_taken(
    browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same action is over at its bound where nobody measured a load."""
    monkeypatch.setattr(calls_module, "ACT_BOUND_S", 3.0)
    world = await browse(SLOW, backend=hold_up, start=None)
    with pytest.raises(ActionFailed, match="did not respond within 3 s"):
        await open_slow(world)

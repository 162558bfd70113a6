"""What a browser that does not close in time leaves when it is killed: nothing."""

import gc
import os

import anyio
import psutil
import pytest
from waiting import PATIENCE_S, until

from hud_mcp.world import Shared
from hud_mcp.worlds.browser.chromium import Chromium, find_chromium

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


class SlowBrowser:
    """A browser whose own end takes for ever, as on a machine that is busy."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium

    async def close(self) -> None:
        """Wait, whoever cancels."""
        with anyio.CancelScope(shield=True):
            await until(lambda: not self._chromium.alive)

    def kill(self) -> None:
        """Kill it."""
        self._chromium.kill()


def forget_the_driver() -> None:
    """Playwright tells nobody that its driver ended, and the event loop would tell a later test."""
    ended = [
        each.on_error_future
        for each in gc.get_objects()
        if type(each).__name__ == "PipeTransport" and each.on_error_future.done()
    ]
    assert ended
    for future in ended:
        assert future.cancelled() or future.exception()


@pytest.mark.long
async def test_a_browser_that_does_not_close_in_time_is_killed_with_all_of_its_processes() -> None:
    """Its renderers and the driver too; nothing of this process is hit."""
    await kill_a_slow_one()
    forget_the_driver()


async def kill_a_slow_one() -> None:
    """Launch a browser, and close it with too little time."""
    before = set(psutil.Process(os.getpid()).children(recursive=True))
    with anyio.fail_after(PATIENCE_S):
        chromium = await Chromium.launch(find_chromium())
        mine = [p for p in psutil.Process(os.getpid()).children(recursive=True) if p not in before]
        assert len(mine) > 2, "a driver, a browser, and what that has started"
        shared = Shared()

        async def give() -> SlowBrowser:
            return SlowBrowser(chromium)

        await shared.get("browser", give)
        await shared.close(within_s=0.05)
        await until(
            lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in mine)
        )
        chromium.kill()
        await chromium.close()


async def test_a_service_that_is_slow_holds_up_no_other() -> None:
    """Those that close in time have closed, and what one raises is told."""
    closed: list[str] = []

    class Quick:
        async def close(self) -> None:
            closed.append("quick")

    class Broken:
        async def close(self) -> None:
            raise OSError("no")

    shared = Shared()

    async def quick() -> Quick:
        return Quick()

    async def broken() -> Broken:
        return Broken()

    await shared.get("a", quick)
    await shared.get("b", broken)
    with pytest.raises(ExceptionGroup, match="shared services failed to close"):
        await shared.close(within_s=5)
    assert closed == ["quick"]

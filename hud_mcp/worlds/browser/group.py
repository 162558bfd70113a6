"""The processes of a browser that this process launched, to be ended at once."""

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hud_mcp.worlds.browser.devtools import send

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["BrowserGroup"]


@dataclass(frozen=True)
class BrowserGroup:
    """A browser's process group, and the driver that launched it.

    Attributes:
        group: The group's id; Playwright begins one for each browser.
        driver: The driver's process; None where it is not known.
    """

    group: int
    driver: int | None

    @classmethod
    async def of(cls, browser: "Browser") -> Self | None:
        """That of a running browser; None where the system has no such groups.

        Raises:
            Error: Playwright's, where the browser is gone.
        """
        if sys.platform == "win32":
            return None
        cdp = await browser.new_browser_cdp_session()
        told = await send(cdp, "SystemInfo.getProcessInfo")
        await cdp.detach()
        found = [each["id"] for each in told["processInfo"] if each["type"] == "browser"]
        with suppress(ProcessLookupError):
            group = os.getpgid(found[0])
            if group != os.getpgrp():  # never ours
                return cls(group, _child_above(found[0]))
        return None

    def kill(self) -> None:
        """End them, from any thread; those that are gone are no error."""
        with suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
        if self.driver is not None:
            with suppress(ProcessLookupError):
                os.kill(self.driver, signal.SIGKILL)


def _child_above(pid: int) -> int | None:
    """The child of this process that a process descends from."""
    while pid > 1:
        above = _parent(pid)
        if above == os.getpid():
            return pid
        if above is None:
            return None
        pid = above
    return None


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # gone, or another system
        return None
    return int(stat.rpartition(")")[2].split()[1])

"""Installing what is missing, as far as that goes."""

from collections.abc import Callable, Iterable

import anyio

from hud_mcp.plugins.install.machine.chromium import download_chromium
from hud_mcp.plugins.install.machine.need import CHROMIUM, Need
from hud_mcp.plugins.install.machine.packages import PackageManager, Progress
from hud_mcp.worlds.browser.driver import driver_complaint

__all__ = ["install", "still_missing"]

_ROUNDS = 3
"""A loader names one library at a time."""


def install(
    find: Callable[[], Iterable[Need]],
    manager: PackageManager | None,
    *,
    tell: Callable[[str], None],
    progress: Progress | None = None,
) -> list[Need]:
    """Install what is missing, and return what is missing still.

    Args:
        find: Looks for what is missing.
        manager: The system's; None where there is none.
        tell: Told what happens.
        progress: Told how far it is.

    Raises:
        EnvironmentFailed: As `find` does.
    """
    needs = list(find())
    for _ in range(_ROUNDS):
        if not needs or manager is None:
            break
        manager.update()
        if not manager.may_install:
            break
        packages = manager.choose(needs)
        if not packages:
            break
        tell(f"Installing {', '.join(need.what for need in needs)}.")
        manager.install(packages, progress)
        before, needs = needs, list(find())
        if needs == before:
            break
    if CHROMIUM in needs and anyio.run(driver_complaint) is None:
        tell("Downloading Playwright's Chromium.")
        complaint = download_chromium(progress)
        if complaint is not None:
            tell(f"Playwright said: {complaint}")
        needs = list(find())
    return needs


def still_missing(who: str, needs: list[Need], manager: PackageManager | None) -> str:
    """Say what is missing still, why it could not be had, and what to type.

    Args:
        who: What needs it.
        needs: What `install` returned.
        manager: The one that was asked.
    """
    text = f"{who} needs {', '.join(need.what for need in needs)}"
    packages = manager.choose(needs) if manager else []
    if manager is None or not packages:
        return f"{text}: install them, then try again."
    reason = f"; {manager.complaint}" if manager.complaint else ""
    return f"{text}{reason}.\n{manager.advice(packages)}"

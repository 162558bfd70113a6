"""Bringing a Chromium: from where, how large it is, and Playwright's own."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

from hud_mcp.base import libraries
from hud_mcp.plugins.install.machine.need import CHROMIUM
from hud_mcp.plugins.install.machine.packages import PackageManager, Progress

__all__ = ["Offer", "download_chromium", "offer_of"]

_SHELL = "chromium-headless-shell"
_ABOUT = "some 120 MB"
"""What Playwright's own has had for some versions, where nobody can be asked."""
_DOWNLOAD_MIB = 1024 * 1024
_CHROMIUM_ASK_BOUND_S = 10.0
_DRY_BOUND_S = 60
_URL = re.compile(r"Download url:\s+(https://\S+)")
_PERCENT = re.compile(r"(?P<percent>\d+)% of (?P<size>[\d.]+ \w+)")


@dataclass(frozen=True)
class Offer:
    """What would be installed.

    Attributes:
        source: Where it would come from.
        size: How much would be downloaded.
    """

    source: str
    size: str


def offer_of(manager: PackageManager | None) -> Offer:
    """What `install` would do for a Chromium, told before it does anything.

    Args:
        manager: The system's; None where there is none.
    """
    packages = manager.choose([CHROMIUM]) if manager else []
    if manager is not None and manager.may_install and manager.knows(packages):
        size = manager.size(packages) or "some 150 MB"
        return Offer(f"{packages[0]} from {manager.name}", size)
    return Offer("Playwright's Chromium", _playwright_size() or _ABOUT)


def _playwright_size() -> str | None:
    """How large Playwright's own is, as its server says."""
    command = [sys.executable, "-m", "playwright", "install", "--dry-run", _SHELL]
    try:
        said = subprocess.run(  # noqa: S603  # our own interpreter
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_DRY_BOUND_S,
        ).stdout  # fmt: skip
        found = _URL.search(said)
        if found is None:
            return None
        reply = libraries.httpx.head(found[1], timeout=_CHROMIUM_ASK_BOUND_S, follow_redirects=True)
        size = int(reply.headers.get("content-length", "0"))
    except (OSError, subprocess.TimeoutExpired, libraries.httpx.HTTPError, ValueError):
        return None
    return f"{size / _DOWNLOAD_MIB:.0f} MB" if reply.is_success and size else None


def download_chromium(progress: Progress | None = None) -> str | None:
    """Let Playwright fetch its own; with what it is linked to, where that may be installed.

    Args:
        progress: Told how far it is.

    Returns:
        What it complained of last; None where it has come.
    """
    complaint = ""
    for options in [["--with-deps"], []] if _may_install() else [[]]:
        command = [sys.executable, "-m", "playwright", "install", *options, _SHELL]
        with subprocess.Popen(  # noqa: S603  # our own interpreter
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
        ) as process:  # fmt: skip
            for line in process.stdout or ():
                said = _PERCENT.search(line)
                if said is not None and progress is not None:
                    progress(float(said["percent"]), f"of {said['size']}")
                if line.startswith("Error:"):
                    complaint = line.removeprefix("Error:").strip()[:300]
            if process.wait() == 0:
                return None
    return complaint or "nothing"


def _may_install() -> bool:
    """Whether packages can be installed without asking anybody for a password."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return hasattr(os, "geteuid")
    sudo = shutil.which("sudo")
    return (
        sudo is not None
        and not subprocess.run(  # noqa: S603  # the system's
            [sudo, "-n", "true"], capture_output=True, check=False
        ).returncode
    )

"""The worlds that an operating system can never open."""

import platform
import sys
from pathlib import Path
from typing import Any

SYSTEM = "Linux" if sys.platform.startswith("linux") else platform.system()
"""The operating system, as people call it; macOS is Darwin."""

_INSTEAD = {
    "Windows": "Run hud-mcp in WSL 2",
    "Darwin": "Run the image (docs/container.md)",
    "Linux": "Use WSL 2: `wsl --set-version DISTRIBUTION 2`",
}


def is_wsl1() -> bool:
    """Whether this is the first WSL, which has no namespaces."""
    try:
        release = Path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8")
    except OSError:
        return False
    return "Microsoft" in release and "WSL2" not in release


def refusal(world: Any, system: str = SYSTEM) -> str | None:
    """Return the reason why an operating system can never open a world, with advice; else None."""
    isolation = getattr(getattr(world, "options", None), "isolation", None)
    falls_back = getattr(
        world, "falls_back", False
    )  # to the machine itself, which its author allowed
    if not world.runs_commands or isolation != "bwrap" or falls_back:
        return None
    if system == "Linux" and not is_wsl1():
        return None
    name = "WSL 1" if system == "Linux" else {"Darwin": "macOS"}.get(system, system)
    return (
        f"Its shell is isolated by bubblewrap, which {name} cannot run. "
        f"{_INSTEAD.get(system, _INSTEAD['Darwin'])}, or declare isolation='none' where the agent "
        "is trusted."
    )

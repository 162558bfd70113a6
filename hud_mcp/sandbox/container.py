"""What to do where a container refuses the namespaces that a sandbox is made of.

Docker refuses them three times: its default profile of seccomp refuses user namespaces, its
masked paths a new /proc, and its profile of AppArmor every mount. The profile that is shipped
beside this module is Docker's default, and allows what bubblewrap calls.
"""

import re
from importlib.resources import files
from pathlib import Path

__all__ = ["OPTIONS", "PROFILE", "container_advice"]

PROFILE = Path(str(files("hud_mcp.sandbox") / "seccomp.json"))
"""The profile, to be named in `docker run --security-opt seccomp=…`."""

OPTIONS = (
    "--security-opt seccomp=seccomp.json --security-opt systempaths=unconfined "
    "--security-opt apparmor=unconfined"
)
"""What `docker run` needs for a sandbox in the container, where the profile is in that file."""

_IN_THE_IMAGE = Path("/usr/share/hud-mcp/seccomp.json")
_REFUSED = re.compile(r"namespace|not permitted|permission denied", re.IGNORECASE)
_MARKS = ("/.dockerenv", "/run/.containerenv")
_FILTERED = "Seccomp:\t2\n"


def container_advice(said: str) -> str | None:
    """What to do where a container is why no sandbox starts; None where it is not.

    Args:
        said: What was said of the start that failed.
    """
    if _REFUSED.search(said) is None or not _is_contained():
        return None
    profile = _IN_THE_IMAGE if _IN_THE_IMAGE.exists() else PROFILE
    return (
        f"This container refuses it namespaces. Start it with `docker run {OPTIONS}`; "
        f"`docker run --rm --entrypoint cat hud-mcp {profile}` prints that profile."
    )


def _is_contained() -> bool:
    if any(Path(mark).exists() for mark in _MARKS):
        return True
    try:
        return _FILTERED in Path("/proc/self/status").read_text()
    except OSError:
        return False

"""Regular expressions on an agent's text. An expression that never ends holds up nobody.

Python's own matcher cannot be interrupted, and some expressions take longer than the universe's
age on a text that is made for it. Each search has a process of its own, which the kernel ends.
"""

import json
import re
import subprocess
import sys
from typing import Annotated

import anyio.to_thread
from pydantic import AfterValidator

from hud_mcp.errors import GraderFailed

_CPU_S = 2
"""The most seconds that a search may compute."""
_WALL_S = 15.0
"""The most seconds that a search may take in all, for a busy machine."""
_AT_ONCE = 4
_SEARCH = f"""
import json, re, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, ({_CPU_S}, {_CPU_S}))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
pattern, flags, text = json.load(sys.stdin)
sys.stdout.write("found" if re.search(pattern, text, flags) else "absent")
"""
_OUT_OF_TIME = {-24, -9}
"""The return codes of SIGXCPU, and of SIGKILL, which follows it."""

_limiter = anyio.CapacityLimiter(_AT_ONCE)


def search_now(pattern: str, text: str, *, flags: int = 0) -> bool:
    """Whether an author's expression is found in an agent's text, as `re.search` finds it.

    Raises:
        ValueError: The pattern is not a regular expression; the text says why.
        GraderFailed: The search did not end within 2 s of computing.
    """
    if (fault := _fault(pattern, flags)) is not None:
        raise ValueError(f"{pattern!r:.200} is not a regular expression: {fault}")
    given = json.dumps([pattern, int(flags), text])
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter, and the program above
            [sys.executable, "-I", "-S", "-c", _SEARCH],
            input=given.encode(),
            capture_output=True,
            timeout=_WALL_S,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        raise GraderFailed(_too_long(pattern, text, f"{_WALL_S:g} s, on a busy machine")) from None
    except OSError as exc:
        raise GraderFailed(f"A pattern cannot be searched for: {exc.strerror}.") from exc
    if done.stdout in (b"found", b"absent"):
        return done.stdout == b"found"
    if done.returncode in _OUT_OF_TIME:
        raise GraderFailed(_too_long(pattern, text, f"{_CPU_S} s of computing"))
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise GraderFailed(f"The search for {pattern!r:.200} failed: {said or done.returncode}.")


async def search(pattern: str, text: str, *, flags: int = 0) -> bool:
    """Search as `search_now` does, while others go on.

    If this call is cancelled, the search ends by itself, by its bounds.
    """
    return await anyio.to_thread.run_sync(
        lambda: search_now(pattern, text, flags=flags), abandon_on_cancel=True, limiter=_limiter
    )


def _fault(pattern: str, flags: int) -> str | None:
    try:
        re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as exc:
        return str(exc)
    return None


def _checked(pattern: str) -> str:
    if (fault := _fault(pattern, 0)) is not None:
        raise ValueError(f"is not a regular expression: {fault}")
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]
"""An expression of a task, which is refused when the task meets its environment."""


def _too_long(pattern: str, text: str, bound: str) -> str:
    return (
        f"The pattern {pattern!r:.200} takes more than {bound} on a text of {len(text)} "
        "characters. Write one that tries fewer ways, without repeats inside of repeats."
    )

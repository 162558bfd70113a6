"""Waiting for what tells nobody that it has happened: another process, a file, a record."""

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

__all__ = ["PATIENCE_S", "let_pass", "stays", "until", "wait_until"]

PATIENCE_S = 120.0
"""How long something may take on a machine that is busy; nothing is expected to take it."""

_PAUSE_S = 0.01


async def until(
    condition: Callable[[], Any | Awaitable[Any]], *, within_s: float = PATIENCE_S
) -> Any:
    """Wait until a condition is true, and return what it returned then.

    Args:
        condition: It is called again and again; what it returns may be awaited.
        within_s: How long to wait at most.

    Raises:
        TimeoutError: It was never true.
    """
    with anyio.fail_after(within_s):
        while True:
            found = condition()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await anyio.sleep(_PAUSE_S)


def wait_until(
    condition: Callable[[], Any],
    *,
    within_s: float = PATIENCE_S,
    said: Callable[[], Any] = lambda: "",
) -> Any:
    """Wait until a condition is true where no loop runs, and return what it returned then.

    Args:
        condition: It is called again and again.
        within_s: How long to wait at most.
        said: What is told of the one who is waited for, where it was never true.
    """
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, said() or f"nothing has come within {within_s} s"
        time.sleep(_PAUSE_S)
    return found


async def let_pass(seconds: float) -> None:
    """Let time pass, where it is time that something is claimed of: a lease, an idle session.

    What is waited for is waited for by `until`; a busy machine only makes this longer.
    """
    await anyio.sleep(seconds)


async def stays(
    condition: Callable[[], Any | Awaitable[Any]], *, for_s: float, every_s: float = 0.05
) -> None:
    """See again and again, for so long, that a condition is true.

    Raises:
        AssertionError: It was not.
    """
    end = anyio.current_time() + for_s
    while anyio.current_time() < end:
        found = condition()
        assert (await found) if inspect.isawaitable(found) else found
        await anyio.sleep(every_s)

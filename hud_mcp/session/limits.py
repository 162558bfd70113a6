"""The bounds of a server, of each session, and of waits. Reaching one is an error that names it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pydantic import Field

from hud_mcp.values.action import Value


class Limits(Value):
    """Explicit bounds, all configurable. Durations are seconds, sizes bytes."""

    sessions: int = Field(default=128, ge=1, description="Sessions at once, of all callers.")
    sessions_per_caller: int = Field(default=64, ge=1, description="Sessions at once of one.")
    actions_per_step: int = Field(default=50, ge=1)
    argument_bytes: int = Field(default=1_048_576, ge=1, description="Of a call's arguments.")
    observation_chars: int = Field(default=10_000, ge=200, description="Of an observation's text.")
    queue: int = Field(default=64, ge=1, description="Calls that may wait on one session.")
    setup_s: float = Field(default=120, gt=0)
    step_s: float = Field(default=60, gt=0)
    grade_s: float = Field(default=300, gt=0)
    reply_s: float = Field(default=45, gt=0, description="How long a reply waits for the grade.")
    idle_s: float = Field(default=1800, gt=0, description="Without a call, a session expires.")
    total_s: float = Field(default=14_400, gt=0, description="After this, it expires anyway.")
    provisional_s: float = Field(
        default=300, gt=0, description="One that a prompt started and nobody acts on."
    )
    log_lines: int = Field(default=10_000, ge=0)


logger = logging.getLogger(__name__)
T = TypeVar("T")

PATIENCE_S = 5.0
"""The longest cleanup of a template or a world."""
_CANCELLED_S = 1.0
_LET_GO_S = 0.5


async def in_patience(
    work: Callable[[], Awaitable[None]], what: str, log: Callable[[str], None]
) -> None:
    """Wait a bounded time for cleanup, even if this task is cancelled."""
    task = asyncio.ensure_future(work())
    try:
        done, _ = await asyncio.wait({task}, timeout=PATIENCE_S)
    except asyncio.CancelledError:
        done, _ = await asyncio.wait({task}, timeout=_CANCELLED_S)
    if not done:
        task.cancel()
        log(f"{what} took longer than {PATIENCE_S:g} s and was given up")
    elif not task.cancelled() and (exc := task.exception()) is not None:
        log(f"{what} failed: {type(exc).__name__}: {exc}")


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Wait for work, then leave it with a TimeoutError, even if it ignores its cancellation."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        task.add_done_callback(_see)
        await asyncio.wait({task}, timeout=_LET_GO_S)
        raise TimeoutError(f"it took longer than {seconds:g} s")
    return task.result()


def _see(task: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of abandoned work, which asyncio would log otherwise."""
    if not task.cancelled() and (exc := task.exception()) is not None:
        logger.debug("what was let go of failed: %s", exc)


def done_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, in the running task; else close it: RuntimeError."""
    try:
        work.send(None)
    except StopIteration as exc:
        return exc.value
    work.close()
    raise RuntimeError("this operation may not wait")

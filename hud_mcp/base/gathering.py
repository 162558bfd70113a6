"""Wait for several things at once. The first failure ends the others, and is raised alone."""

import inspect
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar

import anyio

from hud_mcp.errors import GraderFailed

T = TypeVar("T")


async def gather(items: Sequence[Awaitable[T]]) -> list[T]:
    """Wait for all items at once, and return their results in order.

    The first failure cancels the others, and is raised itself, without a group, so that authors can
    catch its type. In any case, all have ended.
    """
    given: dict[int, T] = {}
    failures: list[BaseException] = []

    async def wait_for(index: int, item: Awaitable[T]) -> None:
        try:
            given[index] = await item
        # raised below, after the other items have ended
        except (Exception, SystemExit) as exc:  # noqa: BLE001
            failures.append(exc)
            group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            for index, item in enumerate(items):
                group.start_soon(wait_for, index, item)
    finally:
        drop(items)
    if failures:
        raise failures[0]
    if len(given) < len(items):
        raise GraderFailed("A grader was cancelled from outside, and has no score.")
    return [given[index] for index in range(len(items))]


def drop(items: Iterable[Any]) -> None:
    """Close coroutines that never began: nobody awaits them any more."""
    for item in items:
        if inspect.iscoroutine(item) and inspect.getcoroutinestate(item) == inspect.CORO_CREATED:
            item.close()

"""Doing several things at once, with the failure of one as it is and not in a group."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

__all__ = ["gather"]


async def gather(parts: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Run parts at once; the first failure cancels the others and is raised as it is."""
    failures: list[Exception] = []

    async def run(part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except Exception as exc:  # noqa: BLE001  # raised below, where it can be told
            failures.append(exc)
            group.cancel_scope.cancel()

    if len(parts) == 1:
        await parts[0]()
        return
    async with anyio.create_task_group() as group:
        for part in parts:
            group.start_soon(run, part)
    if failures:
        raise failures[0]

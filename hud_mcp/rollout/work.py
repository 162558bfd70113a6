"""Many things at once, and no more than so many: how the runs of every job are worked on."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

import anyio

__all__ = ["work_through"]

T = TypeVar("T")


async def work_through(
    items: Iterable[T], work: Callable[[T], Awaitable[bool]], *, max_concurrent: int | None
) -> None:
    """Work on all of some items, in their order.

    Args:
        items: What is worked on; the next is taken when one is done.
        work: Works on one. What it returns says whether whoever did so takes another one.
        max_concurrent: How many at once; None for all of them.

    If this call is cancelled, so is what is under way, and nothing else is begun.
    """
    listed = list(items)
    queue = iter(listed)

    async def one_after_the_other(left: Iterator[T]) -> None:
        for item in left:
            if not await work(item):
                return

    async with anyio.create_task_group() as group:
        for _ in range(min(max_concurrent or len(listed), len(listed))):
            group.start_soon(one_after_the_other, queue)

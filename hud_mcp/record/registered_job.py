"""`register_job`, which is HUD's: the calls of a function belong to a job of its own."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.record.job import Job, Place, current_job

__all__ = ["register_job"]

P = ParamSpec("P")
T = TypeVar("T")


def register_job(
    name: str, metadata: Mapping[str, Any] | None = None, *, store: Place = None
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Decorate an async function: its calls of `gym.make` belong to one new job.

    Each call of the function records a new job, which is `current_job` inside.

    Args:
        name: The name of the jobs.
        metadata: Anything that is JSON.
        store: The store of the jobs, as for `Job.create`.

    Raises:
        InvalidEnvironment: The function is not async.
    """

    def register(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        if not inspect.iscoroutinefunction(function):
            raise InvalidEnvironment(
                f"register_job({name!r}) decorates an async function; {function!r} is none. Write "
                "`async def`."
            )

        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            token = current_job.set(await Job.create(name, metadata=metadata, store=store))
            try:
                return await function(*args, **kwargs)
            finally:
                current_job.reset(token)

        return run

    return register

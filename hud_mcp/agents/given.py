"""An agent that a program gives as a Python object: it works in this process, and is trusted."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from hud_mcp.agents.agent import Agent
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidAgent

__all__ = ["AgentTask", "GivenAgent", "read_agent"]

_TWO = 2
_TAKEN = frozenset({"oracle", "nop", "check"})
"""Names whose jobs are read in other ways."""
_SHAPES = (
    "write `async def agent(agent): …`, or a class with `async def solve(self, agent, task): …`"
)

Work = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class AgentTask:
    """What an agent is told of its task; its arguments, and how it is graded, are not there.

    Attributes:
        id: The task's id.
        prompt: The prompt.
    """

    id: str
    prompt: str


class GivenAgent:
    """Lets an object of this process work on tasks.

    Args:
        name: What it is called in the record.
        work: Makes what works on one task: a function of the handle and the task.
    """

    is_remote = False

    def __init__(self, name: str, work: Callable[[], Work]) -> None:
        self.name = name
        self._work = work

    async def solve(self, agent: Agent, task: Task) -> None:
        """Let it work; what it returns is submitted, unless it has submitted an answer itself."""
        await self.work(agent, task.id)

    async def work(self, agent: Agent, task_id: str) -> None:
        """The same, of a task of which nothing more is known."""
        answer = await self._work()(agent, AgentTask(task_id, agent.prompt))
        if answer is not None and not agent.answered:
            await agent.respond(answer)


def read_agent(given: Any, *, name: str | None = None) -> GivenAgent:
    """Read what a program gives as its agent.

    Args:
        given: An async function of `(agent)` or `(agent, task)`; an object with such a method
            `solve`; or a class of such objects, of which each run has one of its own.
        name: What to call it; by its own `name`, or where it is written, by default.

    Raises:
        InvalidAgent: It is none of these; the text says what to write.
    """
    called = name or _name_of(given)
    if isinstance(given, GivenAgent):
        return given
    if inspect.isclass(given):
        _check_class(given, called)
        return GivenAgent(called, lambda: _adapted(_method_of(given(), called), called))
    work = _adapted(_method_of(given, called), called)
    return GivenAgent(called, lambda: work)


def _method_of(given: Any, name: str) -> Any:
    """What is called of an agent: its `solve`, or itself."""
    solve = getattr(given, "solve", None)
    if solve is not None:
        return solve
    if callable(given):
        return given
    raise InvalidAgent(
        f"{name} is not an agent: it cannot be called, and has no `solve`; {_SHAPES}."
    )


def _check_class(given: type[Any], name: str) -> None:
    """Check, before a run needs one, that an agent can be made of a class."""
    method = getattr(given, "solve", None) or vars(given).get("__call__")
    if method is None:
        raise InvalidAgent(f"The class {name} has no `solve`; {_SHAPES}.")
    try:
        inspect.signature(given).bind()
    except TypeError as exc:
        raise InvalidAgent(
            f"{name}() cannot be created: {exc}. Give a class whose arguments have defaults, or "
            "an existing object."
        ) from None
    _adapted(functools.partial(method, None), name)


def _adapted(work: Any, name: str) -> Work:
    """A function of the handle and the task, whichever of these it takes."""
    if not _is_async(work):
        raise InvalidAgent(f"{name} is not async; {_SHAPES}.")
    try:
        signature = inspect.signature(work)
    except (TypeError, ValueError):
        return work
    for count in (_TWO, 1):
        try:
            signature.bind(*[None] * count)
        except TypeError:
            continue
        return work if count == _TWO else _of_handle(work)
    raise InvalidAgent(
        f"{name} takes {signature}, and is called with (agent, task) or with (agent); {_SHAPES}."
    )


def _of_handle(work: Callable[[Agent], Awaitable[Any]]) -> Work:
    def call(agent: Agent, _task: AgentTask) -> Awaitable[Any]:
        return work(agent)

    return call


def _is_async(work: Any) -> bool:
    while isinstance(work, functools.partial):
        work = work.func
    return inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(
        getattr(work, "__call__", None)  # noqa: B004  # its own, which may be async
    )


def _name_of(given: Any) -> str:
    own = getattr(given, "name", None)
    if isinstance(own, str) and own and own not in _TAKEN:
        return own
    while isinstance(given, functools.partial):
        given = given.func
    named = given if hasattr(given, "__qualname__") else cast("Any", type(given))
    module = getattr(named, "__module__", "")
    qualified = str(named.__qualname__).replace("<locals>.", "")
    return qualified if module in ("", "__main__", "builtins") else f"{module}.{qualified}"

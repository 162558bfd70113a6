"""Agents in Python: an object that a program gives, or the place where one is written."""

import functools
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from hud_mcp.agents.agent import Agent
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidAgent, did_you_mean

_TWO = 2
_TAKEN = frozenset({"oracle", "nop", "check"})
"""Names that agents of programs cannot have: their jobs are read differently."""
_SHAPES = (
    "write `async def agent(agent): …`, or a class with `async def solve(self, agent, task): …`"
)

Work = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class AgentTask:
    """The part of a task that its agent knows: neither its arguments nor its grading."""

    id: str
    prompt: str


class GivenAgent:
    """An object of this process that works on tasks. It is trusted.

    `work` makes the function for one task, so a class makes an object for each run.
    """

    is_remote = False

    def __init__(self, name: str, work: Callable[[], Work]) -> None:
        self.name = name
        self._work = work

    async def solve(self, agent: Agent, task: Task) -> None:
        """Let the agent work. Submit its return value, unless it has submitted an answer itself."""
        await self.work(agent, task.id)

    async def work(self, agent: Agent, task_id: str) -> None:
        """Let the agent work on a task of which only the id is known."""
        answer = await self._work()(agent, AgentTask(task_id, agent.prompt))
        if answer is not None and not agent.answered:
            await agent.respond(answer)


def read_agent(given: Any, *, name: str | None = None) -> GivenAgent:
    """Read a program's agent.

    It is an async function of `(agent)` or `(agent, task)`, an object with such a method `solve`,
    or a class of such objects. Its name is by default its own `name`, or the place of its
    definition.

    Raises:
        InvalidAgent: The value is no such agent. The text says what to write.
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
    solve = getattr(given, "solve", None)
    if solve is not None:
        return solve
    if callable(given):
        return given
    raise InvalidAgent(
        f"{name} is not an agent: it cannot be called, and has no `solve`; {_SHAPES}."
    )


def _check_class(given: type[Any], name: str) -> None:
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
    """Return a function of the handle and the task from a function that takes either or both."""
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


_SHOWN = 8
_FORM = "write path/to/agent.py:NAME or package.module:NAME"


def is_reference(text: str) -> bool:
    """Whether a text has the form of an agent's place, right or wrong."""
    place, colon, name = text.rpartition(":")
    if place.startswith((".", "/")) or place.endswith(".py") or text.endswith(".py"):
        return True
    dotted = all(part.isidentifier() for part in place.split("."))
    return bool(colon) and dotted and all(part.isidentifier() for part in name.split("."))


def lasting_reference(text: str) -> str:
    """Return a reference that means the same in any folder."""
    place, colon, name = _split(text)
    return f"{Path(place).resolve()}{colon}{name}" if place.endswith(".py") else text


def reference_name(text: str) -> str:
    """Return the name of its agent for lists: the file's own name, and the agent's."""
    place, colon, name = _split(text)
    return f"{Path(place).name}{colon}{name}" if place.endswith(".py") else text


def reference_of(given: Any) -> str:
    """Return the place of a function or a class, by which another process can load it.

    Raises:
        InvalidAgent: No other process can.
    """
    name = getattr(given, "__qualname__", None)
    if name is None or not (inspect.isclass(given) or inspect.isfunction(given)):
        raise InvalidAgent(
            f"isolated=True starts an agent in its own process, but {given!r:.60} exists in "
            "this one. Give its class or an async function."
        )
    module = sys.modules.get(given.__module__)
    found: Any = module
    for part in str(name).split("."):
        found = getattr(found, part, None)
    if found is not given:
        raise InvalidAgent(
            f"isolated=True starts {name} in its own process, which cannot import from inside a "
            "function. Define it at the top level of a module."
        )
    if "." in given.__module__:  # a part of a package, which its relative imports need
        return f"{given.__module__}:{name}"
    file = getattr(module, "__file__", None)
    if file is None:
        raise InvalidAgent(
            f"{name} is not in a file, so no other process can load it. Write it to a file."
        )
    return f"{Path(file).resolve()}:{name}"


def load_reference(text: str) -> GivenAgent:
    """Load an agent. The file or the module runs.

    Raises:
        InvalidAgent: It is not there, or cannot work; the text says what to write.
    """
    place, colon, name = _split(text)
    if not colon or not name:
        raise InvalidAgent(f"--agent {text} names no agent in the file; {_FORM}.")
    module = _load_file(place) if place.endswith(".py") else _load_module(place, text)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = _agents_of(module)
            has = f" It has: {', '.join(known[:_SHOWN])}." if known else ""
            raise InvalidAgent(f"{place} has no {name!r}.{did_you_mean(name, known)}{has}")
        found = getattr(found, part)
    return read_agent(found, name=reference_name(text))


def _split(text: str) -> tuple[str, str, str]:
    place, colon, name = text.rpartition(":")
    return (place, colon, name) if colon and place else (text, "", "")


def _load_file(place: str) -> ModuleType:
    path = Path(place)
    if not path.is_file():
        raise InvalidAgent(f"There is no file {place}; {_FORM}.")
    folder = str(path.resolve().parent)
    sys.path[:] = [folder, *(each for each in sys.path if each != folder)]
    name = f"hud_mcp_agent_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise InvalidAgent(f"{place} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _run(lambda: spec.loader.exec_module(module), place)  # pyright: ignore[reportOptionalMemberAccess]  # seen above
    return module


def _load_module(place: str, text: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        there = importlib.util.find_spec(place) is not None
    except ModuleNotFoundError:
        there = False
    except Exception as exc:  # a package's own code, which runs on the way to its module
        raise InvalidAgent(f"{place} cannot be loaded: {_why(exc)}") from exc
    if not there:
        raise InvalidAgent(
            f"--agent {text}: there is no module {place!r}, in {here} or installed; {_FORM}."
        )
    made: list[ModuleType] = []
    _run(lambda: made.append(importlib.import_module(place)), place)
    return made[0]


def _run(load: Callable[[], object], place: str) -> None:
    try:
        load()
    except InvalidAgent:
        raise
    except Exception as exc:
        raise InvalidAgent(f"{place} cannot be loaded: {_why(exc)}") from exc


def _why(exc: Exception) -> str:
    if isinstance(exc, SyntaxError):
        return f"{exc.filename}:{exc.lineno}: {exc.msg}."
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    hint = " Install it, or correct its name." if isinstance(exc, ImportError) else ""
    return f"{frame.filename}:{frame.lineno}: {type(exc).__name__}: {exc}.{hint}"


def _agents_of(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.iscoroutinefunction(value) or hasattr(value, "solve"))
    ]

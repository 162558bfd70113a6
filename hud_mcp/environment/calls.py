"""Tasks that name their calls: the functions behind the names, and the resulting template."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from pydantic_core import to_jsonable_python

from hud_mcp.environment.arguments import Arguments
from hud_mcp.environment.function import Function, History, Phase, Situation
from hud_mcp.environment.prompt import Answer, AnswerType
from hud_mcp.environment.task import COMBINATIONS, PROMPT, Task
from hud_mcp.environment.template import Template
from hud_mcp.errors import (
    BrokenByAgent,
    EnvironmentFailed,
    GradingFailed,
    HudMcpError,
    InvalidTask,
    did_you_mean,
)
from hud_mcp.values.call import FunctionConfig
from hud_mcp.values.grade import Grade, SubScore, read_grade

Functions = Mapping[str, Function]
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Measurement:
    """The results of `evaluate` calls, in order, as JSON; `grade` is None if one was no number."""

    results: tuple[Any, ...]
    grade: Grade | None

    @property
    def value(self) -> Any:
        """The result of the only call; the list of all results if there are none or several."""
        return self.results[0] if len(self.results) == 1 else list(self.results)


def bind_calls(
    calls: Sequence[FunctionConfig], functions: Functions, *, phase: Phase, env: str
) -> tuple[FunctionConfig, ...]:
    """Return calls checked against the functions of an environment, with flat lists of names read.

    Raises:
        InvalidTask: A call does not fit. The text names the field, the mistake, and the
            alternatives.
    """
    bound: list[FunctionConfig] = []
    for call in calls:
        for each in _read_flat(call, functions, phase):
            found = _find(each, functions, phase=phase, env=env)
            try:
                found.check(each.args)
            except InvalidTask as exc:
                raise InvalidTask(f"{phase}: {exc}") from None
            bound.append(each.settled())
    return tuple(bound)


def _read_flat(
    call: FunctionConfig, functions: Functions, phase: Phase
) -> tuple[FunctionConfig, ...]:
    """Return the calls that a flat list of names means; `InvalidTask` if it may mean two things."""
    names = [call.function, *call.args]
    if not call.is_flat or not all(name in functions for name in names):
        return (call,)
    several = tuple(FunctionConfig(function=name) for name in names)
    if not functions[call.function].takes(len(call.args)):
        return several
    if all(functions[name].takes(0) for name in names):
        raise InvalidTask(
            f"{phase}: {names} may be one call of {call.function!r}, or {len(names)} calls. Write "
            f"{[names]} for one, {[[name] for name in names]} for several."
        )
    return (call,)


def _find(call: FunctionConfig, functions: Functions, *, phase: Phase, env: str) -> Function:
    # Another distribution's function is found by reading alone, and stands in no list.
    try:
        found = functions[call.function]
    except KeyError:
        found = None
    fitting = sorted(name for name, f in functions.items() if f.may(phase))
    if found is None:
        hint = did_you_mean(call.function, fitting)
        raise InvalidTask(
            f"{phase}: environment {env!r} has no function {call.function!r}.{hint} "
            f"`hud-mcp functions {env}` lists those that it has: {', '.join(fitting) or 'none'}."
        )
    if not found.may(phase):
        raise InvalidTask(
            f"{phase}: {call.function!r} is a function for {found.use!r} and not for '{phase}'; "
            f"for '{phase}' there are: {', '.join(fitting) or 'none'}."
        )
    return found


async def prepare(
    calls: Sequence[FunctionConfig], functions: Functions, situation: Situation
) -> None:
    """Make `setup` calls, in order. An error is raised as is, and the calls before it are done."""
    situation = replace(situation, phase=Phase.SETUP)
    for call in calls:
        await functions[call.function].call(call.args, situation)


async def measure(
    calls: Sequence[FunctionConfig],
    functions: Functions,
    situation: Situation,
    *,
    combine: str = COMBINATIONS[0],
) -> Measurement:
    """Make `evaluate` calls, in order, and combine their results by a rule of `COMBINATIONS`.

    Raises:
        GradingFailed: A function raised an error; the text names it, and its file and line.
        BrokenByAgent: The agent's doings kept a function from looking.
        EnvironmentFailed: The world broke during a call.
    """
    results: list[Any] = []
    grades: list[Grade | None] = []
    for call in calls:
        function = functions[call.function]
        try:
            returned = await function.call(call.args, situation)
        except (BrokenByAgent, EnvironmentFailed):
            raise
        except HudMcpError as exc:
            raise GradingFailed(f"{function.where}: {call.function}: {exc}") from exc
        except Exception as exc:
            raise GradingFailed(
                f"{function.where}: {call.function}: {type(exc).__name__}: {exc}"
            ) from exc
        grade = _grade(returned, function)
        if grade is not None and function.weak is not None:
            info = {"weak": function.weak, **grade.info}
            grade = grade.model_copy(update={"info": info})
        grades.append(grade)
        results.append(_plain(returned))
    return Measurement(tuple(results), _combined(calls, grades, combine))


def _plain(returned: Any) -> Any:
    if isinstance(returned, bool) or not isinstance(returned, Real):
        return to_jsonable_python(returned, fallback=str)
    return returned if isinstance(returned, int) else float(returned)


def _grade(returned: Any, function: Function) -> Grade | None:
    """Return a function's result as a grade; None if it is no number and holds none."""
    if returned is None or isinstance(returned, str | bytes | list | tuple):
        return None
    try:
        return read_grade(returned, where=function.where)
    except GradingFailed:
        if isinstance(returned, Real):  # not finite: that is a fault, and no measurement
            raise
        return None


def _combined(
    calls: Sequence[FunctionConfig], grades: Sequence[Grade | None], combine: str
) -> Grade | None:
    if not grades or any(grade is None for grade in grades):
        return None
    known = cast("Sequence[Grade]", grades)
    if len(known) == 1:
        return known[0]
    rewards = [grade.reward for grade in known]
    how: dict[str, Callable[[list[float]], float]] = {
        "all": min,
        "any": max,
        "mean": lambda each: sum(each) / len(each),
    }
    parts: list[SubScore] = []
    for number, (call, grade) in enumerate(zip(calls, known, strict=True), start=1):
        # Agents see the names of subscores, and must not see the functions that grade them.
        info = {**grade.info, "function": call.function}
        if 0 <= grade.reward <= 1:
            parts.append(
                SubScore(
                    name=f"part {number}", value=grade.reward, children=grade.subscores, info=info
                )
            )
    return Grade(reward=how[combine](rewards), subscores=tuple(parts), info={"combine": combine})


class Witness(Protocol):
    """An observer of the agent at work."""

    @property
    def history(self) -> History:
        """The agent's actions until now."""
        ...


class CallTemplate(Template):
    """The template of a task with a prompt, whose calls are bound; `witness` observes the agent."""

    def __init__(
        self,
        task: Task,
        functions: Functions,
        *,
        witness: Witness | None = None,
    ) -> None:
        self.id = PROMPT
        self.env = task.env
        self.function = _ask
        self.where = f"task {task.id!r}"
        self.noun = self.where
        self.description = task.description
        self.arguments = _NO_ARGUMENTS
        self.prompts_at_once = not task.setup
        self._answers = AnswerType(None, where=self.where, noun=self.noun)
        self.__doc__ = task.description
        self.__name__ = PROMPT
        self.task = task
        self.functions = functions
        self._witness = witness

    @property
    def history(self) -> History:
        """The agent's actions, as far as the witness saw them."""
        return History() if self._witness is None else self._witness.history

    @property
    def needs_world(self) -> bool:
        """Whether a function in `evaluate` takes the world or the agent's actions."""
        named = (self.functions[call.function] for call in self.task.evaluate)
        return any(function.looks_at_world for function in named)

    async def set_up(self, world: Any) -> None:
        """Make the calls of its setup, apart from `run`; `ask` follows. It fails like `prepare`."""
        await prepare(self.task.setup, self.functions, Situation(world=world))

    def ask(self, world: Any) -> AsyncGenerator[Any, Any]:
        """Create the generator for a world that is set up; nothing of it has run."""
        return _ask(self, world, is_set_up=True)

    def run(
        self,
        args: Mapping[str, Any],
        world: Any,
        context: Mapping[str, Any] | None = None,  # noqa: ARG002  # functions ask the world
    ) -> AsyncGenerator[Any, Any]:
        """Create the generator, and run nothing; arguments are an `InvalidTask`."""
        self.arguments.parse(args)
        return _ask(self, world)


async def _ask(
    template: CallTemplate, world: Any, *, is_set_up: bool = False
) -> AsyncGenerator[Any, Any]:
    task = template.task
    if not is_set_up:
        await template.set_up(world)
    answer: str | Answer[Any] = yield task.prompt
    if not task.evaluate:
        raise GradingFailed(
            f"{template.where} has no `evaluate` calls, so its answer cannot be graded."
        )
    measured = await measure(
        task.evaluate,
        template.functions,
        Situation(world=world, answer=str(answer), history=template.history),
        combine=combination(task),
    )
    if measured.grade is None:
        shown = str(measured.value)[:80]
        raise GradingFailed(
            f"{template.where}: `evaluate` returned {shown!r}, which is not a number."
        )
    yield measured.grade


def combination(task: Task) -> str:
    """Return the rule that makes the rewards of a task's several `evaluate` calls one."""
    return str((task.config or {}).get("combine", COMBINATIONS[0]))


def task_hosts(task: Task) -> tuple[str, ...]:
    """Return the hosts that a task's own row opens: by `goto` in its setup, and `config["allow"]`.

    A host of `goto` opens its twin with or without `www.` too. Addresses in `evaluate` open
    nothing.
    """
    hosts: dict[str, None] = {}
    for call in task.setup:
        if call.function == "goto" and call.args and isinstance(call.args[0], str):
            hosts |= dict.fromkeys(_hosts_of(call.args[0]))
    allowed: list[str] = (task.config or {}).get("allow") or []
    return tuple(hosts | dict.fromkeys(allowed))


def _hosts_of(address: str) -> tuple[str, ...]:
    """Return the host of an address, with its twin; nothing for a path or any other text.

    A numeric address, or a name without a dot, has no twin, and is opened at its port alone.
    """
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return ()
    if address.startswith("/") or not host:
        return ()
    if ":" in host or "." not in host or host.replace(".", "").isdigit():
        port = port or _PORTS.get(parts.scheme.lower())
        named = f"[{host}]" if ":" in host else host
        return (f"{named}:{port}" if port else named,)
    at = f":{port}" if port else ""
    twin = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    return (f"{host}{at}", f"{twin}{at}")


async def _nothing() -> None:
    """Take no argument, like a prompt."""


_NO_ARGUMENTS = Arguments(_nothing, noun="a task with a prompt")

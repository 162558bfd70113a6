"""A function that a task's `setup` and `evaluate` may name: registered, checked, then called.

A function belongs to a kind of world or to an environment. The annotation of a parameter decides
its value: the world's class, `Answer`, `History` and `Phase`. The others are arguments.
"""

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Literal, Self

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from hud_mcp.base.reading import Reader, no_json, tell
from hud_mcp.environment.arguments import is_world, source_line
from hud_mcp.environment.prompt import Answer
from hud_mcp.errors import InvalidEnvironment, InvalidTask
from hud_mcp.registry import Entries
from hud_mcp.values.call import FunctionConfig

__all__ = ["REGISTERED", "USES", "Function", "History", "Phase", "Situation", "Use"]

Use = Literal["setup", "evaluate", "both"]
USES = ("setup", "evaluate", "both")
"""The fields of a task that may name a function."""


class Phase(StrEnum):
    """The field of a task in which a call stands."""

    SETUP = "setup"
    EVALUATE = "evaluate"


class History(tuple[Mapping[str, Any], ...]):  # noqa: SLOT001  # a tuple can have no slots
    """The agent's actions so far: each performed action, as the agent sent it, in order.

    Attributes:
        targets: The element that each action hit, in the world's own form; None if unknown.
    """

    targets: tuple[str | None, ...]

    def __new__(
        cls,
        actions: Iterable[Mapping[str, Any]] = (),
        targets: Iterable[str | None] = (),
    ) -> Self:
        """Make a history; missing targets at the end become None."""
        made = super().__new__(cls, actions)
        known = tuple(targets)[: len(made)]
        made.targets = (*known, *(None for _ in range(len(made) - len(known))))
        return made


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The part of its session that a call may see; `phase` is the field in which the call stands.

    `answer` is empty if the agent submitted nothing.
    """

    world: Any
    answer: str = ""
    history: History = field(default_factory=History)
    phase: Phase = Phase.EVALUATE


class Function:
    """One registered function.

    Args:
        function: An async function.
        name: Its name in tasks; the function's name by default. Dots part it.
        use: The fields of a task that may name it: `setup`, `evaluate`, or both.
        weak: A sentence that says how an agent can forge its result; None if it cannot.
        where: Its file and line, if they are not those of the function.

    Raises:
        InvalidEnvironment: It is not async, or a parameter cannot be an argument.
    """

    def __init__(
        self,
        function: Callable[..., Awaitable[Any]],
        *,
        name: str | None = None,
        use: Use = "both",
        weak: str | None = None,
        where: str | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.where = where or source_line(function)
        self.use = use
        self.weak = weak
        noun = f"{self.where}: function {self.name!r}"
        if not inspect.iscoroutinefunction(function):
            raise InvalidEnvironment(f"{noun} must be an async function.")
        if use not in USES:
            raise InvalidEnvironment(f"{noun}: use={use!r} is not one of {', '.join(USES)}.")
        try:
            FunctionConfig(function=self.name)
        except ValidationError:
            raise InvalidEnvironment(
                f"{noun}: this is not a name; write words of letters, digits and _, parted by dots."
            ) from None
        self.description = inspect.cleandoc(function.__doc__ or "").split("\n")[0]
        self.world_types: dict[str, type] = {}
        self._situated: dict[str, type] = {}
        self._arguments: list[_Argument] = []
        self._read_parameters(noun)

    @classmethod
    def of_answer(
        cls, grader: Callable[..., Any], *, name: str | None = None, weak: str | None = None
    ) -> "Function":
        """Make the function by which tasks name a grader of answers.

        The grader takes the submitted text first, and returns a number, an object with a `score`,
        or an awaitable of either. Its other parameters are the arguments, those by keyword last;
        `compat` is none of them.
        """
        answer, *rest = inspect.signature(grader).parameters.values()
        hints = typing.get_type_hints(grader, include_extras=True) | {answer.name: Answer[str]}
        by_name = [p.name for p in rest if p.kind is p.KEYWORD_ONLY and p.name != "compat"]
        first = [p.name for p in rest if p.kind is not p.KEYWORD_ONLY]

        async def graded(submitted: Answer[str], *given: Any) -> Any:
            plain = given[: len(given) - len(by_name)]
            named = dict(zip(by_name, given[len(plain) :], strict=True))
            found = grader(submitted.raw, *plain, **named)
            if inspect.isawaitable(found):
                found = await found
            return getattr(found, "score", found)

        as_positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        graded.__name__, graded.__doc__ = name or grader.__name__, grader.__doc__
        graded.__annotations__ = {each: hints[each] for each in (answer.name, *first, *by_name)}
        made: Any = graded
        made.__signature__ = inspect.Signature(
            [
                each.replace(kind=as_positional) if each.name in by_name else each
                for each in (answer, *rest)
                if each.name in graded.__annotations__
            ]
        )
        return cls(made, use="evaluate", weak=weak, where=source_line(grader))

    @property
    def looks_at_world(self) -> bool:
        """Whether its result depends on more than the answer."""
        return bool(self.world_types) or History in self._situated.values()

    def may(self, phase: Phase) -> bool:
        """Whether a task may name it in this field."""
        return self.use in (phase, "both")

    @property
    def signature(self) -> str:
        """Its name and arguments, for people: `page_contains(*texts)`."""
        shown = (
            f"*{a.name}" if a.is_rest else f"{a.name}={a.default!r}" if a.is_optional else a.name
            for a in self._arguments
        )
        return f"{self.name}({', '.join(shown)})"

    def takes(self, count: int) -> bool:
        """Whether it may be called with this number of arguments."""
        least, most = self._arity()
        return least <= count and (most is None or count <= most)

    def check(self, args: Sequence[Any]) -> None:
        """Raise `InvalidTask` for too many or too few arguments, or one of the wrong kind."""
        if not self.takes(len(args)):
            raise InvalidTask(f"{self.signature} takes {self._counted()}, got {len(args)}.")
        for argument, given in self._paired(args):
            argument.read(given, self.signature)

    async def call(self, args: Sequence[Any], situation: Situation) -> Any:
        """Call the function; arguments that do not fit are an `InvalidTask`, and it did not run."""
        self.check(args)
        answer = Answer(content=situation.answer, raw=situation.answer)
        known = {Answer: answer, History: situation.history, Phase: situation.phase}
        handed: dict[str, Any] = dict.fromkeys(self.world_types, situation.world)
        handed |= {name: known[kind] for name, kind in self._situated.items()}
        for argument, given in self._paired(args):
            value = argument.read(given, self.signature)
            if argument.is_rest:
                handed[argument.name] = (*handed.get(argument.name, ()), value)
            else:
                handed[argument.name] = value
        bound = inspect.signature(self.function).bind_partial()
        bound.arguments.update(handed)
        bound.apply_defaults()
        return await self.function(*bound.args, **bound.kwargs)

    def _read_parameters(self, noun: str) -> None:
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
        except (NameError, AttributeError, SyntaxError, TypeError) as exc:
            raise InvalidEnvironment(
                f"{noun}: {exc}; annotations must be importable at run time."
            ) from None
        for name, parameter in inspect.signature(self.function).parameters.items():
            hint = hints.get(name, Any)
            if parameter.kind is parameter.VAR_KEYWORD:
                raise InvalidEnvironment(f"{noun} takes {parameter}; arguments have no names here.")
            if isinstance(hint, type) and is_world(hint):
                self.world_types[name] = hint
            elif (kind := typing.get_origin(hint) or hint) in (Answer, History, Phase):
                self._situated[name] = kind
            else:
                self._arguments.append(_Argument.of(parameter, hint, noun))

    def _arity(self) -> tuple[int, int | None]:
        least = sum(not a.is_optional and not a.is_rest for a in self._arguments)
        if any(a.is_rest for a in self._arguments):
            return least, None
        return least, len(self._arguments)

    def _counted(self) -> str:
        least, most = self._arity()
        if most is None:
            return f"{least} or more arguments"
        if least == most:
            return "no arguments" if not most else f"{most} argument{'s' if most > 1 else ''}"
        return f"{least} to {most} arguments"

    def _paired(self, args: Sequence[Any]) -> "Iterable[tuple[_Argument, Any]]":
        single = [a for a in self._arguments if not a.is_rest]
        yield from zip(single, args, strict=False)
        rest = next((a for a in self._arguments if a.is_rest), None)
        if rest is not None:
            for given in args[len(single) :]:
                yield rest, given


class _Registered(Entries):
    """The functions in plugins' tables. Each entry refers to a function or a grader of answers."""

    def __getitem__(self, name: str) -> Function:
        return _made_of(name, super().__getitem__(name))


@cache
def _made_of(name: str, entry: Any) -> Function:
    return entry if isinstance(entry, Function) else Function.of_answer(entry, name=name)


REGISTERED: Mapping[str, Function] = _Registered("functions")
"""The functions of every environment, by name; each loads when a task first names it."""


@dataclass(frozen=True)
class _Argument:
    name: str
    adapter: TypeAdapter[Any]
    is_optional: bool
    is_rest: bool
    default: Any

    @classmethod
    def of(cls, parameter: inspect.Parameter, hint: Any, noun: str) -> "_Argument":
        try:
            adapter = TypeAdapter[Any](hint)
        except PydanticUserError as exc:
            raise InvalidEnvironment(
                f"{noun}: {parameter.name!r} does not have a JSON type: {exc}"
            ) from None
        return cls(
            name=parameter.name,
            adapter=adapter,
            is_optional=parameter.default is not parameter.empty,
            is_rest=parameter.kind is parameter.VAR_POSITIONAL,
            default=parameter.default,
        )

    def read(self, given: Any, signature: str) -> Any:
        try:
            return self.adapter.validate_json(orjson.dumps(given), strict=True)
        except TypeError:
            raise InvalidTask(f"{signature}: {tell([no_json({self.name: given})])}") from None
        except ValidationError as exc:
            schema = self.adapter.json_schema()
            fields = {"properties": {self.name: schema}, "$defs": schema.get("$defs", {})}
            found = Reader(fields).faults(exc, {self.name: given}, self.name)
            raise InvalidTask(f"{signature}: {tell(found[:1])}") from None

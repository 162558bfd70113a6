"""A template: an async generator that yields a prompt, receives the answer, yields a grade.

This module owns the declaration and what is wrong with it. A session runs it.
"""

import ast
import inspect
import textwrap
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from hud_mcp.arguments import Arguments, source_line
from hud_mcp.errors import InvalidTask, InvalidTemplate
from hud_mcp.task import Task, default_task_id

__all__ = ["Answer", "Oracle", "Prompt", "PromptMessage", "Template", "read_prompt"]

T = TypeVar("T")

TemplateFunction = Callable[..., AsyncGenerator[Any, Any]]
Oracle = Callable[..., Awaitable[Any]]
"""Solves a task through the same tools as any client: `async (agent, **arguments)`."""


_JSON_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A typed answer.

    Attributes:
        content: The answer as the template's `returns` type; the raw string where it
            could not be read as that type.
        raw: What the agent submitted.
        is_valid: Whether `content` is of the declared type, and not the raw string instead.
    """

    content: T
    raw: str
    is_valid: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        """What the agent submitted: graders of text are often handed the whole answer."""
        return self.raw


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class Prompt:
    """What a template asks, as one or more messages.

    Attributes:
        messages: What is asked.
        extra: What else a template yielded beside its `prompt`, as JSON; clients of the HUD
            control channel receive it.
    """

    messages: tuple[PromptMessage, ...]
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n\n".join(message.text for message in self.messages)


class Template:
    """A declared template. Calling it with arguments mints a `Task` and runs nothing.

    Args:
        function: The async generator function.
        env: The name of its environment.
        id: Its id; the function's name by default.
        description: One line for people.
        input: A type that describes what the agent is given beside the prompt.
        returns: A type that the answer is read as; the template then receives `Answer[T]`.
        reward: Who sees the reward, where this template differs from the server's policy.

    Attributes:
        asks_at_once: Whether it is certain that nothing is awaited on the way to its prompt.

    Raises:
        InvalidTemplate: It is no async generator, cannot yield twice, or has an argument
            without a JSON schema; the text names its file and line.
    """

    def __init__(
        self,
        function: TemplateFunction,
        *,
        env: str,
        id: str | None = None,  # noqa: A002  # HUD's name
        description: str = "",
        input: Any = None,  # noqa: A002  # HUD's name
        returns: Any = None,
        reward: str | None = None,
    ) -> None:
        self.id = id or function.__name__
        self.env = env
        self.function = function
        self.where = source_line(function)
        self.noun = f"template {self.id!r}"
        _check_generator(function, self.where, self.noun)
        self.description = description or inspect.cleandoc(function.__doc__ or "").split("\n")[0]
        self.arguments = Arguments(function, noun=self.noun)
        self.input_schema = _type_schema(input, self.where, self.noun)
        self.returns_schema = _type_schema(returns, self.where, self.noun)
        self._returns = None if returns is None else TypeAdapter[Any](returns)
        self.reward = reward
        self.asks_at_once = _asks_at_once(function)
        self.oracle_function: Oracle | None = None
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @property
    def needs_world(self) -> bool:
        """Whether what it grades by may be in the world, and not in the answer alone."""
        return bool(self.arguments.world_types)

    def __call__(self, *args: Any, **kwargs: Any) -> Task:
        """Mint a task.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind.
        """
        if len(args) > len(self.arguments.names):
            raise InvalidTask(
                f"{self.noun} takes {len(self.arguments.names)} arguments, got {len(args)}."
            )
        bound = dict(zip(self.arguments.names, args, strict=False))
        twice = sorted(set(bound) & set(kwargs))
        if twice:
            raise InvalidTask(f"{self.noun}: argument {twice[0]!r} was given twice.")
        bound.update(kwargs)
        self.arguments.parse(bound)
        rows: dict[str, Any] = to_jsonable_python(bound)
        return Task(
            id=default_task_id(self.id, rows),
            env=self.env,
            template=self.id,
            args=rows,
            description=self.description,
        )

    def oracle(self, function: Oracle) -> Oracle:
        """Declare how the template's tasks are solved: `async (agent, **arguments)`.

        It may ask for the context too, by the name that the template gives it.

        Raises:
            InvalidTemplate: It asks for an argument that the template does not have.
        """
        where = source_line(function)
        if not inspect.iscoroutinefunction(function):
            raise InvalidTemplate(f"{where}: the oracle of {self.noun} must be an async function.")
        names = list(inspect.signature(function).parameters)[1:]
        known = (*self.arguments.names, *self.arguments.context_names)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InvalidTemplate(
                f"{where}: the oracle of {self.noun} asks for {unknown[0]!r}; the template takes: "
                f"{', '.join(known) or 'nothing'}."
            )
        if self.oracle_function is not None:
            raise InvalidTemplate(f"{where}: {self.noun} has an oracle already.")
        self.oracle_function = function
        return function

    def read_answer(self, raw: str) -> Any:
        """Return what the template receives for a submitted answer: `Answer[T]` or the string."""
        if self._returns is None:
            return raw
        try:
            return Answer(content=self._returns.validate_json(raw), raw=raw)
        except ValidationError:
            pass
        try:
            return Answer(content=self._returns.validate_python(raw), raw=raw)
        except ValidationError:
            return Answer(content=raw, raw=raw, is_valid=False)

    def answer_problem(self, raw: str) -> str | None:
        """Say what is wrong with a submitted answer; None where it is of the declared type."""
        if self._returns is None or self.read_answer(raw).is_valid:
            return None
        kind = _JSON_KINDS.get((self.returns_schema or {}).get("type", ""), "a value")
        got = repr(raw if len(raw) <= _SHOWN_CHARS else raw[:_SHOWN_CHARS] + "…")
        problem = ""
        try:
            self._returns.validate_json(raw)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            if path:
                problem = f" In it, {path}: {first['msg'].lower()}."
        return f"The answer should be {kind} (JSON), got {got}.{problem}"

    def run(
        self, args: Mapping[str, Any], world: Any, context: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Any, Any]:
        """Create the generator; nothing of it has run.

        Args:
            args: JSON arguments, as a task holds them.
            world: The session's world, handed to the parameters that ask for one.
            context: The session's context, complete; a copy is handed to each parameter that
                asks for it. It may be left out where none does.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; or the context is
                asked for and was not given.
        """
        names = self.arguments.context_names
        if names and context is None:
            raise InvalidTask(
                f"{self.where}: {self.noun} asks for its context in {names[0]!r}, and is run "
                "without one. Pass `context=environment.context_space.fill(task.context)`."
            )
        worlds = dict.fromkeys(self.arguments.world_types, world)
        contexts = {name: dict(context or {}) for name in names}
        return self.function(**self.arguments.parse(args), **worlds, **contexts)


def read_prompt(value: Any, *, where: str) -> Prompt:
    """Read what a template yielded first.

    Args:
        value: Text; a `Prompt`; a mapping with a `prompt`; or messages, each a mapping or
            an object with a `role` and a `content` of text, as MCP prompt messages have.
        where: The template's file and line.

    Raises:
        InvalidTemplate: It is none of these.
    """
    shown = repr(value)[:80]
    extra: dict[str, Any] = {}
    if isinstance(value, Mapping) and "prompt" in value:
        whole = cast("Mapping[str, Any]", value)
        beside = {str(k): v for k, v in whole.items() if k != "prompt"}
        extra = to_jsonable_python(beside, fallback=str)
        value = whole["prompt"]
    if isinstance(value, Prompt):
        return replace(value, extra={**value.extra, **extra})
    if isinstance(value, str):
        return Prompt((PromptMessage("user", value),), extra)
    items: list[Any] = (
        list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
    )
    messages = [_read_message(item) for item in items]
    if not messages or any(m is None for m in messages):
        raise InvalidTemplate(
            f"{where}: the template yielded {shown} as its prompt; yield text, a list "
            "of messages with a role and a text, or {'prompt': …}."
        )
    return Prompt(tuple(m for m in messages if m is not None), extra)


def _read_message(item: Any) -> PromptMessage | None:
    if isinstance(item, PromptMessage):
        return item
    if isinstance(item, str):
        return PromptMessage("user", item)
    role, content = _part_of(item, "role"), _part_of(item, "content")
    if not isinstance(content, str):
        content = _part_of(content, "text")
    if role not in ("user", "assistant") or not isinstance(content, str):
        return None
    return PromptMessage(str(role), content)


def _part_of(item: Any, name: str) -> Any:
    """A field of a mapping, or an attribute of any other object; None where there is none."""
    if isinstance(item, Mapping):
        return cast("Mapping[str, Any]", item).get(name)
    return getattr(item, name, None)


def _check_generator(function: Callable[..., Any], where: str, noun: str) -> None:
    if not inspect.isasyncgenfunction(function):
        raise InvalidTemplate(
            f"{where}: {noun} is not an async generator. Write `async def`, yield the prompt, "
            "receive the answer, and yield the grade."
        )
    if _count_yields(function) == 1:
        raise InvalidTemplate(
            f"{where}: {noun} yields once. Yield twice: first the prompt "
            "(`answer = yield prompt`), then the grade (`yield reward`)."
        )


def _body(function: Callable[..., Any]) -> list[ast.AST] | None:
    """The statements of a function; None where its source is unknown."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None
    return list(getattr(tree.body[0], "body", []))


def _asks_at_once(function: Callable[..., Any]) -> bool:
    """Whether it is certain that nothing is awaited on the way to the prompt."""
    for statement in _body(function) or ():
        inside = list(ast.walk(statement))
        if any(
            isinstance(n, ast.Await | ast.AsyncFor | ast.AsyncWith)
            or (isinstance(n, ast.comprehension) and n.is_async)
            for n in inside
        ):
            return False
        if any(isinstance(n, ast.Yield) for n in inside):
            return isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign)
    return False


def _count_yields(function: Callable[..., Any]) -> int | None:
    """The yields in a function's own body; None where unknown or where a loop repeats one."""
    stack = _body(function)
    if stack is None:
        return None
    count = 0
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            return None
        count += isinstance(node, ast.Yield)
        stack.extend(ast.iter_child_nodes(node))
    return count


def _type_schema(annotation: Any, where: str, noun: str) -> dict[str, Any] | None:
    if annotation is None:
        return None
    try:
        return orjson.loads(orjson.dumps(TypeAdapter(annotation).json_schema()))
    except (PydanticUserError, TypeError, NameError) as exc:
        raise InvalidTemplate(
            f"{where}: {noun}: {annotation!r} has no JSON schema: {exc}"
        ) from None

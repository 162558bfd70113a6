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
_ROLES = ("user", "assistant", "system")


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
    """One message of a prompt.

    Attributes:
        role: `user`, `assistant` or `system`.
        text: What it says; parts that are no text are named in brackets.
        original: The whole message as JSON, where it is more than a role and a text: clients of
            the HUD control channel receive it as it was yielded.
    """

    role: str
    text: str
    original: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def told(self) -> str:
        """Its text for clients that know users and assistants alone, as MCP's do."""
        return f"Instructions for this task:\n{self.text}" if self.role == "system" else self.text


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
        """All messages as one text; those of the system say that they are instructions."""
        return "\n\n".join(message.told for message in self.messages)


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
        never_waits: Whether it is certain that it awaits nothing at all, and holds nothing open
            across a yield: no timeout and no task group, which belong to the task that runs it.

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
        self.never_waits = self.asks_at_once and _never_waits(function)
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
        value: Text; a `Prompt`; a mapping with a `prompt`; or messages, each a text, or a mapping
            or an object with a `role` and a `content`, as HUD's and MCP's messages have: a text,
            a part, or a list of parts.
        where: The template's file and line.

    Raises:
        InvalidTemplate: It is none of these; the text names a role or a part that is unknown.
    """
    shown = repr(value)[:_SHOWN_CHARS]
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
    try:
        messages = [_read_message(item) for item in items]
    except ValueError as exc:
        raise InvalidTemplate(f"{where}: the template's prompt has {exc}") from None
    if not messages or any(m is None for m in messages):
        raise InvalidTemplate(
            f"{where}: the template yielded {shown} as its prompt; yield text, a list "
            "of messages with a role and a content, or {'prompt': …}."
        )
    return Prompt(tuple(m for m in messages if m is not None), extra)


def _read_message(item: Any) -> PromptMessage | None:
    """A message; None where it is none.

    Raises:
        ValueError: It is one with a role or a part that is unknown; the text names it.
    """
    if isinstance(item, PromptMessage):
        return item
    if isinstance(item, str):
        return PromptMessage("user", item)
    role, content = _part_of(item, "role"), _part_of(item, "content")
    if content is None:
        return None
    role = "user" if role is None else getattr(role, "value", role)
    if role not in _ROLES:
        raise ValueError(
            f"a message of the role {role!r}; a role is one of {', '.join(_ROLES)}. Give the text "
            "to the user where it is meant for the agent."
        )
    if isinstance(content, str):
        plain = not (isinstance(item, Mapping) and set(cast("Any", item)) - {"role", "content"})
        return PromptMessage(role, content, None if plain else _as_json(item))
    parts: list[Any] = (
        list(cast("list[Any]", content)) if isinstance(content, list | tuple) else [content]
    )
    text = "\n".join(_part_text(part) for part in parts)
    return PromptMessage(role, text, {**_as_json(item), "role": role, "content": _as_json(content)})


def _part_text(part: Any) -> str:
    """What a part of a message says; a part that is no text, in brackets.

    Raises:
        ValueError: It is no part.
    """
    if isinstance(part, str):
        return part
    for holder in (part, _part_of(part, "resource")):
        if isinstance(text := _part_of(holder, "text"), str):
            return text
    resource = _part_of(part, "resource") or part
    kind = _part_of(part, "type")
    where = _part_of(resource, "uri")
    what = _part_of(resource, "mimeType") or _part_of(resource, "mime_type") or where
    if not isinstance(kind, str) or not (what or _part_of(part, "image_url")):
        raise ValueError(
            f"a part {repr(part)[:_SHOWN_CHARS]}; a part is a text, or has a type and a text, or "
            "is an image or a resource with its data."
        )
    named = f"{kind}, {what}" if what else kind
    return f"[{named}: not shown as text]"


def _part_of(item: Any, name: str) -> Any:
    """A field of a mapping, or an attribute of any other object; None where there is none."""
    if isinstance(item, Mapping):
        return cast("Mapping[str, Any]", item).get(name)
    return getattr(item, name, None)


def _as_json(value: Any) -> Any:
    """A message or its content as JSON, with the names that the wire has."""
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in cast("list[Any]", value)]
    made: Any = to_jsonable_python(value, by_alias=True, exclude_none=True, fallback=_fields_of)
    return made


def _fields_of(value: Any) -> Any:
    """The fields of an object that is no model and no dataclass."""
    fields: Mapping[str, Any] | None = getattr(value, "__dict__", None)
    return str(value) if fields is None else dict(fields)


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
    if hasattr(function, "__wrapped__"):  # what wraps it has another source
        return False
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


_OPENS = frozenset({"__aenter__", "__enter__", "enter_context", "push", "callback"})
"""By these a function opens what it holds without a block of its own."""


def _never_waits(function: Callable[..., Any]) -> bool:
    """Whether it is certain that nothing is awaited, or held open across a yield."""
    body = _body(function)
    for node in (each for statement in body or () for each in ast.walk(statement)):
        match node:
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                return False
            case ast.comprehension(is_async=1):
                return False
            case ast.With() | ast.Try() | ast.TryStar():
                if any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):
                    return False
            case ast.Attribute(attr=name) | ast.Name(id=name):
                if name in _OPENS:
                    return False
            case _:
                pass
    return body is not None


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

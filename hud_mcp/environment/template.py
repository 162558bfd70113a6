"""Templates: async generators that yield a prompt, receive the answer, and yield a grade.

This module owns the declaration, and finds its faults before anything runs. A session runs it.
"""

import ast
import inspect
import textwrap
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from hud_mcp.environment.arguments import Arguments, source_line
from hud_mcp.environment.conversation import Ask, Say
from hud_mcp.environment.moves import Call, Move
from hud_mcp.environment.prompt import AnswerType, Prompt, read_prompt, type_schema
from hud_mcp.environment.task import Task, default_task_id
from hud_mcp.errors import InvalidTask, InvalidTemplate

__all__ = ["Oracle", "Template", "check_generator", "never_waits", "prompts_at_once"]


MoveT = TypeVar("MoveT", bound=Call)
TemplateFunction = Callable[..., AsyncGenerator[Any, Any]]
Oracle = Callable[..., Awaitable[Any]]
"""The solver of a task, through the same tools as any client: `async (agent, **arguments)`."""


class Template:
    """A declared template. Calling it with arguments mints a `Task` and runs nothing.

    Args:
        function: The async generator function.
        env: The name of its environment.
        id: Its id; the function's name by default.
        description: One line for people.
        input: A type that describes the agent's input beside the prompt.
        returns: The type of the answer; the template then receives `Answer[T]`.
        reward: The policy for showing the reward to agents, instead of the server's.
        user: Whether it talks: it yields `Say`, and its server lists `message_user`.

    Attributes:
        prompts_at_once: Whether it certainly awaits nothing before its prompt.
        never_waits: Whether it certainly awaits nothing, and holds no timeout and no task group
            open across a yield.

    Raises:
        InvalidTemplate: It is not an async generator, does not yield twice, or has an argument
            without a JSON schema. The text names file and line.
    """

    input_schema: dict[str, Any] | None = None
    returns_schema: dict[str, Any] | None = None
    reward: str | None = None
    never_waits = user = False
    oracle_function: Oracle | None = None
    moves: tuple[Move, ...] = ()

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
        user: bool = False,
    ) -> None:
        self.user = user
        self.id = id or function.__name__
        self.env = env
        self.function = function
        self.where = source_line(function)
        self.noun = f"template {self.id!r}"
        check_generator(function, where=self.where, noun=self.noun)
        self.description = description or inspect.cleandoc(function.__doc__ or "").split("\n")[0]
        self.arguments = Arguments(function, noun=self.noun)
        self.input_schema = type_schema(input, where=self.where, noun=self.noun)
        self._answers = AnswerType(returns, where=self.where, noun=self.noun)
        self.returns_schema = self._answers.schema
        self.reward = reward
        self.prompts_at_once = prompts_at_once(function)
        self.never_waits = not user and self.prompts_at_once and never_waits(function)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @property
    def needs_world(self) -> bool:
        """Whether its grade may depend on the world, and not only on the answer."""
        return bool(self.arguments.world_types)

    def __call__(self, *args: Any, **kwargs: Any) -> Task:
        """Mint a task; an unknown, missing or wrong argument is an `InvalidTask`."""
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
        """Declare the solver of the template's tasks: `async (agent, **arguments)`.

        It may take the context too, under the template's name for it.

        Raises:
            InvalidTemplate: It takes an argument that the template does not have.
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

    def at(self, *, seconds: float) -> Callable[[MoveT], MoveT]:
        """Declare a move: `(world, **arguments)`, made once these seconds after the prompt.

        A call makes it, before its actions or after them, and its reply has the text that it
        returns. Its first parameter receives the world; the others are arguments of the template.
        A wrong time or argument, or a name that is taken, is an `InvalidTemplate`.
        """
        return self._mover(seconds=seconds)

    def after(self, *, step: int) -> Callable[[MoveT], MoveT]:
        """Declare a move as `at` does, made after the agent's step of this number, from 1."""
        return self._mover(step=step)

    def when(self, condition: Call) -> Callable[[MoveT], MoveT]:
        """Declare a move as `at` does, for the first step after which a function like it holds."""
        return self._mover(condition=condition)

    def _mover(self, **when: Any) -> Callable[[MoveT], MoveT]:
        def declare(function: MoveT) -> MoveT:
            move = Move(function, **when)
            known = (*self.arguments.names, *self.arguments.context_names)
            move.check(noun=self.noun, known=known, others=self.moves)
            self.moves = (*self.moves, move)
            return function

        return declare

    def read_answer(self, raw: str) -> Any:
        """Return the template's form of a submitted answer: `Answer[T]` or the string."""
        return self._answers.read(raw)

    def answer_problem(self, raw: str) -> str | None:
        """Return the reason that an answer lacks the declared type; None if it has the type."""
        return self._answers.problem(raw)

    def run(
        self, args: Mapping[str, Any], world: Any, context: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Any, Any]:
        """Create the generator, and run nothing.

        Args:
            args: The JSON arguments of a task.
            world: The session's world, for the parameters that take it.
            context: The session's complete context. Each parameter that takes it gets a copy. Leave
                it out if no parameter takes it.

        Raises:
            InvalidTask: An argument is unknown, missing, or has the wrong type; or the context is
                missing.
        """
        names = self.arguments.context_names
        if names and context is None:
            raise InvalidTask(
                f"{self.where}: {self.noun} takes its context as {names[0]!r}, but got none. "
                "Pass `context=environment.context_space.fill(task.context)`."
            )
        worlds = dict.fromkeys(self.arguments.world_types, world)
        contexts = {name: dict(context or {}) for name in names}
        return self.function(**self.arguments.parse(args), **worlds, **contexts)

    async def first_prompt(self, running: AsyncGenerator[Any, Any]) -> Prompt:
        """Run a generator of the template to its prompt.

        Raises:
            InvalidTemplate: It ended without a prompt, or yielded something else, or it talks, and
                does not say so.
        """
        try:
            value = await anext(running)
        except StopAsyncIteration:
            raise InvalidTemplate(
                f"{self.where}: {self.noun} ended without yielding a prompt."
            ) from None
        if isinstance(value, Say | Ask):
            if self.never_waits or (isinstance(value, Say) and not self.user):
                raise InvalidTemplate(
                    f"{self.where}: {self.noun} yields {type(value).__name__}, and does not say "
                    "that it talks: write @env.template(user=True)."
                )
            return value.prompt
        prompt = read_prompt(value, where=self.where)
        return replace(prompt, said=Ask(prompt.text)) if self.user else prompt


_OPENS = frozenset({"__aenter__", "__enter__", "enter_context", "push", "callback"})
"""The names by which a function opens something and holds it without a `with` block."""


def check_generator(function: Callable[..., Any], *, where: str, noun: str) -> None:
    """Raise `InvalidTemplate` for what is not an async generator, or yields only once."""
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


def prompts_at_once(function: Callable[..., Any]) -> bool:
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


def never_waits(function: Callable[..., Any]) -> bool:
    """Whether it is certain that nothing is awaited, or held open across a yield."""
    body = _body(function)
    for node in (each for statement in body or () for each in ast.walk(statement)):
        match node:
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                return False
            case ast.comprehension(is_async=1):
                return False
            case ast.Yield(value=ast.Call(func=ast.Name(id="Ask") | ast.Attribute(attr="Ask"))):
                return False  # a conversation is driven by a task
            case ast.With() | ast.Try() | ast.TryStar():
                if any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):
                    return False
            case ast.Attribute(attr=name) | ast.Name(id=name):
                if name in _OPENS:
                    return False
            case _:
                pass
    return body is not None


def _body(function: Callable[..., Any]) -> list[ast.AST] | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None
    return list(getattr(tree.body[0], "body", []))


def _count_yields(function: Callable[..., Any]) -> int | None:
    """Count the yields in a function's own body; None if it is unknown or has a loop."""
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

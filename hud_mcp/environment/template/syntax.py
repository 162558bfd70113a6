"""What a template's source says before any of it has run."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from hud_mcp.errors import InvalidTemplate

__all__ = ["check_generator", "never_waits", "prompts_at_once"]

_OPENS = frozenset({"__aenter__", "__enter__", "enter_context", "push", "callback"})
"""By these a function opens what it holds without a block of its own."""


def check_generator(function: Callable[..., Any], *, where: str, noun: str) -> None:
    """Refuse a function that cannot be a template's.

    Raises:
        InvalidTemplate: It is no async generator, or yields only once.
    """
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
    """The statements of a function; None where its source is unknown."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None
    return list(getattr(tree.body[0], "body", []))


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

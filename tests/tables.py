"""A table of cases as one test, which lists each case that is wrong.

Each row of a parameter of pytest is a test of its own, with its fixtures, its report and its place
in every collection of every worker. A table whose rows need nothing of their own is one test.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["each_of"]

SHOWN = 10
"""Of so many wrong cases a failure has the tracebacks; it names all of them."""


def each_of(
    names: str | Sequence[str],
    cases: Iterable[Any],
    ids: Callable[[Any], object] | Sequence[object] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test for every case of a table, as one test.

    Args:
        names: The arguments that a case gives to the test, as for `pytest.mark.parametrize`.
        cases: One value for each test, or a tuple of them where there are several names.
        ids: Names of the cases, or a function that names one; default: its values.
    """
    arguments = [each.strip() for each in names.split(",")] if isinstance(names, str) else names
    table = list(cases)

    def name_of(index: int) -> str:
        if ids is None:
            return repr(table[index])
        return str(ids(table[index]) if callable(ids) else ids[index])

    def given(case: Any) -> dict[str, Any]:
        values = case if len(arguments) > 1 else (case,)
        return dict(zip(arguments, values, strict=True))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in arguments]

        def run(**fixtures: Any) -> None:
            found = _Wrong(len(table), name_of)
            for index, case in enumerate(table):
                with found.gather(index):
                    test(**fixtures, **given(case))
            found.fail()

        async def run_async(**fixtures: Any) -> None:
            found = _Wrong(len(table), name_of)
            for index, case in enumerate(table):
                with found.gather(index):
                    await test(**fixtures, **given(case))
            found.fail()

        made = functools.wraps(test)(run_async if inspect.iscoroutinefunction(test) else run)
        made.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return made

    return decorate


class _Wrong:
    """The cases that failed so far."""

    def __init__(self, count: int, name_of: Callable[[int], str]) -> None:
        assert count, "a table without cases proves nothing"
        self._count = count
        self._name_of = name_of
        self._found: list[tuple[str, BaseException]] = []
        self._index = 0

    def gather(self, index: int) -> "_Wrong":
        self._index = index
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, traceback: object) -> bool:
        # A skip and an interrupt end the whole test.
        if not isinstance(exc, Exception | pytest.fail.Exception):
            return False
        name = self._name_of(self._index)
        exc.add_note(f"in the case {name}")
        self._found.append((name, exc))
        return True

    def fail(self) -> None:
        if not self._found:
            return
        names = "\n".join(f"  {name}" for name, _ in self._found)
        raise BaseExceptionGroup(
            f"{len(self._found)} of {self._count} cases are wrong:\n{names}\n",
            [exc for _, exc in self._found[:SHOWN]],
        )

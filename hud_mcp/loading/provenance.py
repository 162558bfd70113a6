"""What a row's metadata says of where it comes from: its base task, its split, its context."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from hud_mcp.environment.task import Task
from hud_mcp.values.action import Value

__all__ = [
    "LEFT_OUT",
    "MOST_UNUSED",
    "NOT_RUNNABLE",
    "SETS",
    "UNUSED",
    "LeftOut",
    "UnusedContexts",
    "base_task",
    "clusters_of",
    "context_name",
    "difficulty_of",
    "leave_out",
    "recorded_left_out",
    "recorded_sets",
    "recorded_unused",
    "split_of",
    "told_sets",
    "unused_contexts",
    "why_not_runnable",
]

MOST_UNUSED = 100
"""Of contexts that nothing used, so many are named; the others are counted."""


UNUSED = "unused_contexts"
"""Where a job's metadata says which contexts no row got."""


NOT_RUNNABLE = "not_runnable"
"""Where a row's metadata says why it does not run here."""


LEFT_OUT = "left_out"
"""Where a job's metadata says which rows of its taskset are not in its plan, and why."""

SETS = "tasksets"
"""Where a job's metadata has the ids of its tasks by the set that they are from, if of several."""

_SHOWN = 3


class LeftOut(Value):
    """Rows of a taskset that a job does not run, and does not count, for one reason."""

    reason: str = Field(description="Why, as it follows `it` or the row's id.")
    count: int = Field(description="How many.")
    names: tuple[str, ...] = Field(description="The ids of the first of them.")

    def __str__(self) -> str:
        """It as a line for people, with the first ids."""
        shown = ", ".join(self.names[:_SHOWN])
        more = f" and {self.count - _SHOWN} more" if self.count > _SHOWN else ""
        return f"{self.count}  {self.reason}: {shown}{more}"


class UnusedContexts(Value):
    """Contexts that were given to a job and that none of its rows got."""

    count: int = Field(description="How many.")
    names: tuple[str, ...] = Field(description="The first of them.")


_LEFT_OUT: TypeAdapter[tuple[LeftOut, ...]] = TypeAdapter(tuple[LeftOut, ...])
_SETS: TypeAdapter[dict[str, tuple[str, ...]]] = TypeAdapter(dict[str, tuple[str, ...]])


def base_task(task: Task) -> str:
    """The id that a task had before it was given a context; tasks of one id are one cluster."""
    found = task.metadata.get("base_task")
    return found if isinstance(found, str) else task.id


def split_of(task: Task) -> str | None:
    """The part of an experiment that a row belongs to, where its metadata says it."""
    found = task.metadata.get("split")
    return found if isinstance(found, str) and found else None


def difficulty_of(task: Task) -> str | None:
    """How hard a row is said to be, where its metadata says it."""
    found = task.metadata.get("difficulty")
    return found if isinstance(found, str) and found else None


def why_not_runnable(task: Task) -> str | None:
    """Why a row does not run here, where its metadata says it; None for any other row."""
    found = task.metadata.get(NOT_RUNNABLE)
    return found if isinstance(found, str) and found else None


def leave_out(reasons: Iterable[tuple[Task, str]]) -> list[LeftOut]:
    """Those that are left out, by why, the most frequent reason first.

    Args:
        reasons: Each row with its reason.
    """
    found: dict[str, list[str]] = {}
    for task, why in reasons:
        found.setdefault(why, []).append(task.id)
    made = [
        LeftOut(reason=why, count=len(names), names=tuple(names[:MOST_UNUSED]))
        for why, names in found.items()
    ]
    return sorted(made, key=lambda each: -each.count)


def recorded_left_out(metadata: Mapping[str, Any]) -> tuple[LeftOut, ...]:
    """Which rows a job left out, from its metadata; none where nothing says it."""
    try:
        return _LEFT_OUT.validate_python(metadata.get(LEFT_OUT, ()))
    except ValidationError:
        return ()


def told_sets(
    tasks: Iterable[Task], set_of: Callable[[str], str | None], taskset: str | None
) -> dict[str, Any]:
    """What a job's metadata says of the sets that its tasks are from.

    Args:
        tasks: Those of the job.
        set_of: The name of the set that a task is from, by its id.
        taskset: What the job runs; where that is the set of all tasks, nothing more is said.
    """
    found: dict[str, list[str]] = {}
    for task in tasks:
        if (name := set_of(task.id)) is not None:
            found.setdefault(name, []).append(task.id)
    return {SETS: found} if set(found) - {taskset} else {}


def recorded_sets(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The set that each task of a job is from, by its id; nothing where its `taskset` says it."""
    try:
        found = _SETS.validate_python(metadata.get(SETS, {}))
    except ValidationError:
        return {}
    return {task_id: name for name, ids in found.items() for task_id in ids}


def context_name(task: Task) -> str | None:
    """What the context of a row is called, where its metadata says it."""
    found = task.metadata.get("context")
    return found if isinstance(found, str) and found else None


def clusters_of(tasks: Iterable[Task]) -> dict[str, str]:
    """Which tasks are one cluster in statistics: those of one base task.

    Returns:
        The cluster's name by the task's id. Where all have one base task, those of one context
        are a cluster: what is asked then is how far other contexts would have led. Where all
        have one context too, each is its own.
    """
    every = list(tasks)
    for name_of in (base_task, _context_of):
        found = {task.id: name_of(task) for task in every}
        if len(set(found.values())) > 1:
            return found
    return {task.id: task.id for task in every}


def _context_of(task: Task) -> str:
    """What its context is called, as rows may keep features of their own beside it; else it."""
    return context_name(task) or orjson.dumps(task.context, option=orjson.OPT_SORT_KEYS).decode()


def unused_contexts(
    contexts: Mapping[str, Sequence[str]], tasks: Iterable[Task]
) -> UnusedContexts | None:
    """Tell which contexts no row got; None where each is used.

    Args:
        contexts: The names of those that were given, by environment.
        tasks: The rows.
    """
    used = {(task.env, context_name(task)) for task in tasks}
    shared = len(contexts) > 1
    names = [
        f"{name} ({env})" if shared else name
        for env, given in contexts.items()
        for name in given
        if (env, name) not in used
    ]
    return UnusedContexts(count=len(names), names=tuple(names[:MOST_UNUSED])) if names else None


def recorded_unused(metadata: Mapping[str, Any]) -> UnusedContexts | None:
    """Which contexts no row of a job got, from its metadata; None where nothing says it."""
    try:
        return UnusedContexts.model_validate(metadata.get(UNUSED))
    except ValidationError:
        return None

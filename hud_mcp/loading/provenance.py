"""The origin of a row in its metadata: its base task, its split, its context."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from hud_mcp.environment.task import Task
from hud_mcp.values.action import Value

MOST_UNUSED = 100
"""The most names in a record of unused contexts or left-out rows; the others are counted."""

UNUSED = "unused_contexts"
"""The key of a job's metadata for the contexts that no row got."""

NOT_RUNNABLE = "not_runnable"
"""The key of a row's metadata for the reason why the row does not run here."""

LEFT_OUT = "left_out"
"""The key of a job's metadata for the rows outside its plan, with the reasons."""

SETS = "tasksets"
"""The key of a job's metadata for the ids of its tasks by set, if there are several sets."""

_SHOWN = 3


class LeftOut(Value):
    """Rows of a taskset that a job does not run, and does not count, for one reason."""

    reason: str = Field(description="Why, as it follows `it` or the row's id.")
    count: int = Field(description="How many.")
    names: tuple[str, ...] = Field(description="The ids of the first of them.")

    def __str__(self) -> str:
        """Return a line for people, with the first ids."""
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
    """Return the id of a task before it got a context; tasks of one id are one cluster."""
    found = task.metadata.get("base_task")
    return found if isinstance(found, str) else task.id


def split_of(task: Task) -> str | None:
    """Return the part of an experiment that a row belongs to; None if its metadata has none."""
    return _text(task, "split")


def why_not_runnable(task: Task) -> str | None:
    """Return the reason in a row's metadata why it does not run here; None for any other row."""
    return _text(task, NOT_RUNNABLE)


def _text(task: Task, key: str) -> str | None:
    found = task.metadata.get(key)
    return found if isinstance(found, str) and found else None


def leave_out(reasons: Iterable[tuple[Task, str]]) -> list[LeftOut]:
    """Return the left-out rows by reason, the most frequent reason first."""
    found: dict[str, list[str]] = {}
    for task, why in reasons:
        found.setdefault(why, []).append(task.id)
    made = [
        LeftOut(reason=why, count=len(names), names=tuple(names[:MOST_UNUSED]))
        for why, names in found.items()
    ]
    return sorted(made, key=lambda each: -each.count)


def recorded_left_out(metadata: Mapping[str, Any]) -> tuple[LeftOut, ...]:
    """Return the rows that a job left out, from its metadata."""
    try:
        return _LEFT_OUT.validate_python(metadata.get(LEFT_OUT, ()))
    except ValidationError:
        return ()


def sets_metadata(
    tasks: Iterable[Task], set_of: Callable[[str], str | None], taskset: str | None
) -> dict[str, Any]:
    """Return the metadata of a job about the sets of its tasks; empty if all are of its taskset."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        if (name := set_of(task.id)) is not None:
            found.setdefault(name, []).append(task.id)
    return {SETS: found} if set(found) - {taskset} else {}


def recorded_sets(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the set of each task of a job, by its id; empty if its `taskset` is the set."""
    try:
        found = _SETS.validate_python(metadata.get(SETS, {}))
    except ValidationError:
        return {}
    return {task_id: name for name, ids in found.items() for task_id in ids}


def context_name(task: Task) -> str | None:
    """Return the name of a row's context; None if its metadata has none."""
    return _text(task, "context")


def clusters_of(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the cluster of each task for statistics: tasks of one base task are one cluster.

    If all have one base task, the tasks of one context are a cluster: the question then is how far
    other contexts would have led. If all have one context too, each task is its own.
    """
    every = list(tasks)
    for name_of in (base_task, _context_of):
        found = {task.id: name_of(task) for task in every}
        if len(set(found.values())) > 1:
            return found
    return {task.id: task.id for task in every}


def _context_of(task: Task) -> str:
    """Return the name of a task's context, or else the context itself as JSON."""
    return context_name(task) or orjson.dumps(task.context, option=orjson.OPT_SORT_KEYS).decode()


def unused_contexts(
    contexts: Mapping[str, Sequence[str]], tasks: Iterable[Task]
) -> UnusedContexts | None:
    """Return the contexts, by environment, that no row got; None if each is used."""
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
    """Return the contexts that no row of a job got, from its metadata; None if it has none."""
    try:
        return UnusedContexts.model_validate(metadata.get(UNUSED))
    except ValidationError:
        return None

"""Find the environment that the name of a gym means, and the source of a server for it."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hud_mcp.environment import Environment
from hud_mcp.environment.gyms import CustomGym
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidTask, did_you_mean
from hud_mcp.loading.find import find_environment, find_source, load_environment
from hud_mcp.loading.shipped import shipped_folder
from hud_mcp.loading.source import declared_tasks, load_environments

__all__ = ["Wanted", "find_task", "load_environment", "read_wanted"]


@dataclass(frozen=True)
class Wanted:
    """The argument of `gym.make`, read.

    `task` has no prompt and no calls if only a gym was named (`is_task`). `environment` is a given
    declaration, and `custom` the user's own gym.
    """

    task: Task
    is_task: bool
    name: str
    environment: Environment | None = None
    custom: CustomGym | None = None


def read_wanted(given: Any) -> Wanted:
    """Read the first argument of `gym.make`; InvalidTask says that it is neither task nor gym."""
    if isinstance(given, Task):
        custom = given.gym if isinstance(given.gym, CustomGym) else None
        return Wanted(task=given, is_task=True, name=given.env, custom=custom)
    if isinstance(given, Environment):
        return Wanted(
            task=_bare_task(given.name), is_task=False, name=given.name, environment=given
        )
    if isinstance(given, CustomGym):
        task = Task.model_validate({"prompt": "", "gym": given})
        return Wanted(task=task, is_task=False, name=given.name, custom=given)
    if isinstance(given, str | Path) and str(given).strip():
        return Wanted(task=_bare_task(str(given)), is_task=False, name=str(given))
    if inspect.iscoroutine(given):
        given.close()  # it will not run, and need not say so
        raise InvalidTask("a coroutine is not a gym; await it first, or pass what it returns")
    raise InvalidTask(
        f"{given!r:.80} is not a gym; pass a task, the name of a gym such as 'hud-browser', an "
        "environment, or a CustomGym"
    )


def find_task(
    source: str | Path | Environment, given: Task | Mapping[str, Any] | str | None
) -> tuple[Wanted, str | None]:
    """Return the task or the gym of `connect`, and its address; None for this process.

    An unknown task raises InvalidTask, and an unknown environment SourceNotFound.
    """
    if isinstance(source, Environment):
        task = _found_task([source], given)
        wanted = read_wanted(source)
        return (wanted if task is None else replace(wanted, task=task, is_task=True)), None
    text = str(source)
    scheme, _, rest = text.partition(":")
    if scheme in ("http", "https", "tcp"):
        if given is None or isinstance(given, str):
            raise InvalidTask(
                f"{text} is a server: give the task itself, such as "
                "Task(env=…, template=…, args={…}), or its row."
            )
        return read_wanted(_read_task(given)), text
    place = rest if scheme == "stdio" else text
    environments = (
        [] if not place and given is not None else load_environments([find_source(place)])
    )
    task = _found_task(environments, given)
    if scheme == "stdio":
        if task is None:
            return read_wanted(place), "stdio:"
        return read_wanted(task), f"stdio:{find_source(place)}" if place else "stdio:"
    if task is None:
        return read_wanted(find_environment(place)), None
    named = next((e for e in environments if e.name == task.env), None)
    if named is None:
        names = ", ".join(e.name for e in environments)
        raise InvalidTask(f"{text} has no environment {task.env!r} of this task. It has: {names}.")
    return Wanted(task=task, is_task=True, name=named.name, environment=named), None


def _found_task(
    environments: Sequence[Environment], given: Task | Mapping[str, Any] | str | None
) -> Task | None:
    if not isinstance(given, str):
        return None if given is None else _read_task(given)
    names = {environment.name for environment in environments}
    declared = declared_tasks(environments)
    quickstart = shipped_folder("taskset_data") / "quickstart.jsonl"
    shipped = Taskset.load(quickstart) if quickstart.is_file() else ()
    known = {task.id: task for task in (*shipped, *declared) if task.env in names}
    if given not in known:
        raise InvalidTask(
            f"{', '.join(names)} declares no task {given!r}.{did_you_mean(given, known)} Give the "
            "task itself, such as Task(env=…, template=…, args={…})."
        )
    return known[given]


def _read_task(given: Task | Mapping[str, Any]) -> Task:
    if isinstance(given, Task):
        return given
    try:
        return Task.model_validate(dict(given))
    except ValidationError as exc:
        raise InvalidTask(f"The row is not a task: {exc.errors()[0]['msg']}.") from exc


def _bare_task(name: str) -> Task:
    """Return a task that only names its gym: without a prompt, a setup and a grade."""
    return Task.model_validate({"prompt": "", "gym": name})

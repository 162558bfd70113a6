"""Where the environments of tasks are found."""

from collections.abc import Sequence
from pathlib import Path

from hud_mcp.environment.environment import Environment, declared_environment
from hud_mcp.environment.gyms import why_remote
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidTask, SourceNotFound, name_known
from hud_mcp.loading.source import (
    LISTING,
    gymnasium_source,
    lasting_source,
    shipped_environments,
    shipped_name,
)

__all__ = ["declared_source", "find_sources", "lasting_source"]


def find_sources(given: Sequence[str], tasks: Taskset, place: Path) -> list[str]:
    """Where the environments of tasks are: as given, shipped, in a file `env.py`, in Gymnasium.

    Args:
        given: Where they are, if the user says so.
        tasks: Whose environments are wanted.
        place: The file of the tasks, or the folder in which an `env.py` is looked for first; the
            working folder comes after it. An environment that a Python file of tasks declares
            or imports is taken from there.

    Raises:
        SourceNotFound: One is nowhere.
        InvalidTask: A task's gym ran in HUD's cloud alone.
    """
    if given:
        return list(given)
    _refuse_remote(tasks)
    shipped = shipped_environments()
    beside = (place if place.is_dir() else place.parent) / "env.py"
    found: list[str] = []
    first = {task.env: task.id for task in reversed(tasks)}
    for name in tasks.environment_names:
        if (own := shipped_name(name)) is not None:
            found.append(own)
        elif place.suffix == ".py" and (declared := declared_environment(name)) is not None:
            found.append(declared_source(declared))
        elif beside.is_file():
            found.append(str(beside))
        elif (made := gymnasium_source(name)) is not None:
            found.append(made)
        elif Path("env.py").is_file():
            found.append("env.py")
        else:
            where = tasks.place_of(first[name]) or tasks.name
            raise SourceNotFound(
                f"{where} needs environment {name!r}, which is neither shipped nor in "
                f"{beside}. Say where it is with --env path/to/env.py."
                f"{name_known(name, shipped, what='The shipped ones are', listing=LISTING)}"
            )
    return list(dict.fromkeys(found))


def declared_source(declared: Environment) -> str:
    """What a server loads for an environment that this process has declared.

    Raises:
        SourceNotFound: It is in no file.
    """
    if declared.made_of:
        return declared.made_of
    if not declared.file.is_file():
        raise SourceNotFound(
            f"The environment {declared.name!r} is not in a file, so the server process of "
            "evaluate() cannot load it. Write it to a file; in a notebook, use %%writefile. Or "
            "stay in this process: `async with hud_mcp.connect(env, task=task)`, or `await "
            "taskset.run(agent)`, whose agent is called with a Run."
        )
    return f"{declared.file}:{declared.name}"


def _refuse_remote(tasks: Taskset) -> None:
    for task in tasks:
        if task.env not in shipped_environments() and (remote := why_remote(task.gym)) is not None:
            at = f"{place}: " if (place := tasks.place_of(task.id)) else ""
            raise InvalidTask(f"{at}The task {task.id!r} cannot be run. gym: {remote}")

"""Where commands find environments."""

from collections.abc import Sequence
from pathlib import Path

from hud_mcp.errors import InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.loading.source import (
    gymnasium_source,
    lasting_source,
    shipped_environments,
    shipped_name,
)
from hud_mcp.taskset import Taskset
from hud_mcp.types import why_remote

__all__ = ["find_sources", "lasting_source"]


def find_sources(given: Sequence[str], tasks: Taskset, folder: Path) -> list[str]:
    """Where the environments of tasks are: as given, shipped, in a file `env.py`, in Gymnasium.

    Args:
        given: Where they are, if the user says so.
        tasks: Whose environments are wanted.
        folder: Where an `env.py` is looked for first; the working folder comes after it.

    Raises:
        SourceNotFound: One is nowhere.
        InvalidTask: A task's gym ran in HUD's cloud alone.
    """
    if given:
        return list(given)
    _refuse_remote(tasks)
    shipped = shipped_environments()
    beside = folder / "env.py"
    found: list[str] = []
    first = {task.env: task.id for task in reversed(tasks)}
    for name in tasks.environment_names:
        if (own := shipped_name(name)) is not None:
            found.append(own)
        elif beside.is_file():
            found.append(str(beside))
        elif (made := gymnasium_source(name)) is not None:
            found.append(made)
        elif Path("env.py").is_file():
            found.append("env.py")
        else:
            where = tasks.place_of(first[name]) or tasks.name
            raise SourceNotFound(
                f"{where} needs environment {name!r}, which is not shipped "
                f"({', '.join(shipped)}).{did_you_mean(name, shipped)} Say where it is with "
                "--env path/to/env.py."
            )
    return list(dict.fromkeys(found))


def _refuse_remote(tasks: Taskset) -> None:
    for task in tasks:
        if task.env not in shipped_environments() and (remote := why_remote(task.gym)) is not None:
            at = f"{place}: " if (place := tasks.place_of(task.id)) else ""
            raise InvalidTask(f"{at}The task {task.id!r} cannot be run. gym: {remote}")

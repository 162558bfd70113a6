"""Where commands find environments."""

from collections.abc import Sequence
from pathlib import Path

from hud_mcp.errors import SourceNotFound
from hud_mcp.source import gymnasium_source, lasting_source, shipped_environments
from hud_mcp.taskset import Taskset

__all__ = ["find_sources", "lasting_source"]


def find_sources(given: Sequence[str], tasks: Taskset, folder: Path) -> list[str]:
    """Where the environments of tasks are: as given, shipped, in a file `env.py`, in Gymnasium.

    Args:
        given: Where they are, if the user says so.
        tasks: Whose environments are wanted.
        folder: Where an `env.py` is looked for first; the working folder comes after it.

    Raises:
        SourceNotFound: One is nowhere.
    """
    if given:
        return list(given)
    shipped = shipped_environments()
    beside = folder / "env.py"
    found: list[str] = []
    for name in tasks.environment_names:
        if name in shipped:
            found.append(name)
        elif beside.is_file():
            found.append(str(beside))
        elif (made := gymnasium_source(name)) is not None:
            found.append(made)
        elif Path("env.py").is_file():
            found.append("env.py")
        else:
            raise SourceNotFound(
                f"{tasks.name} needs environment {name!r}, which is not shipped "
                f"({', '.join(shipped)}); say where it is with --env path/to/env.py."
            )
    return list(dict.fromkeys(found))

"""Which environment a gym's name means, and where a server of its own loads it from."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hud_mcp.environment import Environment, declared_environment
from hud_mcp.errors import InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.loading.source import (
    default_sources,
    gymnasium_source,
    load_environments,
    shipped_environments,
    shipped_name,
)
from hud_mcp.task import Task
from hud_mcp.types import CustomGym, why_remote

__all__ = ["Wanted", "find_environment", "find_source", "read_wanted"]

_ENV_FILE = "env.py"


@dataclass(frozen=True)
class Wanted:
    """What `gym.make` was asked for.

    Attributes:
        task: The task; one without a prompt and calls, where only a gym was named.
        is_task: Whether a task was given.
        name: The name of the gym.
        environment: The declaration, where one was given.
        custom: The gym of the user's own, where it is one.
    """

    task: Task
    is_task: bool
    name: str
    environment: Environment | None = None
    custom: CustomGym | None = None


def read_wanted(given: Any) -> Wanted:
    """Read what `gym.make` was given first.

    Raises:
        InvalidTask: It is no task and no gym.
    """
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
        raise InvalidTask("a coroutine is no gym; await it first, or pass what it returns")
    raise InvalidTask(
        f"{given!r:.80} is no gym; pass a task, the name of a gym such as 'hud-browser', an "
        "environment, or a CustomGym"
    )


def find_environment(name: str) -> Environment:
    """Return the environment that a gym's name means, in this process.

    A name is that of an environment that this program has declared, of one in `./env.py`, of a
    shipped one, or of a Gymnasium environment; or it is a path to a file of one.

    Raises:
        SourceNotFound: There is none; the text lists what there is.
        InvalidEnvironment, NotInstalled: It cannot be loaded.
    """
    declared = declared_environment(name)
    if declared is not None:
        return declared
    source = find_source(name)
    found = load_environments([source])
    if len(found) == 1:
        return found[0]
    names = [environment.name for environment in found]
    if name in names:
        return found[names.index(name)]
    raise SourceNotFound(
        f"{source} has {len(found)} environments; name one, such as {source}:{names[0]}. It has: "
        f"{', '.join(names)}."
    )


def find_source(name: str) -> str:
    """Return what `hud-mcp serve` takes for the environment that a gym's name means.

    Raises:
        SourceNotFound: As for `find_environment`.
    """
    shipped = shipped_environments()
    if (own_file := shipped_name(name)) is not None:
        return name if own_file == name else f"{own_file}:{name}"
    place, colon, _ = name.rpartition(":")
    looks_like_path = "/" in name or "\\" in name or name.endswith(".py")
    if looks_like_path or (colon and (name.startswith("gym:") or Path(place).exists())):
        return name
    own = _own_names()
    if name in own:
        return f"{_ENV_FILE}:{name}"
    source = gymnasium_source(name)
    if source is not None:
        return source
    if (remote := why_remote(name)) is not None:
        raise SourceNotFound(remote)
    known = [*shipped, *own]
    raise SourceNotFound(
        f"There is no gym {name!r}.{did_you_mean(name, known)} There are: {', '.join(known)}; any "
        "Gymnasium id, such as CartPole-v1; or the path of a file that declares an environment."
    )


def _own_names() -> list[str]:
    """The environments that `./env.py` declares."""
    if default_sources() != (_ENV_FILE,):
        return []
    return [environment.name for environment in load_environments([_ENV_FILE])]


def _bare_task(name: str) -> Task:
    """What stands for a task where only a gym is named: nothing is asked, set up or graded."""
    return Task.model_validate({"prompt": "", "gym": name})

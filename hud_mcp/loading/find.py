"""The finder of environments: by a name, by a reference, or by the tasks that need them."""

import importlib
import importlib.util
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from hud_mcp.environment.author_files import load_module
from hud_mcp.environment.environment import Environment, declared_environment
from hud_mcp.environment.gyms import why_remote
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidEnvironment, InvalidTask, SourceNotFound, did_you_mean, name_known
from hud_mcp.loading.source import (
    LISTING,
    Scheme,
    default_sources,
    load_environments,
    scheme_of,
    shipped_environments,
    shipped_name,
)
from hud_mcp.registry import find, names_of

_ENV_FILE = "env.py"


def find_sources(given: Sequence[str], tasks: Taskset, near: Path) -> list[str]:
    """Return the sources of the environments of tasks.

    The order is: the user's sources alone; shipped names; a file `env.py` near the tasks, then in
    the working folder; schemes. If a Python file of tasks declares or imports an environment, that
    file's wins.

    Raises:
        SourceNotFound: An environment is nowhere.
        InvalidTask: A task's gym ran in HUD's cloud alone.
    """
    if given:
        return list(given)
    _refuse_remote(tasks)
    shipped = shipped_environments()
    beside = (near if near.is_dir() else near.parent) / "env.py"
    found: list[str] = []
    first = {task.env: task.id for task in reversed(tasks)}
    for name in tasks.environment_names:
        if (own := shipped_name(name)) is not None:
            found.append(own)
        elif near.suffix == ".py" and (declared := declared_environment(name)) is not None:
            found.append(declared_source(declared))
        elif beside.is_file():
            found.append(str(beside))
        elif (made := _named(name)) is not None:
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
    """Return the source of an environment that this process has declared.

    Raises:
        SourceNotFound: The environment is in no file.
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


def find_environment(name: str) -> Environment:
    """Return the environment of a gym's name, in this process.

    The name may be declared by this program or in `./env.py`, shipped, a Gymnasium environment's,
    or a file's path.

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
    """Return the source of a gym's environment; the error is that of `find_environment`."""
    shipped = shipped_environments()
    if (own_file := shipped_name(name)) is not None:
        return name if own_file == name else f"{own_file}:{name}"
    place, colon, _ = name.rpartition(":")
    looks_like_path = "/" in name or "\\" in name or name.endswith(".py")
    if looks_like_path or scheme_of(name) is not None or (colon and Path(place).exists()):
        return name
    own = _own_names()
    if name in own:
        return f"{_ENV_FILE}:{name}"
    if (source := _named(name)) is not None:
        return source
    if (remote := why_remote(name)) is not None:
        raise SourceNotFound(remote)
    known = name_known(name, [*own, *shipped], what="There are", listing=LISTING)
    raise SourceNotFound(
        f"There is no gym {name!r}.{known} A gym is also any Gymnasium id, such as CartPole-v1, or "
        "the path of a file that declares an environment."
    )


def load_environment(
    target: str | Path, *, name: str | None = None, args: Mapping[str, Any] | None = None
) -> Environment:
    """Return the one environment that a source or a dotted module name means; nothing of it runs.

    `name` is an environment or a variable of a file; in a module it is `env` by default, and may be
    a function that takes `args`.

    Raises:
        SourceNotFound: Nothing is there, or nothing of that name.
        InvalidEnvironment: There are several, or the object there is not an environment.
    """
    path = Path(target)
    if not path.exists() and path.suffix != ".py" and path.with_name(f"{path.name}.py").is_file():
        path = path.with_name(f"{path.name}.py")  # `env` means env.py
    if not path.exists() and _is_module(str(target)):
        return _from_module(str(target), name or "env", dict(args or {}))
    if args:
        raise InvalidEnvironment(
            f"{target} is a source, and `args` goes with a function of a module; leave it out."
        )
    found = load_environments([str(path if path.exists() else target)])
    if name is not None:
        held = vars(load_module(path)).get(name) if path.suffix == ".py" else None
        chosen = [e for e in found if e.name == name or e is held]
        if not chosen:
            known = [e.name for e in found]
            raise SourceNotFound(
                f"{target} has no environment {name!r}.{did_you_mean(name, known)} It has: "
                f"{', '.join(known)}."
            )
        found = chosen
    if len(found) > 1:
        names = ", ".join(e.name for e in found)
        raise InvalidEnvironment(f"{target} has several environments; give a `name`: {names}.")
    return found[0]


def _is_module(target: str) -> bool:
    if not all(part.isidentifier() for part in target.split(".")):
        return False
    try:
        return importlib.util.find_spec(target) is not None
    except (ImportError, ValueError):
        return False


def _from_module(target: str, name: str, args: dict[str, Any]) -> Environment:
    held = getattr(importlib.import_module(target), name, None)
    made = held
    if held is not None and not isinstance(held, Environment) and callable(held):
        try:
            inspect.signature(held).bind(**args)
        except TypeError as exc:
            raise InvalidEnvironment(f"{target}.{name} takes other arguments: {exc}.") from None
        made = held(**args)
    if not isinstance(made, Environment):
        raise InvalidEnvironment(
            f"{target} has no environment {name!r}: it is {made!r:.60}. Name a variable that holds "
            "one, or a function that makes one."
        )
    return made


def _refuse_remote(tasks: Taskset) -> None:
    for task in tasks:
        if task.env not in shipped_environments() and (remote := why_remote(task.gym)) is not None:
            at = f"{place}: " if (place := tasks.place_of(task.id)) else ""
            raise InvalidTask(f"{at}The task {task.id!r} cannot be run. gym: {remote}")


def _named(name: str) -> str | None:
    """Return the source by which a scheme has an environment of this name; None if none has."""
    schemes = (cast("Scheme", find("sources", each)) for each in names_of("sources"))
    return next((found for each in schemes if (found := each.named(name)) is not None), None)


def _own_names() -> list[str]:
    if default_sources() != (_ENV_FILE,):
        return []
    return [environment.name for environment in load_environments([_ENV_FILE])]

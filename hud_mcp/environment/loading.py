"""Finding the one environment that a reference means."""

import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hud_mcp.environment.author_files import load_module
from hud_mcp.environment.environment import Environment
from hud_mcp.errors import InvalidEnvironment, SourceNotFound, did_you_mean

__all__ = ["load_environment"]


def load_environment(
    target: str | Path, *, name: str | None = None, args: Mapping[str, Any] | None = None
) -> Environment:
    """Return the one environment that a reference means; nothing of it runs.

    Args:
        target: A Python file, a folder with an `env.py`, or any other source that
            `hud-mcp serve` takes; or a module by its dotted name.
        name: Of a file: which environment, by its name or the variable that holds it. Of a
            module: the variable, `env` by default, which may be a function that makes one.
        args: What such a function is called with.

    Raises:
        SourceNotFound: Nothing is there, or nothing of that name.
        InvalidEnvironment: There are several, or what is there is no environment.
    """
    from hud_mcp.loading import source  # noqa: PLC0415  # it loads this one

    path = Path(target)
    if not path.exists() and path.suffix != ".py" and path.with_name(f"{path.name}.py").is_file():
        path = path.with_name(f"{path.name}.py")  # `env` means env.py
    if not path.exists() and _is_module(str(target)):
        return _from_module(str(target), name or "env", dict(args or {}))
    if args:
        raise InvalidEnvironment(
            f"{target} is a source, and `args` goes with a function of a module; leave it out."
        )
    found = source.load_environments([str(path if path.exists() else target)])
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
    """Whether a target is the dotted name of a module that can be found."""
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

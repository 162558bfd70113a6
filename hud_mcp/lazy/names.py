"""How a module gives names whose homes load when each is first used."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]

_LAST = re.compile(r"[^.:]+$")


def lazy_names(module: str, *references: str, **renamed: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module, which loads the home of a name when it is first used.

    A name that was used is an attribute of the module from then on. Type checkers read imports of
    the same names under `TYPE_CHECKING`.

    Args:
        module: The module's `__name__`.
        references: `package.module:name` for a name, `package.module` for a whole module; each is
            given by the last part.
        renamed: The same under other names.

    Returns:
        What raises `AttributeError` for any other name. Where a home cannot be loaded, it raises
        what that raised, and tries again the next time.
    """
    homes = {_LAST.findall(reference)[0]: reference for reference in references} | renamed

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, attribute = homes[name].partition(":")
        value: Any = import_module(home)
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[module], name, value)
        return value

    return load

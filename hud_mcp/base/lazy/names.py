"""How a module gives names whose homes load when each is first used."""

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["lazy_names", "names_of_stub"]

_LINE = re.compile(r"^from (\S+) import \w+ as (\w+)$", re.MULTILINE)
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


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package that gives the names in its stub.

    The stub, `__init__.pyi`, has a line `from module import name as name` for each. It is read
    when the first name is used. The name of a module of the package is none of its `__all__`.

    Args:
        package: The package's `__name__`.
        file: Its `__file__`.
    """

    @cache
    def homes() -> Mapping[str, str]:
        # Without pathlib, which would take longer to load than all the rest of the package.
        with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:  # noqa: PTH123
            return {name: home for home, name in _LINE.findall(stub.read())}

    @cache
    def public() -> list[str]:
        names = [name for name, home in homes().items() if home != package]
        return sorted([*names, "__version__"])

    def load(name: str) -> Any:
        if name == "__all__":
            return public()
        home = homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, public

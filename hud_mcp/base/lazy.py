"""Names whose homes load when each name is first used, and modules under their former names.

A start must not wait for a library that it may not need. A module that gives such names is a seam.
`libraries.py` is the seam of other people's packages.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

_DECLARED = re.compile(
    r"^(?: {4})?(?:(?:from (\S+) )?import (?:\(\s+)?(\S+) as (\w+)"
    r'|(\w+): Any = "([\w.]+):?(\w*)")',
    re.MULTILINE,
)
"""A line that declares a name: an import, or a reference to a library without types."""
_SPLIT = "# isort: split"


def lazy_names(module: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a seam, which loads the home of a name when it is first used.

    The seam's source declares each name once, in its block under `TYPE_CHECKING`, by a line `from
    home import name as name` or `import home as name`. Checkers read the same lines. For a library
    without types the line is `name: Any = "home:name"`, or `name: Any = "home"` for a whole module.
    An import without `as` is for checkers alone. A home that cannot be loaded raises its own error,
    at each use.
    """

    @cache
    def homes() -> Mapping[str, tuple[str, str]]:
        return declared_names(sys.modules[module].__file__ or "")

    def load(name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = _load(module, *homes()[name])
        # An attribute of the module from now on, so that no later use comes here.
        setattr(sys.modules[module], name, value)
        return value

    return load


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package that gives the names in its stub.

    The stub, `__init__.pyi`, has a line `from home import name as name` for each. It is read when
    the first name is used. `__all__` has those above the line `# isort: split`.
    """

    @cache
    def homes() -> Mapping[str, tuple[str, str]]:
        return declared_names(f"{file.rpartition('.')[0]}.pyi")

    @cache
    def public() -> list[str]:
        return sorted(
            [*declared_names(f"{file.rpartition('.')[0]}.pyi", until=_SPLIT), "__version__"]
        )

    def load(name: str) -> Any:
        if name == "__all__":
            return public()
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = _load(package, *homes()[name])
        setattr(sys.modules[package], name, value)
        return value

    return load, public


def declared_names(path: str, *, until: str = "\0") -> Mapping[str, tuple[str, str]]:
    """Read a seam's or a stub's names: each home, and the name there, empty for a module."""
    # Without pathlib, which would take longer to load than all the rest of the package. A pattern
    # in place of `ast`: the lines are of one form, which tests compare with what `ast` reads.
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        found = _DECLARED.findall(file.read().partition(until)[0])
    names: dict[str, tuple[str, str]] = {}
    for home, target, name, untyped, untyped_home, attribute in found:
        if untyped:
            names[untyped] = (untyped_home, attribute)
        else:
            names[name] = (home, target) if home else (target, "")
    return names


def _load(module: str, home: str, attribute: str) -> Any:
    if not attribute:
        return import_module(home)
    if home == module:  # a module of this package: to ask the package for it would come back here
        return import_module(f"{home}.{attribute}")
    # As the statement does, which loads a module of a package that does not load it itself.
    return getattr(__import__(home, fromlist=[attribute]), attribute)


class _FormerName(ModuleType):
    """A module of a name that another SDK has, or this package had; its homes have the rest."""

    def __init__(self, name: str, homes: Sequence[str]) -> None:
        super().__init__(name)
        self._homes = homes

    def __getattr__(self, name: str) -> Any:
        modules = [import_module(home) for home in self._homes]
        if name == "__all__":
            return sorted({each for module in modules for each in _public(module)})
        if name == "__path__":  # of what lies at its home's, a second module would be made
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # A later home wins, as after a star import of each.
        homes = [each for each in modules if hasattr(each, name)] or modules
        home = next((each for each in reversed(homes) if name in _public(each)), homes[-1])
        try:
            return getattr(home, name)
        except AttributeError as exc:
            text = str(exc).replace(repr(home.__name__), repr(self.__name__))
            raise AttributeError(text) from None

    def __dir__(self) -> list[str]:
        return list(self.__all__)


def _public(module: ModuleType) -> Sequence[str]:
    """The public names of a module; none of a package that holds modules alone."""
    return getattr(module, "__all__", ())


class _Loader:
    """Makes the module of a former name."""

    def __init__(self, homes: Sequence[str]) -> None:
        self._homes = homes

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        return _FormerName(spec.name, self._homes)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a former name has no code of its own."""

    def get_code(self, name: str) -> CodeType | None:
        """The code of the program that `python -m` runs by a former name."""
        del name
        spec = find_spec(self._homes[0])
        loader: Any = spec.loader if spec is not None else None
        return None if loader is None else loader.get_code(self._homes[0])


class _Finder:
    """Finds former names, of which the package has stubs for type checkers alone."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of this package; None for any other."""
        if not name.startswith("hud_mcp."):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.origin is not None:
            return found
        # A folder with stubs alone looks like a package without an `__init__`.
        from hud_mcp.registry import former_homes, holds_modules  # noqa: PLC0415  # a start needs no table

        homes = former_homes(name)
        if not homes:
            return found
        loader: Any = _Loader(homes)
        return ModuleSpec(name, loader, is_package=holds_modules(name))


def find_former_names() -> None:
    """Find former names from now on, in this process."""
    finder: Any = _Finder
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)

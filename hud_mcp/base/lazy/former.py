"""Names that modules have in other SDKs, or had here: programs import them, and find today's homes.

A former name is a module without a file. What is asked of it comes from its homes.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

__all__ = ["find_former_names"]


class _FormerName(ModuleType):
    """A module that has what its homes have."""

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

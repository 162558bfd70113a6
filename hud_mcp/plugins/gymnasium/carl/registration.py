"""`carl/…` ids, registered by Gymnasium's import where carl-bench does not register its own.

Gymnasium has no plugins that register themselves, and an import for selectors must not load it.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["register_ids"]


def register_ids(names: Iterable[str]) -> None:
    """Register environments as `carl/CARLCartPole-v0` is, now or once Gymnasium is loaded."""
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is None or not hasattr(gymnasium, "registry"):
        sys.meta_path.insert(0, _WhenGymnasiumLoads(tuple(names)))
    else:
        _register(gymnasium, names)


def _register(gymnasium: Any, names: Iterable[str]) -> None:
    try:
        metadata.distribution("carl-bench")
    except metadata.PackageNotFoundError:
        pass
    else:
        return
    for name in names:
        env_id = f"carl/{name}-v0"
        if env_id not in gymnasium.registry:
            # What is wrapped is made with Gymnasium's own wrappers; contexts widen its space.
            gymnasium.register(
                env_id,
                entry_point=f"hud_mcp.plugins.gymnasium.carl:{name}",
                order_enforce=False,
                disable_env_checker=True,
            )


class _WhenGymnasiumLoads(MetaPathFinder):
    """Registers once Gymnasium's module has run; finds nothing itself."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find Gymnasium as the other finders do, and have it run with what follows it."""
        if fullname != "gymnasium":
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((each for each in found if each is not None), None)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            run = loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    _register(module, self._names)

            loader.exec_module = run_and_register
        return spec

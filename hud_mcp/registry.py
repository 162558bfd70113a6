"""The plugins, and how the core loads what they offer.

A plugin has a table of strings in its `plugin.py`. The tables load when a name is first looked
for, and the modules that they name when it is found.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hud_mcp.errors import NotInstalled

__all__ = ["BUILT_IN", "Plugin", "former_homes", "holds_modules", "plugins", "service"]

BUILT_IN = (
    "hud_mcp.plugins.gymnasium.plugin",
    "hud_mcp.plugins.hud.plugin",
    "hud_mcp.plugins.models.plugin",
    "hud_mcp.plugins.operate.plugin",
    "hud_mcp.plugins.view.plugin",
)
"""The modules that hold a `PLUGIN`. No other module of the core names a plugin."""


@dataclass(frozen=True)
class Plugin:
    """The names of one plugin. Values are references of the form `module:name`.

    Attributes:
        name: The plugin's name.
        services: What the core asks plugins for, by name.
        names: Former names of modules, each with the modules of today, apart by a blank,
            of which a later one wins. A module in one of them is found by the former name too.
    """

    name: str
    services: Mapping[str, str] = field(default_factory=dict[str, str])
    names: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def plugins() -> tuple[Plugin, ...]:
    """Return the tables of all plugins."""
    return tuple(import_module(each).PLUGIN for each in BUILT_IN)


@cache
def service(name: str) -> Any:
    """Load what a plugin offers by this name.

    Raises:
        NotInstalled: No plugin offers it.
    """
    for plugin in plugins():
        if name in plugin.services:
            module, _, attribute = plugin.services[name].partition(":")
            return getattr(import_module(module), attribute)
    known = ", ".join(sorted(name for plugin in plugins() for name in plugin.services))
    raise NotInstalled(
        f"No plugin offers {name!r}; there are {known}. Install hud-mcp anew: a part of it is "
        "missing."
    )


@cache
def _former_names() -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(homes.split()) for each in plugins() for name, homes in each.names.items()}


def former_homes(name: str) -> tuple[str, ...]:
    """Return the modules that a former name stands for; none where it is not a former name."""
    names = _former_names()
    if name in names:
        return names[name]
    above, _, last = name.rpartition(".")
    homes = [f"{home}.{last}" for home in former_homes(above)] if above else ()
    return tuple(home for home in homes if _is_module(home))


def holds_modules(name: str) -> bool:
    """Whether other modules lie in the one of a former name: in its home, or by former names."""
    if any(each.startswith(f"{name}.") for each in _former_names()):
        return True
    specs = [find_spec(home) for home in former_homes(name)]
    return any(spec is not None and spec.submodule_search_locations is not None for spec in specs)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what it would be in is a module, and no package
        return False

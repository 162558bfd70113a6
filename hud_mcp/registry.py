"""The plugins, and how the core loads what they offer.

A plugin has a table of strings in its `plugin.py`. The tables load when a name is first looked
for, and the modules that they name when it is found.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from hud_mcp.errors import NotInstalled

__all__ = ["BUILT_IN", "Plugin", "plugins", "service"]

BUILT_IN = (
    "hud_mcp.plugins.hud.plugin",
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
    """

    name: str
    services: Mapping[str, str] = field(default_factory=dict[str, str])


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

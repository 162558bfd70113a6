"""The plugins, and how the core finds what they offer.

A plugin has a table of strings in its `plugin.py`; a module that a table names loads when it is
found. Another distribution adds a plugin by an entry point of the group `hud_mcp`.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Literal

from hud_mcp.errors import NotInstalled

__all__ = [
    "BUILT_IN",
    "Command",
    "Entries",
    "Kind",
    "Plugin",
    "broken_plugins",
    "find",
    "former_homes",
    "holds_modules",
    "load",
    "names_of",
    "other_plugins",
    "plugins",
    "service",
    "table",
]

BUILT_IN = (
    "hud_mcp.graders.plugin",
    "hud_mcp.plugins.acp.plugin",
    "hud_mcp.plugins.cluster.plugin",
    "hud_mcp.plugins.gymnasium.plugin",
    "hud_mcp.plugins.hand.plugin",
    "hud_mcp.plugins.hud.plugin",
    "hud_mcp.plugins.install.plugin",
    "hud_mcp.plugins.models.plugin",
    "hud_mcp.plugins.oauth.plugin",
    "hud_mcp.plugins.openenv.plugin",
    "hud_mcp.plugins.operate.plugin",
    "hud_mcp.plugins.servers.plugin",
    "hud_mcp.plugins.sets.plugin",
    "hud_mcp.plugins.users.plugin",
    "hud_mcp.plugins.view.plugin",
)
"""The modules that hold a `PLUGIN`. No other module of the core names a plugin."""

GROUP = "hud_mcp"
"""The group of the entry points by which other distributions add plugins."""

Kind = Literal[
    "agents", "commands", "endpoints", "exports", "functions", "protocols", "sets", "sources",
    "wires",
]  # fmt: skip
"""The tables in which names are looked for."""


@dataclass(frozen=True)
class Command:
    """One command of `hud-mcp`: `module:name` of its click command, and its line in the help."""

    reference: str
    sentence: str


def _entries() -> Any:
    return field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Plugin:
    """The names of one plugin. Values are references of the form `module:name`.

    Attributes:
        sources: Openers of environments by scheme: `gym` opens `gym:CartPole-v1`.
        exports: Formats in which a job or a trajectory is written.
        agents: Makers of agents, by name or by scheme: `random`, `anthropic` of `anthropic:NAME`.
        protocols: The conduct that authors of benchmarks publish, by the names of `--protocol`.
        functions: Calls that `setup` and `evaluate` of a row may name.
        wires: Protocols beside MCP that `serve` speaks.
        endpoints: Publishers of a session's own capabilities, by protocol.
        services: Objects that the core itself asks plugins for.
        names: Former names of modules, each with the modules of today, apart by a blank, of which a
            later one wins. A module in one of them is found by the former name too.
    """

    name: str
    commands: Mapping[str, Command] = field(default_factory=dict[str, Command])
    sources: Mapping[str, str] = _entries()
    sets: Mapping[str, str] = _entries()
    exports: Mapping[str, str] = _entries()
    agents: Mapping[str, str] = _entries()
    functions: Mapping[str, str] = _entries()
    protocols: Mapping[str, str] = _entries()
    wires: Mapping[str, str] = _entries()
    endpoints: Mapping[str, str] = _entries()
    services: Mapping[str, str] = _entries()
    names: Mapping[str, str] = _entries()


@cache
def plugins() -> tuple[Plugin, ...]:
    """Return the tables of the built-in plugins."""
    return tuple(import_module(each).PLUGIN for each in BUILT_IN)


def other_plugins() -> tuple[Plugin, ...]:
    """Return the tables of other distributions' plugins, without those that cannot be loaded."""
    return _others()[0]


def broken_plugins() -> tuple[str, ...]:
    """Return one sentence for each plugin of another distribution that cannot be loaded."""
    return _others()[1]


@cache
def _others() -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    # Reading entry points takes longer than the first reply of a server may: it is done for
    # lists, and for names that no built-in table has. Standard output may be the protocol's.
    found: list[Plugin] = []
    broken: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            with redirect_stdout(sys.stderr):
                plugin = point.load()
        except (Exception, SystemExit) as exc:  # noqa: BLE001  # code of others, which the sentence names
            broken.append(_cannot_load(point, f"{type(exc).__name__}: {exc}"))
            continue
        if isinstance(plugin, Plugin):
            found.append(plugin)
        else:
            broken.append(_cannot_load(point, f"it is a {type(plugin).__name__}, no Plugin"))
    return tuple(found), tuple(broken)


def _cannot_load(point: EntryPoint, why: str) -> str:
    of = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return (
        f"The plugin {point.name!r}{of} ({point.value}) cannot be loaded: {why}. "
        "Update or uninstall that distribution."
    )


def table(kind: Kind) -> dict[str, Any]:
    """Return the entries of a kind in the built-in tables, by name; none of them loads."""
    return _merged(kind, plugins())


def names_of(kind: Kind) -> dict[str, Any]:
    """Return the entries of a kind in all tables, by name; a built-in name goes before another."""
    return _merged(kind, (*plugins(), *other_plugins()))


def _merged(kind: Kind, tables: tuple[Plugin, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in tables:
        for name, entry in getattr(each, kind).items():
            found.setdefault(name, entry)
    return found


def find(kind: Kind, name: str) -> Any:
    """Load the entry of a kind that has this name; None if no plugin has it.

    Entry points are read only if no built-in table has the name.
    """
    own = table(kind).get(name)
    entry = own or _merged(kind, other_plugins()).get(name)
    if entry is None:
        return None
    # The module of another distribution may print as it loads.
    with nullcontext() if own else redirect_stdout(sys.stderr):
        return load(entry.reference if isinstance(entry, Command) else entry)


class Entries(Mapping[str, Any]):
    """The entries of one kind by name; each loads when it is read, other distributions' too.

    Iteration and `in` know the built-in names alone, so that no entry point is read for them.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind: Kind = kind

    def __getitem__(self, name: str) -> Any:
        found = find(self._kind, name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in table(self._kind)

    def __iter__(self) -> Iterator[str]:
        return iter(table(self._kind))

    def __len__(self) -> int:
        return len(table(self._kind))


def load(reference: str) -> Any:
    """Import the object that `module:name` refers to."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


@cache
def service(name: str) -> Any:
    """Load the object that a built-in plugin offers to the core; `NotInstalled` if none does."""
    for plugin in plugins():
        if name in plugin.services:
            return load(plugin.services[name])
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

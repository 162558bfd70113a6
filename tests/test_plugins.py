"""The core finds what plugins offer by the strings of their tables, and loads nothing before."""

import inspect
import subprocess
import sys
from importlib import import_module
from typing import get_args

import pytest
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp
from hud_mcp.errors import NotInstalled
from hud_mcp.registry import BUILT_IN, Command, Kind, find, load, plugins, service, table

SERVICES = {name: reference for plugin in plugins() for name, reference in plugin.services.items()}
ENTRIES = [
    (kind, name, plugin.name)
    for plugin in plugins()
    for kind in get_args(Kind)
    for name in getattr(plugin, kind)
]


def test_each_plugin_has_a_name_and_services_of_its_own() -> None:
    """No plugin hides what another one offers."""
    assert len({plugin.name for plugin in plugins()}) == len(BUILT_IN)
    assert len(SERVICES) == sum(len(plugin.services) for plugin in plugins())


@each_of(("kind", "name", "owner"), ENTRIES)
def test_every_entry_of_every_table_imports(kind: Kind, name: str, owner: str) -> None:
    """It lies in the folder of its plugin, or is a grader; no other plugin has its name."""
    entry = table(kind)[name]
    reference = entry.reference if isinstance(entry, Command) else entry
    assert reference.startswith((f"hud_mcp.plugins.{owner}.", "hud_mcp.graders."))
    assert find(kind, name) is load(reference)
    assert [each for each in ENTRIES if each[:2] == (kind, name)] == [(kind, name, owner)]


@each_of("name", sorted(SERVICES))
def test_every_service_of_every_table_imports(name: str) -> None:
    """A service is what its reference names, in the folder of the plugin that offers it."""
    module, _, attribute = SERVICES[name].partition(":")
    assert service(name) is getattr(import_module(module), attribute)
    (owner,) = [plugin.name for plugin in plugins() if name in plugin.services]
    assert module.startswith(f"hud_mcp.plugins.{owner}.")


@each_of("name", [each for each in sorted(SERVICES) if each[0].isupper()])
def test_a_service_that_stands_for_a_method_has_its_parameters(name: str) -> None:
    """`Task.run` calls its service with what it was given: names, kinds and defaults are one."""
    owner, _, method = name.partition(".")
    taken = list(inspect.signature(service(name)).parameters.values())[1:]
    promised = list(
        inspect.signature(getattr(getattr(hud_mcp, owner), method)).parameters.values()
    )[1:]
    form = [(each.name, each.kind, each.default) for each in promised]
    assert [(each.name, each.kind, each.default) for each in taken] == form


def test_a_service_that_no_plugin_offers_is_refused_with_those_that_there_are() -> None:
    """The error names what was asked for, and what there is."""
    with pytest.raises(NotInstalled, match=r"'object shop'; there are .*object store"):
        service("object shop")


def test_the_registry_loads_no_plugin_before_it_is_asked() -> None:
    """A server that needs none of them does not wait for them."""
    program = "import hud_mcp.store, hud_mcp.registry, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert not [name for name in done.stdout.split() if name.startswith("hud_mcp.plugins")]

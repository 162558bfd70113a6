"""Names that modules have in other SDKs, or had here, lead to the modules of today."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp
from hud_mcp.registry import former_homes, plugins

NAMES = {name: homes.split() for plugin in plugins() for name, homes in plugin.names.items()}
ROOT = Path(hud_mcp.__file__).parent


@each_of("name", sorted(NAMES))
def test_a_former_name_has_what_its_homes_have(name: str) -> None:
    """The very objects: a class that is imported by both names is one class."""
    found = importlib.import_module(name)
    homes = [importlib.import_module(home) for home in NAMES[name]]
    given = {each: getattr(home, each) for home in homes for each in getattr(home, "__all__", ())}
    assert found.__all__ == sorted(given)
    for each, value in given.items():
        assert getattr(found, each) is value


@each_of("name", sorted(NAMES))
def test_type_checkers_read_the_same_from_a_stub(name: str) -> None:
    """Each stub imports all that the homes have, and nothing else.

    It names what a home gathers as it loads, or loads later: tools that run nothing miss that.
    """
    path = ROOT.joinpath(*name.split(".")[1:])
    (stub,) = [each for each in (path / "__init__.pyi", path.with_suffix(".pyi")) if each.exists()]
    given = [
        (node.module, alias.name)
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    if name in ("hud_mcp.carl", "hud_mcp.env"):
        (home,) = NAMES[name]
        public = importlib.import_module(home).__all__
        assert sorted(given) == sorted((home, each) for each in public)
    else:
        assert given == [(home, "*") for home in NAMES[name]]


def test_every_stub_is_of_a_former_name() -> None:
    """A name that is taken out of the tables leaves none behind."""
    stubs = {
        path.relative_to(ROOT.parent).with_suffix("")
        for path in ROOT.rglob("*.pyi")
        if not path.with_suffix(".py").exists()  # beside code, it has the names of a seam
    }
    names = {".".join(stub.parts).removesuffix(".__init__") for stub in stubs}
    assert names == set(NAMES)


def test_a_module_that_never_was_is_not_found() -> None:
    """Neither beside a former name nor in one."""
    for name in ("hud_mcp.adapter", "hud_mcp.utils.commons", "hud_mcp.errors.more"):
        assert former_homes(name) == ()
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


def test_an_attribute_that_no_home_has_is_none_of_a_former_name() -> None:
    """The error names the module as the program does."""
    with pytest.raises(AttributeError, match=r"'hud_mcp\.utils' has no attribute 'FunctionConfg'"):
        _ = importlib.import_module("hud_mcp.utils").FunctionConfg


def test_no_table_loads_before_a_former_name_is_asked_for() -> None:
    """A program that uses the names of today does not wait for them."""
    program = (
        "import hud_mcp.errors, hud_mcp.values.action, sys\n"
        "print('hud_mcp.registry' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.split() == ["False"]

"""The package's own names: one list, each at home in its module, each explained."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp

NAMES = [name for name in hud_mcp.__all__ if not name.startswith("_")]
MOST = 80
"""A reader of the list can hold so many."""
VALUES = {"CLA", "Action", "Context", "FunctionConfigs", "Gym", "HudStyleConfigs"}
"""Names of types that are no classes; what they mean stands in their modules."""


def names_for_type_checkers() -> dict[str, str]:
    """What the stub imports: name to module, without modules of the package."""
    tree = ast.parse(Path(hud_mcp.__file__).with_suffix(".pyi").read_text())
    return {
        alias.asname or alias.name: node.module or ""
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "hud_mcp"
        for alias in node.names
    }


def test_the_list_is_sorted_and_has_no_name_twice() -> None:
    """A reader finds a name in it, and a merge shows in it."""
    assert len(set(hud_mcp.__all__)) == len(hud_mcp.__all__)
    assert len(NAMES) <= MOST
    assert set(NAMES) < set(names_for_type_checkers())
    assert dir(hud_mcp) == sorted(hud_mcp.__all__)


@each_of("name", sorted(names_for_type_checkers()))
def test_a_public_name_is_what_type_checkers_are_told(name: str) -> None:
    """The name that loads on use is the very object of the module that is its home."""
    module = importlib.import_module(names_for_type_checkers()[name])
    assert getattr(hud_mcp, name) is getattr(module, name)
    assert name in module.__all__


@each_of("name", sorted(set(names_for_type_checkers()) - VALUES))
def test_a_public_name_is_explained_where_it_is_defined(name: str) -> None:
    """Each has a docstring of its own that begins with a sentence."""
    value: Any = getattr(hud_mcp, name)
    assert value.__doc__
    assert value.__doc__.strip().splitlines()[0].rstrip().endswith((".", ":"))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="module 'hud_mcp' has no attribute 'Enviroment'"):
        hud_mcp.Enviroment  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


_ELSEWHERE = ("__main__",)
"""Programs, which run when they load."""


@pytest.mark.long
def test_every_module_lists_only_names_that_it_has() -> None:
    """`__all__` is true in every module that loads without an extra."""
    checked = 0
    for info in pkgutil.walk_packages(hud_mcp.__path__, "hud_mcp."):
        if info.name.endswith(_ELSEWHERE) or "gymnasium" in info.name:
            continue
        module = importlib.import_module(info.name)
        missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
        assert missing == [], info.name
        checked += 1
    assert checked > 30


def test_everything_can_be_imported_with_one_star() -> None:
    """In a fresh process, as a notebook does it."""
    program = "from hud_mcp import *; print(Environment.__name__, Grade(reward=1).reward)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(hud_mcp.__file__).parent.parent)},
    )
    assert done.stdout.split() == ["Environment", "1.0"]

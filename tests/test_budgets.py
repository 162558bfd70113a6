"""The size of the house: ceilings that only fall.

A change that needs more than there is raises a ceiling by hand, and says why in its commit.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
from tables import each_of

import hud_mcp
from hud_mcp.cli import main

PACKAGE = Path(hud_mcp.__file__).parent

LINES, MODULES, DOCSTRING_LINES = 114_657, 513, 15_150
"""Of the whole package, with all plugins but those below."""

ADDED = {
    "plugins/acp/": 1_530,
    "plugins/servers/": 6_480,
    "plugins/sets/mcp/": 405,
    "plugins/models/gateway/": 4_660,
    "plugins/models/translate/": 1_290,
    "plugins/oauth/": 2_550,
    "plugins/sets/tau2/": 150,
    "plugins/users/": 780,
}
"""Lines of the plugins that came after these ceilings, by their folder."""

FILE_LINES, FUNCTION_LINES = 450, 50
"""Of one file, and of one function with its docstring."""

OPTIONS = {"": 150, "serve": 16, "eval": 24}
"""Options that `--help` shows: of all commands together, and of two."""

LONG_FUNCTIONS = {
    "plugins/operate/upkeep/upkeep.py:prune",
    "plugins/sets/webvoyager.py:compute_score",
    "rollout/evaluate.py:evaluate",
    "server/http.py:serve_http",
    "server/stdio/serve.py:serve_stdio",
    "worlds/browser/page.py:open_verifier",
    "worlds/browser/spec.py:_context_space",
    "worlds/browser/spec.py:open",
    "worlds/browser/target.py:aimed",
}
"""Functions above the limit, of which each is divided when it changes."""


@cache
def sources() -> dict[str, tuple[str, ast.Module]]:
    """Each module's text and syntax, by its path."""
    texts = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


def docstring_lines(tree: ast.Module) -> Iterator[int]:
    """The lines of each docstring of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield (first.end_lineno or 0) - first.lineno + 1


def test_the_package_grows_no_further() -> None:
    """In lines, in modules, and in lines of docstrings."""
    house = [each for name, each in sources().items() if not name.startswith(tuple(ADDED))]
    assert sum(text.count("\n") for text, _ in house) <= LINES
    assert len(house) <= MODULES
    trees = [tree for _, tree in house]
    assert sum(n for tree in trees for n in docstring_lines(tree)) <= DOCSTRING_LINES


@each_of("folder", ADDED)
def test_a_plugin_that_was_added_has_a_ceiling_of_its_own(folder: str) -> None:
    """It grows no further either."""
    lines = [text.count("\n") for name, (text, _) in sources().items() if name.startswith(folder)]
    assert sum(lines) <= ADDED[folder]


def test_no_file_is_longer_than_one_reads_at_once() -> None:
    """A module is one noun."""
    long = {
        name: n for name, (text, _) in sources().items() if (n := text.count("\n")) > FILE_LINES
    }
    assert long == {}


def test_no_function_is_longer_than_a_page() -> None:
    """But for those that are listed, each of which still is."""
    long = {
        f"{name}:{node.name}"
        for name, (_, tree) in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    }
    assert long == LONG_FUNCTIONS


def shown_options(command: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The options that the help of a command and of those in it shows, by the command's name."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is not None and not inner.hidden:
                yield from shown_options(inner, f"{name} {each}".strip())
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden and each.name != "help":
            yield name, each.opts[0]


@each_of("command", OPTIONS)
def test_the_options_of_commands_are_few(command: str) -> None:
    """A person finds the one that they need."""
    found = [option for name, option in shown_options(main) if command in ("", name)]
    assert len(found) <= OPTIONS[command], found

"""Each package that this project imports is declared by it, not only by what it depends on."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sources import name_of, statements

ROOT = Path(__file__).resolve().parent.parent

OF_DEVELOPERS = {"test", "check", "docs", "release"}
"""Extras that no user installs."""

OF_USERS = {
    "ipython": "a notebook brings it",
    "pandas": "a data frame is asked for by a user who has it",
    "polars": "the same",
}
"""Distributions that are used only where a user has them already, and why."""

OURS = {"hud-mcp", "hud-mcp-client"}

ELSEWHERE = {"ray": "ray"}
"""Top-level modules, with their distributions, that the tests of a lane install apart."""


LOADERS = ("import_module", "__import__")
"""Functions that load what they are given the names of."""

UNTYPED = re.compile(r': Any = "([\w.]+)')
"""The home of a name in a seam whose library has no types; a statement imports the others."""


@cache
def others() -> dict[str, set[str]]:
    """The other distributions that hold each top-level module; an empty set holds ours."""
    return {top: set(names) - OURS for top, names in packages_distributions().items()}


def imported(text: str) -> Iterator[str]:
    """The absolute modules that a file imports, by a statement or through a seam."""
    tree = ast.parse(text)
    loads = any(name in text for name in LOADERS)
    if "lazy_names(__name__)" in text:
        yield from UNTYPED.findall(text)
    for node in ast.walk(tree) if loads else statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            # A namespace is imported from, too: `from opentelemetry import trace`.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and name_of(node.func) in LOADERS:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            for each in given:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value.replace(":", ".")


@cache
def owners(module: str) -> frozenset[str]:
    """The distributions that hold a module; more than one shares a namespace."""
    top = module.partition(".")[0]
    found = set(others().get(top, ())) or {ELSEWHERE.get(top, top)}
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if len(found) == 1:
            break
        beginnings = ("/".join(parts[:length]) + "/", "/".join(parts[:length]) + ".py")
        holding = {n for n in found if any(f.startswith(beginnings) for f in files_of(n))}
        found = holding or found
    return frozenset(canonicalize_name(name) for name in found)


@cache
def files_of(name: str) -> tuple[str, ...]:
    """The paths of the files of an installed distribution."""
    return tuple(str(file) for file in distribution(name).files or ())


def declared(pyproject: Path) -> set[str]:
    """The distributions that a project declares for its users, each with a lower bound."""
    project = tomllib.loads(pyproject.read_text())["project"]
    texts = list(project["dependencies"])
    for extra, some in project.get("optional-dependencies", {}).items():
        if extra not in OF_DEVELOPERS:
            texts += some
    found = [Requirement(text) for text in texts]
    own = canonicalize_name(project["name"])
    loose = [str(each) for each in found if each.name != own and ">=" not in str(each.specifier)]
    assert not loose, f"without a lower bound: {loose}"
    return {canonicalize_name(each.name) for each in found}


def undeclared(folders: list[Path], may_use: set[str]) -> list[str]:
    """Each import of a distribution that is not declared, with its file."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    own = {path.stem for path in paths} | {folder.name for folder in folders}
    missing: set[str] = set()
    for path in paths:
        for module in imported(path.read_text()):
            top = module.partition(".")[0]
            is_ours = top in {"hud_mcp", *own} and not others().get(top)
            if is_ours or top in sys.stdlib_module_names:
                continue
            if not owners(module) & may_use:
                missing.add(f"{path.name} imports {module}, of {', '.join(owners(module))}")
    return sorted(missing)


def test_what_is_imported_is_declared() -> None:
    """Another package's requirements may change without notice; ours are written down."""
    library = [ROOT / "hud_mcp", ROOT / "environments"]
    may_use = declared(ROOT / "pyproject.toml") | set(OF_USERS)
    client = [ROOT / "client" / "hud_mcp_client"]
    missing = undeclared(library, may_use)
    missing += undeclared(client, declared(ROOT / "client" / "pyproject.toml"))
    assert missing == []


def test_an_import_that_is_not_declared_is_seen(tmp_path: Path) -> None:
    """By any form of import; and each part of a shared namespace is a distribution of its own."""
    (tmp_path / "room.py").write_text(
        "import httpx2\nfrom referencing import Registry\nfrom opentelemetry import trace\n"
        'import opentelemetry.sdk.trace\ncalc: Any = "genai_prices:calc_price"\n'
        "__getattr__ = lazy_names(__name__)\n"
        "def f():\n    import_module('regex')\nimport click\nimport json\n"
    )
    found = undeclared([tmp_path], {"click"})
    assert [each.rpartition(", of ")[2] for each in found] == [
        "genai-prices",
        "httpx2",
        "opentelemetry-sdk",
        "opentelemetry-api",
        "referencing",
        "regex",
    ]

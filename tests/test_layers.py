"""Imports go down only, what is heavy loads only where it is used, and the library has manners.

The rules are in `pyproject.toml`: floors, plugins and circles are contracts of import-linter, heavy
packages and manners are rules of ruff. Each test runs a checker on this package, and on a small
tree that breaks each of its rules, to show that a violation is seen. Strings that name modules are
imports too; no tool reads them, so the last checker is here.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grimp
import pytest
from tables import each_of
from waiting import PATIENCE_S

import hud_mcp

ROOT = Path(hud_mcp.__file__).parent.parent
RULES: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]


def floors_of(contracts: list[dict[str, Any]]) -> dict[str, int]:
    """The floor of each room, from the bottom up, by the contract that holds imports to them."""
    (layers,) = [each["layers"] for each in contracts if each["id"] == "floors"]
    return {
        room.strip(): floor
        for floor, rooms in enumerate(reversed(layers))
        for room in rooms.split(":")
    }


FLOORS = floors_of(RULES["importlinter"]["contracts"])


def run(*arguments: str, cwd: Path) -> tuple[int, str]:
    """Run a checker of the environment that runs the tests; its status and all of its output."""
    program = Path(sys.executable).with_name(arguments[0])
    done = subprocess.run(
        [program, *arguments[1:]],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(cwd), "COLUMNS": "300"},
    )
    return done.returncode, done.stdout + done.stderr


def grow(root: Path, files: Mapping[str, str]) -> Path:
    """Write a small tree that has the rules of this one, with a file for each room."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    rooms = {
        f"hud_mcp/{room}/__init__.py": "" for room in FLOORS if room not in ("errors", "registry")
    }
    rest = {
        "hud_mcp/__init__.py": "",
        "hud_mcp/__main__.py": "",
        "hud_mcp/errors.py": "import json",
        "hud_mcp/registry.py": 'X = ("hud_mcp.plugins.hud.plugin",)',
        "hud_mcp/agents/agent.py": "",
        "hud_mcp/plugins/hud/__init__.py": "",
        "hud_mcp/plugins/hud/plugin.py": 'X = "hud_mcp.plugins.hud:X"',
        "hud_mcp/plugins/view/__init__.py": "",
        "hud_mcp/store/sql/__init__.py": "import sqlalchemy",
        "hud_mcp/server/app.py": "from mcp.server.lowlevel import Server",
        "environments/shop.py": "from hud_mcp import Environment",
    }
    for name, text in {**rooms, **rest, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_imports_go_down_and_never_in_a_circle() -> None:
    """The contracts hold for the package as it is."""
    status, said = run("lint-imports", "--no-logo", cwd=ROOT)
    assert status == 0, said


def test_a_tree_that_keeps_the_rules_has_no_violations(tmp_path: Path) -> None:
    """The checkers do not cry wolf."""
    grow(tmp_path, {})
    assert run("lint-imports", "--no-logo", "--no-cache", cwd=tmp_path)[0] == 0
    assert list(strings_that_point_up(tmp_path)) == []
    assert list(inner_names(tmp_path)) == []


UPWARD = {
    "errors.py": "import hud_mcp.values",
    "values/action.py": "def f():\n    from hud_mcp import session",
    "base/x.py": "class A:\n    from hud_mcp.store import x",
    "store/x.py": "from ..session import Session",
    "session/x.py": "if TYPE_CHECKING:\n    import hud_mcp.server",
    "environment/x.py": "import hud_mcp.worlds",
    "server/x.py": "from hud_mcp.cli import main",
    "cli/x.py": "import hud_mcp.plugins.view",
    "plugins/hud/x.py": "import hud_mcp.plugins.view",
    "plugins/hud/a.py": "import hud_mcp.plugins.hud.b",
    "plugins/hud/b.py": "def f():\n    import hud_mcp.plugins.hud.a",
    "record/x.py": "import hud_mcp.sandbox",
    "agents/agent.py": "import hud_mcp.environment",
    "rollout/x.py": "from hud_mcp import Store",
    "manager.py": "",
}
"""By file: an import that the contracts forbid; the last file has no floor."""


def test_each_forbidden_import_is_named(tmp_path: Path) -> None:
    """Wherever it stands in a file, and whatever its form."""
    status, said = run(
        "lint-imports",
        "--no-logo",
        "--no-cache",
        cwd=grow(tmp_path, {f"hud_mcp/{name}": text for name, text in UPWARD.items()}),
    )
    assert status == 1
    missing = [text for text in SAID if text not in re.sub(r"\s+", " ", said)]
    assert missing == [], said


SAID = (
    "- hud_mcp.manager ",
    "hud_mcp.errors -> hud_mcp.values ",
    "hud_mcp.values.action -> hud_mcp.session ",
    "hud_mcp.base.x -> hud_mcp.store",
    "hud_mcp.store.x -> hud_mcp.session ",
    "hud_mcp.session.x -> hud_mcp.server ",
    "hud_mcp.environment.x -> hud_mcp.worlds ",
    "hud_mcp.server.x -> hud_mcp.cli ",
    "hud_mcp.cli.x -> hud_mcp.plugins.view ",
    "hud_mcp.plugins.hud.x -> hud_mcp.plugins.view ",
    "hud_mcp.record.x -> hud_mcp.sandbox ",
    "hud_mcp.agents.agent -> hud_mcp.environment ",
    "hud_mcp.rollout.x -> hud_mcp ",
    "No cycles are allowed in hud_mcp.plugins.hud. ",
)
"""Each import in what the checker says, and the circle by its room."""

REFERENCE = re.compile(r"hud_mcp((?:\.\w+)+)(:\w+)?")


def strings_that_point_up(root: Path) -> Iterator[str]:
    """The strings of sources that name a module which the source may not import.

    The registry's list of plugins and the tables of plugins are there to name what lies above.
    """
    for path in sorted((root / "hud_mcp").rglob("*.py")):
        importer = path.relative_to(root / "hud_mcp")
        text = path.read_text()
        if importer.name in ("registry.py", "plugin.py") or not REFERENCE.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = REFERENCE.fullmatch(node.value)
                if named and is_module(root, named[1]) and points_up(importer, named[1]):
                    yield f"{importer}:{node.lineno}: {node.value}"


def is_module(root: Path, name: str) -> bool:
    """Whether a name with a leading dot is that of a module of the package."""
    path = root / "hud_mcp" / Path(*name[1:].split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def points_up(importer: Path, target: str) -> bool:
    """Whether a module lies above another, or in another plugin."""
    parts = importer.with_suffix("").parts
    room, inside = target.split(".")[1], tuple(target.split(".")[2:3])
    if parts[0] == room == "plugins":
        return parts[1:2] != inside
    return parts[0] in FLOORS and FLOORS.get(room, -1) > FLOORS[parts[0]]


def test_no_string_of_the_core_names_a_module_above_it() -> None:
    """A string that a module loads from is an import."""
    assert list(strings_that_point_up(ROOT)) == []


@each_of(
    ("name", "text", "wrong"),
    [
        ("server/app.py", "X = 'hud_mcp.plugins.view:x'", 1),
        ("plugins/hud/x.py", "X = ['hud_mcp.plugins.view:x']", 1),
        ("values/x.py", "def f():\n    return load('hud_mcp.store')", 1),
        ("plugins/hud/x.py", "X = 'hud_mcp.store'", 0),
        ("plugins/hud/plugin.py", "X = 'hud_mcp.plugins.view:x'", 0),
        ("values/x.py", "X = 'hud_mcp.reward'", 0),
        ("values/x.py", "X = 'See hud_mcp.store for more.'", 0),
    ],
)
def test_a_string_that_points_up_is_seen(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str, wrong: int
) -> None:
    """Wherever it stands; a name that is no module's is none."""
    root = grow(tmp_path_factory.mktemp("tree"), {f"hud_mcp/{name}": text})
    found = list(strings_that_point_up(root))
    assert len(found) == wrong
    assert all(name in each for each in found)


MISUSED = {
    "values/action.py": ("assert x", "S101"),
    "server/x.py": ("print('x')", "T201"),
    "rollout/x.py": ("from mcp import Client", "TID253"),
    "rollout/y.py": ("def f():\n    from mcp.server import Server", "TID251"),
    "session/x.py": ("def f():\n    import playwright", "TID251"),
    "environment/spec.py": ("import playwright.async_api", "TID253"),
    "store/x.py": ("import sqlalchemy.orm", "TID253"),
    "plugins/view/x.py": ("import gymnasium", "TID253"),
}
"""By file: what a library does not do, or loads too early, and the rule of ruff that forbids it."""

ALLOWED = {
    "rollout/x.py": "def f():\n    from mcp import Client",
    "store/sql/x.py": "import sqlalchemy",
    "worlds/browser/x.py": "import playwright.async_api",
    "store/x.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sqlalchemy",
    "cli/x.py": "print('x')",
}


def ruff(root: Path) -> list[str]:
    """The rules that files of a tree break, as `file: rule`."""
    said = run(
        "ruff", "check", "--no-cache", "--select", "S101,T201,TID25",
        "--output-format", "concise", "hud_mcp", cwd=root,
    )[1]  # fmt: skip
    found = re.findall(r"^hud_mcp/(\S+?):\d+:\d+: (\w+) ", said, re.MULTILINE)
    return sorted(f"{name}: {rule}" for name, rule in found)


def test_heavy_packages_and_bad_manners_are_seen(tmp_path: Path) -> None:
    """Each rule, and what it lets pass."""
    bad = grow(tmp_path / "bad", {f"hud_mcp/{name}": text for name, (text, _) in MISUSED.items()})
    wanted = {f"{name}: {rule}" for name, (_, rule) in MISUSED.items()}
    assert wanted <= set(ruff(bad))
    good = grow(tmp_path / "good", {f"hud_mcp/{name}": text for name, text in ALLOWED.items()})
    assert ruff(good) == []


def test_no_error_of_any_kind_is_passed_over() -> None:
    """`suppress(Exception)` hides what went wrong; no rule of ruff knows it."""
    hides = re.compile(r"suppress\([^)]*\b(?:Base)?Exception\b")
    assert hides.search("with suppress(OSError, Exception):")
    files = sorted((ROOT / "hud_mcp").rglob("*.py"))
    assert [str(path) for path in files if hides.search(path.read_text())] == []


def inner_names(root: Path) -> Iterator[str]:
    """What authored environments import beside the names that `hud_mcp` gives."""
    stub = (ROOT / "hud_mcp" / "__init__.pyi").read_text()
    public = {"carl", *re.findall(r"^from \S+ import \w+ as (\w+)$", stub, re.MULTILINE)}
    for path in sorted((root / "environments").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names if each.name.startswith("hud_mcp.")]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hud_mcp"):
                given = public if node.module == "hud_mcp" else set[str]()
                names = [each.name for each in node.names if each.name not in given]
                names = [] if node.module == "hud_mcp.carl" else names
            yield from (f"{path.relative_to(root)}: {name}" for name in names)


def test_an_environment_uses_public_names_alone() -> None:
    """The shipped ones are examples of what a user may write."""
    assert list(inner_names(ROOT)) == []


@each_of(
    "text",
    [
        "import hud_mcp.session",
        "def f():\n    from hud_mcp.session import Session",
        "from hud_mcp import Secret",
    ],
)
def test_an_environment_that_reaches_inside_is_seen(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """In a file of its own, or beside others in a folder."""
    for name in ("environments/mine.py", "environments/mine/env.py"):
        root = grow(tmp_path_factory.mktemp("tree"), {name: text})
        (found,) = inner_names(root)
        assert found.startswith(name)


LIGHT = (
    "import hud_mcp",
    "import hud_mcp.environment",
    "from hud_mcp import Environment, Taskset, contains",
    "from hud_mcp import Browser",
    "import hud_mcp.store, hud_mcp.session.session, hud_mcp.session.registry",
    "import hud_mcp.cli",
    "from hud_mcp.carl import ContextFeature, RandomSelector",
    "from hud_mcp import Gymnasium, GymnasiumWorld; Gymnasium('CartPole-v1')",
)
"""What programs begin with, which is quick: none of it needs a package of the others'."""


def test_a_fresh_process_loads_nothing_that_it_does_not_use() -> None:
    """An author's file and a command's help do not wait for a browser's or a database's classes."""
    heavy = ["mcp", "playwright", "sqlalchemy", "PIL", "gymnasium", "numpy", "ConfigSpace", "ray"]
    heavy += ["pydantic_ai", "genai_prices"]
    # One process for all: what one of them loads is there at the end, and is told of the first.
    told = f"print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(["import sys", *(f"{each}\n{told}" for each in LIGHT)])],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    loaded = dict(zip(LIGHT, done.stdout.splitlines(), strict=True))
    assert {program: names for program, names in loaded.items() if names} == {}


def test_no_module_imports_itself_by_a_way_around() -> None:
    """Nor a package one of its own: imports in functions and those for types alone count too."""
    graph = grimp.build_graph("hud_mcp", cache_dir=None)
    waiting = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    while done := [each for each, imported in waiting.items() if not imported & waiting.keys()]:
        for each in done:
            del waiting[each]
    assert waiting == {}

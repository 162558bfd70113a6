"""Imports go down only, what is heavy loads only where it is used, and the library has manners.

The checker reads sources; the tests below run it on this package, and on small trees that
break each rule, to show that it would be seen.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from sources import children, name_of, statements
from waiting import PATIENCE_S

import hud_mcp

ROOT = Path(hud_mcp.__file__).parent.parent

LAYERS = (
    ("errors", "registry", "base"),
    ("values", "record.model_turn"),
    ("environment", "loading", "testing"),
    ("sandbox",),
    ("worlds", "graders"),
    ("analysis", "record", "show", "store"),
    ("session",),
    ("server", "agents", "rollout"),
    ("cli",),
    ("plugins",),
    ("__main__",),
)
"""From the bottom up; a module imports from its own layer and those before it."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
VALUES, DECLARATIONS, SANDBOX, PARTS, RECORD, LIFE = 1, 2, 3, 4, 5, 6

EXCEPTIONS = {
    (
        "plugins.install.machine.places",
        "plugins.gymnasium.world.spec",
    ): "the registry finds it, once its table names it",
    (
        "plugins.install.machine.places",
        "plugins.gymnasium.world.opengl",
    ): "the registry finds it, once its table names it",
    (
        "worlds.browser.functions",
        "graders.pattern",
    ): "an expression of a row is searched for where it can be ended, and there is one such place",
    (
        "worlds.browser.functions",
        "graders.visible",
    ): "the texts of a page are compared as answers are",
}

NARROW = {"agents.agent": VALUES}
"""What any script or model may hold in its hand depends on nothing but values."""

HEAVY = {
    "playwright": ("worlds.browser",),
    "sqlalchemy": ("store.sql", "plugins.operate.sql", "plugins.view.sql"),
    "alembic": ("store.sql",),
    "mcp": (
        "server",
        "plugins.hud.operator_calls",
        "plugins.operate.replicas",
        "plugins.view.subscriptions",
    ),
    "gymnasium": (
        "plugins.gymnasium.world",
        "plugins.gymnasium.carl",
        "plugins.gymnasium.task_env",
    ),
    "numpy": ("plugins.gymnasium.world", "plugins.gymnasium.carl", "plugins.gymnasium.task_env"),
    "Box2D": ("plugins.gymnasium.carl",),
    "mujoco": ("plugins.gymnasium.carl",),
    "ConfigSpace": (),
    "pyarrow": (),
    "asyncssh": ("plugins.hud.endpoints",),
    "ray": (),
    "pydantic_ai": (),
    "genai_prices": (),
    "websockets": (),
}
"""Slow to load or optional: imported inside functions, but for the modules that exist for them."""

ONLY_IN = {"playwright": ("worlds.browser", "plugins.hud"), "mcp.server": ("server", "plugins")}
"""Imported nowhere else, not even inside a function."""


@dataclass(frozen=True)
class Import:
    """One import of one name.

    Attributes:
        importer: The module that imports, without the package's name.
        module: What is imported, whole.
        line: Where.
        at_start: Whether it runs when the importer is loaded.
        for_types: Whether it only runs for type checkers.
    """

    importer: str
    module: str
    line: int
    at_start: bool
    for_types: bool


def modules_of(root: Path) -> dict[str, Path]:
    """Every module of the package under a folder: `server.app`, with `` for the package."""
    package = root / "hud_mcp"
    found: dict[str, Path] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def parse(path: Path) -> ast.Module:
    """A file's syntax."""
    return ast.parse(path.read_text(), str(path))


@cache
def imports_of(importer: str, path: Path) -> list[Import]:
    """Every import of a file, wherever it stands in it."""
    package = importer if path.name == "__init__.py" else importer.rpartition(".")[0]

    def walk(node: ast.AST, *, at_start: bool, for_types: bool) -> Iterator[Import]:
        names: Sequence[str] = ()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = ["hud_mcp", *package.split(".")][: -(node.level - 1) or None]
                base = ".".join(part for part in (*up, base) if part)
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            yield Import(importer, name, getattr(node, "lineno", 0), at_start, for_types)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            at_start = False
        typing_only = isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING"
        for child in children(node):
            yield from walk(child, at_start=at_start, for_types=for_types or typing_only)

    return list(walk(parse(path), at_start=True, for_types=False))


def belongs(name: str, to: str) -> bool:
    """Whether a module is another one or lies in it."""
    return name == to or name.startswith(f"{to}.")


def is_dunder(module: str) -> bool:
    """Whether it is the package, or a name of its own such as `__version__`."""
    return module == "hud_mcp" or module.rpartition(".")[2].startswith("__")


def target_of(module: str, modules: dict[str, Path]) -> str | None:
    """The module of the package that an import means; None for what is not the package's."""
    if not belongs(module, "hud_mcp"):
        return None
    inside = module.removeprefix("hud_mcp").removeprefix(".")
    while inside and inside not in modules:
        inside = inside.rpartition(".")[0]  # a name in a module
    return inside


def placed(module: str) -> str:
    """The name under which a module has its layer: its own, or that of the room that it is in."""
    name = module
    while "." in name and name not in LEVEL:
        name = name.rpartition(".")[0]
    return name


def layer_violation(importer: str, target: str) -> str | None:  # noqa: PLR0911  # one for each rule
    """What is wrong with one module's using another, or None."""
    top, below = placed(importer), placed(target)
    for name in (top, below):
        if name and name not in LEVEL:
            return f"{name!r} has no place in the order of layers; give it one"
    if not importer:
        is_map = not target or belongs(target, "base.lazy")
        return None if is_map else "the map of names loads a module only when it is asked"
    if not target or (importer, target) in EXCEPTIONS:
        return None
    if text := plugin_violation(importer, target):
        return text
    highest = NARROW.get(importer, LEVEL[top])
    if LEVEL[below] > highest:
        return f"{importer} imports {target}, which lies above it"
    if LEVEL[top] in (RECORD, LIFE) and LEVEL[below] in (SANDBOX, PARTS):
        return f"{importer} imports {target}: the record and the life of a session know no world"
    if LEVEL[top] == PARTS and LEVEL[below] == PARTS and top != below:
        return f"{importer} imports {target}: worlds and graders use declarations and values only"
    return None


def plugin_violation(importer: str, target: str) -> str | None:
    """What is wrong with a module's using a plugin, or None."""
    if not belongs(target, "plugins") or (importer, target) in EXCEPTIONS:
        return None
    if not belongs(importer, "plugins"):
        return f"{importer} imports {target}: the core imports no plugin"
    if importer.split(".")[1:2] != target.split(".")[1:2]:
        return f"{importer} imports {target}: a plugin imports no other plugin"
    return None


PLUGIN_NAME = re.compile(r"""["']hud_mcp\.(plugins[\w.]*)""")


def named_plugins(module: str, text: str) -> Iterator[str]:
    """What is wrong with the strings of a source that name plugins, as an import would."""
    if module != "registry":  # whose list of the built-in plugins is the only one
        for name in PLUGIN_NAME.findall(text):
            if said := plugin_violation(module, name):
                yield said


def violations(root: Path) -> list[str]:
    """Everything in a tree that breaks a rule, with its file and line."""
    modules = modules_of(root)
    found: list[str] = []
    edges: dict[str, set[str]] = {name: set() for name in modules}
    for importer, path in modules.items():
        file = path.relative_to(root)
        for each in imports_of(importer, path):
            where = f"{file}:{each.line}: "
            target = target_of(each.module, modules)
            if target is None:
                found += [where + text for text in foreign_violations(each)]
            elif importer and not target and not is_dunder(each.module):
                name = each.module.rpartition(".")[2]
                found.append(
                    f"{where}`from hud_mcp import {name}` hides where it is; name its home"
                )
            elif importer or not each.for_types:
                if target and target != importer and (importer, target) not in EXCEPTIONS:
                    edges[importer].add(target)
                if said := layer_violation(importer, target):
                    found.append(where + said)
        text = path.read_text()
        found += [f"{file}: {said}" for said in named_plugins(importer, text)]
        if importer:
            found += stub_violations(importer, path.with_suffix(".pyi"), modules)
        # To walk through every node of every file takes longer than all other checks.
        if MANNERS.search(text):
            found += [f"{file}:{text}" for text in manners(importer, parse(path))]
    found += [f"import cycle: {' → '.join(cycle)}" for cycle in cycles(edges)]
    return found + environment_violations(root)


def stub_violations(importer: str, stub: Path, modules: dict[str, Path]) -> Iterator[str]:
    """What is wrong with the names of a seam, which a stub beside it lists and which load late."""
    for each in imports_of(importer, stub) if stub.exists() else ():
        if said := layer_violation(importer, target_of(each.module, modules) or ""):
            yield f"{stub.parent.name}/{stub.name}:{each.line}: {said}"


MANNERS = re.compile(r"\bassert\b|\bprint\(|\bsuppress\(")


def foreign_violations(each: Import) -> Iterator[str]:
    """What is wrong with an import of another package's module."""
    for name, homes in ONLY_IN.items():
        if belongs(each.module, name) and not any(belongs(each.importer, home) for home in homes):
            yield f"only {homes[0]} imports {name}"
    heavy = each.module.split(".")[0]
    if heavy in HEAVY and each.at_start and not each.for_types:
        homes = HEAVY[heavy]
        if not any(belongs(each.importer, home) for home in homes):
            yield f"{heavy} is imported when {each.importer} is loaded; import it where it is used"


def manners(module: str, tree: ast.Module) -> Iterator[str]:
    """What the library does not do: assert, print, and look away."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield f"{node.lineno}: an assert is no check; raise an error of the tree"
        if not isinstance(node, ast.Call):
            continue
        called = name_of(node.func)
        if called == "print" and isinstance(node.func, ast.Name) and not belongs(module, "cli"):
            yield f"{node.lineno}: a library does not print; standard output is the protocol's"
        if called == "suppress" and {name_of(a) for a in node.args} & {
            "Exception",
            "BaseException",
        }:
            yield f"{node.lineno}: suppress(Exception) hides what went wrong"


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """A cycle, if there is one, beginning with its first module by name."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as exc:
        # Each module stands before the one that imports it, and the first stands at both ends.
        ring = exc.args[1][:0:-1]
        first = ring.index(min(ring))
        return [[*ring[first:], *ring[:first], ring[first]]]
    return []


def environment_violations(root: Path) -> list[str]:
    """An authored environment uses the public names alone, as a user's does."""
    stub = parse(root / "hud_mcp" / "__init__.pyi")
    public = {
        alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    found: list[str] = []
    for path in sorted((root / "environments").rglob("*.py")):
        file = path.relative_to(root)
        for node in statements(parse(path)):
            where = f"{file}:{getattr(node, 'lineno', 0)}: "
            if isinstance(node, ast.Import):
                inside = [a.name for a in node.names if a.name.startswith("hud_mcp.")]
                found += [f"{where}import {name}; use `from hud_mcp import …`" for name in inside]
            if isinstance(node, ast.ImportFrom) and belongs(node.module or "", "hud_mcp"):
                if node.module not in {"hud_mcp", "hud_mcp.carl"}:
                    found.append(f"{where}from {node.module}; use `from hud_mcp import …`")
                elif node.module == "hud_mcp":
                    missing = [a.name for a in node.names if a.name not in public | {"carl"}]
                    found += [f"{where}{name} is not a public name of hud_mcp" for name in missing]
    return found


def test_the_package_keeps_its_own_rules() -> None:
    """Layers, cycles, heavy imports, asserts, prints and suppressions, in all of its files."""
    assert violations(ROOT) == []


def test_every_module_has_a_place_in_the_order() -> None:
    """A new module is given a layer on purpose."""
    tops = {name.split(".")[0] for name in modules_of(ROOT)} - {""}
    assert tops <= set(LEVEL)


def test_every_exception_is_still_needed() -> None:
    """An exception with a reason does not outlive it."""
    modules = modules_of(ROOT)
    for importer, target in EXCEPTIONS:
        used = {target_of(i.module, modules) for i in imports_of(importer, modules[importer])}
        used |= set(PLUGIN_NAME.findall(modules[importer].read_text()))
        assert target in used


CLEAN = {
    "hud_mcp/__init__.py": "",
    "hud_mcp/__init__.pyi": "from hud_mcp.session import Session as Session",
    "hud_mcp/errors.py": "import json",
    "hud_mcp/values/action.py": "from hud_mcp.errors import HudMcpError",
    "hud_mcp/values/context.py": "from hud_mcp.values.action import Value",
    "hud_mcp/environment/__init__.py": "from hud_mcp.environment.environment import Environment",
    "hud_mcp/environment/environment.py": "from hud_mcp.environment.none import NoWorld",
    "hud_mcp/store/__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from sqlalchemy import Engine
        def read():
            import sqlalchemy
            from hud_mcp.store.sql import schema
        """,
    "hud_mcp/store/sql/__init__.py": "",
    "hud_mcp/store/sql/schema.py": "import sqlalchemy",
    "hud_mcp/session.py": "from hud_mcp.store import Store",
    "hud_mcp/worlds/__init__.py": "",
    "hud_mcp/environment/none.py": "from hud_mcp.values.context import Context",
    "hud_mcp/worlds/browser/__init__.py": "from .world import World",
    "hud_mcp/worlds/browser/world.py": "import playwright.async_api",
    "hud_mcp/server/__init__.py": "",
    "hud_mcp/server/app.py": "from mcp.server.lowlevel import Server\nimport hud_mcp.session",
    "hud_mcp/plugins/__init__.py": "",
    "hud_mcp/plugins/view/__init__.py": "from hud_mcp.plugins.view.page import show",
    "hud_mcp/plugins/view/page.py": "from hud_mcp.server.app import f",
    "hud_mcp/plugins/hud/__init__.py": "",
    "hud_mcp/agents/__init__.py": "",
    "hud_mcp/agents/agent.py": "from hud_mcp.values.action import Action",
    "hud_mcp/cli/__init__.py": "from hud_mcp.server import app\nprint('help')",
    "hud_mcp/plugins/view/commands/view.py": "import hud_mcp.plugins.view",
    "environments/shop.py": "from hud_mcp import Session\nimport hud_mcp",
}


def grow(root: Path, changes: dict[str, str]) -> Path:
    """Write a small tree that breaks no rule, and then the changes."""
    for name, text in (CLEAN | changes).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").splitlines()
        indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
        path.write_text("\n".join(line[indent:] for line in lines) + "\n")
    return root


def test_a_tree_that_keeps_the_rules_has_no_violations(tmp_path: Path) -> None:
    """The checker does not cry wolf."""
    assert violations(grow(tmp_path, {})) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("errors.py", "import hud_mcp.values.action", "errors imports values.action, which lies"),
        ("values/action.py", "def f():\n    from hud_mcp import session", "action imports session"),
        ("values/action.py", "class A:\n    from hud_mcp.store import x", "action imports store"),
        ("values/action.py", "from .. import session", "action imports session"),
        ("values/action.py", "if TYPE_CHECKING:\n    from hud_mcp.cli import main", "imports cli"),
        ("store.py", "from hud_mcp.session import Session", "store imports session"),
        ("session.py", "from hud_mcp.server.app import f", "session imports server.app"),
        ("session.py", "import hud_mcp.worlds.browser.world", "know no world"),
        ("environment/x.py", "import hud_mcp.worlds.browser", "x imports worlds.browser"),
        ("worlds/__init__.py", "from hud_mcp.session import Session", "worlds imports session"),
        ("worlds/browser/world.py", "from ...store import Store", "worlds.browser.world imports s"),
        (
            "graders/text.py",
            "from hud_mcp.worlds.browser.world import World",
            "declarations and values",
        ),
        (
            "agents/agent.py",
            "from hud_mcp.environment.task import Task",
            "imports environment.task",
        ),
        ("agents/agent.py", "from hud_mcp.environment.task.x import T", "imports environment.task"),
        ("server/app.py", "from hud_mcp.cli import main", "server.app imports cli"),
        ("server/app.py", "import hud_mcp.plugins.view", "app imports plugins.view: the core impo"),
        (
            "plugins/hud/x.py",
            "import hud_mcp.plugins.view.page",
            "a plugin imports no other plugin",
        ),
        ("__init__.py", "from hud_mcp.values.action import Action", "only when it is asked"),
        ("plugins/hud/x.py", "X = 'hud_mcp.plugins.view:x'", "a plugin imports no other plugin"),
        ("server/app.py", "X = 'hud_mcp.plugins.view:x'", "app imports plugins.view: the core"),
        ("registry.py", "X = ('hud_mcp.plugins.view',)", ""),
        ("cli/view.py", "import hud_mcp.plugins.view", "the core imports no plugin"),
        (
            "cli/__init__.pyi",
            "from hud_mcp.plugins.view import x as x",
            "the core imports no plugi",
        ),
        ("job.py", "from hud_mcp import Store", "hides where it is; name its home"),
        ("job.py", "def f():\n    from hud_mcp import Store", "hides where it is"),
        ("job.py", "from hud_mcp import __version__", "'job' has no place"),
        ("manager.py", "", ""),
        ("manager.py", "import hud_mcp.errors", "'manager' has no place in the order of layers"),
        ("values/context.py", "import hud_mcp.values.grade", "import cycle: values.context → v"),
        ("rollout.py", "def f():\n    import mcp.server", "only server imports mcp.server"),
        ("rollout.py", "from mcp.server import Server", "only server imports mcp.server"),
        ("rollout.py", "from mcp import server", "only server imports mcp.server"),
        ("rollout.py", "from mcp import Client", "mcp is imported when rollout is loaded"),
        ("rollout.py", "def f():\n    from mcp import Client", ""),
        ("session.py", "def f():\n    import playwright", "only worlds.browser imports playwright"),
        ("environment/none.py", "import playwright", "playwright is imported when"),
        ("store.py", "import sqlalchemy.orm", "sqlalchemy is imported when store is loaded"),
        ("store.py", "try:\n    import sqlalchemy\nfinally:\n    pass", "sqlalchemy is imported"),
        ("rollout.py", "import ray", "ray is imported when rollout is loaded"),
        ("cli/gym.py", "import gymnasium", "gymnasium is imported when cli.gym is loaded"),
        ("values/action.py", "def f(x):\n    assert x", "2: an assert is no check"),
        ("server/app.py", "print('x')", "1: a library does not print"),
        (
            "values/action.py",
            "with suppress(OSError, Exception):\n    pass",
            "hides what went wrong",
        ),
        (
            "values/action.py",
            "with contextlib.suppress(BaseException):\n    pass",
            "hides what went",
        ),
    ],
)
def test_a_violation_is_seen_with_its_file(tmp_path: Path, name: str, text: str, said: str) -> None:
    """Each rule, wherever in a file it is broken."""
    changes = {f"hud_mcp/{name}": text, "hud_mcp/environment/task.py": "", "hud_mcp/rollout.py": ""}
    changes |= {f"hud_mcp/{name}": text}
    if "cycle" in said:
        changes["hud_mcp/values/grade.py"] = (
            "def f():\n    from hud_mcp.values.context import Context"
        )
    found = violations(grow(tmp_path, changes))
    if said:
        assert any(said in text for text in found), found
        assert any(name in text for text in found) or "cycle" in said
    else:
        assert found == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import hud_mcp.session", "use `from hud_mcp import …`"),
        ("def f():\n    from hud_mcp.session import Session", "use `from hud_mcp import …`"),
        ("from hud_mcp import Secret", "Secret is not a public name of hud_mcp"),
    ],
)
def test_an_environment_that_reaches_inside_is_seen(tmp_path: Path, text: str, said: str) -> None:
    """In a file of its own, or beside others in a folder."""
    for name in ("environments/mine.py", "environments/mine/env.py"):
        (found,) = violations(grow(tmp_path / name.replace("/", "-"), {name: text}))
        assert found.startswith(name)
        assert said in found


def test_a_long_cycle_is_found_once(tmp_path: Path) -> None:
    """Whatever the module that it is entered by."""
    changes = {
        "hud_mcp/environment/task.py": "import hud_mcp.environment.template",
        "hud_mcp/environment/template.py": "import hud_mcp.environment.tool",
        "hud_mcp/environment/tool.py": "import hud_mcp.environment.task",
        "hud_mcp/environment/arguments.py": "import hud_mcp.environment.tool",
    }
    assert violations(grow(tmp_path, changes)) == [
        (
            "import cycle: environment.task → environment.template → environment.tool "
            "→ environment.task"
        )
    ]


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

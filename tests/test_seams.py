"""What a function loads while it runs is listed here, each with its reason.

Everything else is imported where a module begins, or comes through a seam: a module whose names
load when each is first used. The checker reads sources; the tests below run it on the library and
its environments, and on small trees, to show that what breaks a rule would be seen.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from sources import name_of
from tables import each_of

import hud_mcp
from hud_mcp.base.lazy import declared_names

ROOT = Path(hud_mcp.__file__).parent.parent

IN_FUNCTIONS = {
    ("base.lazy", "hud_mcp.registry"): "a start needs no table of former names",
    ("__main__", "hud_mcp.cli"): "Ctrl-C is quiet while the commands load",
    (
        "plugins.models.requests",
        "hud_mcp.plugins.models.wire",
    ): "it loads the libraries' client, and as a name of their seam it would be a circle",
    (
        "plugins.sets.reasoning_process",
        "reasoning_gym",
    ): "a process of its own, which first keeps what generators print from its answer",
    (
        "plugins.sets.reasoning_process",
        "reasoning_gym.factory",
    ): "the same",
}
"""By module and what a function of it imports: why it does."""

SEAMS = {
    "graders": "each grader's module, which a file that needs another one does not wait for",
    "plugins.acp.libraries": "the models of the Agent Client Protocol, and the SDK's streams",
    "plugins.models": "pydantic-ai, its providers' libraries, and genai-prices",
    "values.sampler": "three of ConfigSpace's classes under CARL's names",
    "plugins.gymnasium.libraries": "Gymnasium, NumPy, Pillow, and MuJoCo's models",
    "plugins.hud.bridge": "bridges to HUD environments, which few have",
    "plugins.hud.wire": "the server of the channel, which a served declaration names; msgpack",
    "plugins.hud.endpoints": "asyncssh",
    "plugins.hud.live": "bridges, gyms of users and live pages, which few have",
    "plugins.hand.commands": "the objects that commands run: a mistake is told before",
    "plugins.operate.surfaces": "the same",
    "plugins.servers.libraries": "the SDK's check of lists, SQLAlchemy, and the check of schemas",
    "plugins.view.commands": "the same",
    "plugins.oauth.libraries": "argon2 and PyJWT, which few servers need at their start",
    "plugins.oauth.surfaces": "the server of sign-in, which few servers have",
    "plugins.operate.libraries": "the Prometheus client and OpenTelemetry, which few have",
    "base.libraries": "what several rooms use: the SDK's client, Pillow, Alembic and extras",
    "plugins.view.sql": "SQLAlchemy, for the statements of this plugin",
    "plugins.cluster": "Ray, which few jobs run on",
    "rollout.surfaces": "the server of MCP, which few jobs have in their own process",
    "plugins.view.export.libraries": "Pillow, pyarrow, pandas, polars and OpenTelemetry",
    "store.sql": "SQLAlchemy, which loads on the thread that reads or writes first",
    "worlds.browser.libraries": "Playwright, uvicorn, Starlette and websockets",
}
"""Modules whose names load when each is first used, and what waits there."""

ELSEWHERE = {"fsspec", "ray"}
"""Packages that the tests of a lane load, which have what most tests do not need."""

MOST_OWN = 11
"""Function-local imports of the library's own modules stay below this."""


@dataclass(frozen=True)
class Loaded:
    """What a function loads.

    Attributes:
        module: Whose function, by its dotted name.
        line: Where.
        target: The module that is loaded.
    """

    module: str
    line: int
    target: str


def modules_of(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module of the library without the package's name, and every environment's file."""
    for path in sorted((root / "hud_mcp").rglob("*.py")):
        parts = path.relative_to(root / "hud_mcp").with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path
    for path in sorted((root / "environments").rglob("*.py")):
        yield ".".join(path.relative_to(root).with_suffix("").parts), path


def loaded_in_functions(module: str, tree: ast.Module) -> Iterator[Loaded]:
    """Imports in functions, by a statement or by a call that names a module."""

    def walk(node: ast.AST, *, inside: bool) -> Iterator[Loaded]:
        if inside:
            for target in targets_of(node):
                yield Loaded(module, getattr(node, "lineno", 0), target)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside=inside or is_function)

    return walk(tree, inside=False)


def targets_of(node: ast.AST) -> list[str]:
    """The modules that one statement or call loads."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + (node.module or "")]
    if isinstance(node, ast.Call) and node.args:
        called = name_of(node.func)
        given = node.args[0]
        named = isinstance(given, ast.Constant) and isinstance(given.value, str)
        if called in ("import_module", "__import__") and named:
            return [given.value]
    return []


def lazily_given(tree: ast.Module) -> dict[str, tuple[str, str]] | None:
    """The names that a seam declares, each with its home and its name there; None for no seam."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    if not any(name_of(call.func) == "lazy_names" for call in calls):
        return None
    found: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                found |= dict(declared_by(each))
    return found


def declared_by(node: ast.stmt) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that one statement declares, as checkers read it."""
    if isinstance(node, ast.Import):
        yield from ((a.asname, (a.name, "")) for a in node.names if a.asname)
    elif isinstance(node, ast.ImportFrom):
        yield from ((a.asname, (node.module or "", a.name)) for a in node.names if a.asname)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
        home, _, attribute = str(node.value.value).partition(":")
        yield ast.unparse(node.target), (home, attribute)


def seam_faults(path: Path, given: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Names that a program finds elsewhere than checkers do, or not at all."""
    loaded = declared_names(str(path))
    for name, home in given.items():
        if loaded.get(name) != home:
            yield f"{name} is {home}, and {loaded.get(name, 'nothing')} loads"


def loads_at_once(tree: ast.Module, seams: dict[str, dict[str, tuple[str, str]]]) -> Iterator[str]:
    """Where names of a seam are imported as a module begins, so that nothing waits."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "") in seams:
            for alias in node.names:
                if alias.name in seams[node.module or ""]:
                    yield f"{node.lineno}: {alias.name} of {node.module} loads at once"


LOADS = r"lazy_names|import_module|__import__|(?m:^[ \t;]+(?:import|from)\b)|: *(?:import|from)\b"
"""What a file has in which a function loads something, or which is a seam."""


def faults(
    root: Path, in_functions: dict[tuple[str, str], str], seams: dict[str, str]
) -> list[str]:
    """Everything in a tree that breaks a rule, with its file."""
    found: list[str] = []
    # To parse a file takes long, and most of them have nothing that could be at fault.
    concerned = re.compile("|".join([LOADS, *(rf"hud_mcp\.{re.escape(seam)}\b" for seam in seams)]))
    trees = {
        name: (path, ast.parse(text))
        for name, path in modules_of(root)
        if concerned.search(text := path.read_text())
    }
    given = {name: names for name, (_, tree) in trees.items() if (names := lazily_given(tree))}
    used: set[tuple[str, str]] = set()
    for name, (path, tree) in trees.items():
        where = path.relative_to(root)
        for each in loaded_in_functions(name, tree):
            used.add((name, each.target))
            if (name, each.target) not in in_functions:
                found.append(f"{where}:{each.line}: a function loads {each.target}")
        if name in given:
            found += [f"{where}: {text}" for text in seam_faults(path, given[name])]
            if name not in seams:
                found.append(f"{where}: a seam that is not listed")
        lazy = {f"hud_mcp.{seam}": names for seam, names in given.items()}
        found += [f"{where}:{text}" for text in loads_at_once(tree, lazy)]
    found += [f"{module} loads no {target}" for module, target in set(in_functions) - used]
    return found + [f"{name} is no seam" for name in set(seams) - set(given)]


def test_the_library_loads_in_functions_only_what_is_listed() -> None:
    """And each entry of the lists is still needed."""
    assert faults(ROOT, IN_FUNCTIONS, SEAMS) == []


def test_few_functions_load_modules_of_the_library_itself() -> None:
    """The list stays short, so that an exception remains one."""
    own = [target for _, target in IN_FUNCTIONS if target.startswith((".", "hud_mcp"))]
    assert len(own) < MOST_OWN


@pytest.mark.long
@each_of("seam", sorted(SEAMS))
def test_every_name_of_a_seam_is_what_its_home_holds(seam: str) -> None:
    """No reference is misspelt, for each is loaded here."""
    module = import_module(f"hud_mcp.{seam}")
    given = lazily_given(ast.parse(Path(module.__file__ or "").read_text()))
    assert given
    for name, (home, part) in given.items():
        if home.partition(".")[0] in ELSEWHERE:
            continue
        imported: dict[str, object] = {}
        exec(f"from {home} import {part} as it" if part else f"import {home} as it", imported)
        assert getattr(module, name) is imported["it"]
        assert name in vars(module), "it is asked for once"


def test_a_seam_refuses_a_name_that_it_does_not_give() -> None:
    """As any module does."""
    surfaces = import_module("hud_mcp.rollout.surfaces")
    with pytest.raises(
        AttributeError, match=r"'hud_mcp.rollout.surfaces' has no attribute 'Chanel'"
    ):
        _ = surfaces.Chanel


SEAM = """
from typing import TYPE_CHECKING, Any
from hud_mcp.base.lazy import lazy_names
if TYPE_CHECKING:
    import json as json
    from json import loads as loads
    from os import path as path
    from re import Pattern as Sought
    dumps: Any = "json:dumps"
else:
    __getattr__ = lazy_names(__name__)
"""


def grow(root: Path, name: str, text: str) -> Path:
    """A tree with a seam, and one more file."""
    for path, content in {"hud_mcp/seam.py": SEAM, f"hud_mcp/{name}": text}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return root


@pytest.mark.parametrize(
    "text",
    [
        "import json\nfrom hud_mcp import seam\n\ndef f():\n    return seam.loads('1')",
        "if 1:\n    import json\nclass A:\n    import re",
        "def f(name):\n    return import_module(name)",
    ],
)
def test_a_tree_that_loads_as_it_begins_has_no_faults(tmp_path: Path, text: str) -> None:
    """The checker does not cry wolf."""
    assert faults(grow(tmp_path, "room.py", text), {}, {"seam": "for the test"}) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f():\n    import json", "room.py:2: a function loads json"),
        ("async def f():\n    from json import loads", "room.py:2: a function loads json"),
        ("def f():\n    from . import tool", "room.py:2: a function loads ."),
        ("def f():\n    from .tool import g", "room.py:2: a function loads .tool"),
        ("class A:\n    def f(self):\n        import json", "room.py:3: a function loads json"),
        ("def f():\n    if 1:\n        import json", "room.py:3: a function loads json"),
        ("def f():\n    def g():\n        import json", "room.py:3: a function loads json"),
        ("f = lambda: import_module('json')", "room.py:1: a function loads json"),
        ("def f():\n    importlib.import_module('json')", "room.py:2: a function loads json"),
        ("def f():\n    __import__('json')", "room.py:2: a function loads json"),
        ("from hud_mcp.seam import loads", "room.py:1: loads of hud_mcp.seam loads at once"),
    ],
)
def test_a_function_that_loads_is_seen(tmp_path: Path, text: str, said: str) -> None:
    """Whatever the function, and however it loads."""
    (found,) = faults(grow(tmp_path, "room.py", text), {}, {"seam": "for the test"})
    assert found == f"hud_mcp/{said}"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "from re import Pattern as Sought, Match as Match",
            "Match is ('re', 'Match'), and nothing loads",
        ),
        ("import re as re, os as os", "os is ('os', ''), and nothing loads"),
        ('found: object = "re:Match"', "found is ('re', 'Match'), and nothing loads"),
    ],
)
def test_a_declaration_that_only_checkers_read_is_seen(
    tmp_path: Path, written: str, said: str
) -> None:
    """A program reads lines of one form; a statement in another form would have no name."""
    before = "from re import Pattern as Sought"
    (grow(tmp_path, "room.py", "") / "hud_mcp/seam.py").write_text(SEAM.replace(before, written))
    found = faults(tmp_path, {}, {"seam": "for the test"})
    assert f"hud_mcp/seam.py: {said}" in found


def test_an_entry_that_has_outlived_its_reason_is_seen(tmp_path: Path) -> None:
    """Of either list; and a seam that nobody listed."""
    grow(tmp_path, "room.py", "")
    assert faults(tmp_path, {("room", "json"): "once"}, {"room": "once"}) == [
        "hud_mcp/seam.py: a seam that is not listed",
        "room loads no json",
        "room is no seam",
    ]

"""The server leans on public names of the SDK alone, so that a minor release cannot break it."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from tables import each_of

import hud_mcp.server

SDK = ("mcp", "mcp_types")
ROOT = Path(hud_mcp.server.__file__).parent
MODULES = sorted(each.name for each in pkgutil.walk_packages([str(ROOT)], prefix="hud_mcp.server."))


def is_private(name: str) -> bool:
    """Whether a name is its module's or its class's own business."""
    return name.startswith("_") and not name.endswith("__")


def is_of_sdk(module: str) -> bool:
    """Whether a module is the SDK's."""
    return module.partition(".")[0] in SDK


def private_imports(tree: ast.Module) -> Iterator[str]:
    """Private modules and names of the SDK that a file imports."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if is_of_sdk(name) and any(map(is_private, name.split("."))):
                yield f"{node.lineno}: imports {name}"


def private_attributes(tree: ast.Module) -> Iterator[str]:
    """Private attributes of anything but the object that a method is of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner not in ("self", "cls", "os"):  # os._exit is documented
                yield f"{node.lineno}: uses {ast.unparse(node)}"
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in ("getattr", "setattr", "hasattr"):
            name = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield f"{node.lineno}: looks for {name.value!r}"


def compared_names(tree: ast.Module) -> Iterator[str]:
    """Classes that are known by what they are called, which nobody promises."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(isinstance(s, ast.Attribute) and s.attr == "__name__" for s in sides)
            if named and any(isinstance(s, ast.Constant) for s in sides):
                yield f"{node.lineno}: compares {ast.unparse(node)}"


def classes_of(module: ModuleType) -> list[type]:
    """The classes that a module defines."""
    found = inspect.getmembers(module, inspect.isclass)
    return [each for _, each in found if each.__module__ == module.__name__]


def overridden(classes: Iterable[type]) -> Iterator[str]:
    """Private members of the SDK's classes that these replace."""
    for each in classes:
        for base in each.__mro__[1:]:
            if is_of_sdk(base.__module__):
                taken = sorted(n for n in vars(each) if is_private(n) and n in vars(base))
                yield from (f"{each.__name__} overrides {base.__name__}.{n}" for n in taken)


def unlisted(tree: ast.Module) -> Iterator[str]:
    """Names that a module of the SDK has and does not list as public."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_of_sdk(node.module or ""):
            public = getattr(importlib.import_module(node.module or ""), "__all__", None)
            for alias in node.names:
                if public is not None and alias.name not in public:
                    yield f"{node.lineno}: {node.module} does not list {alias.name}"


def violations(text: str) -> list[str]:
    """Everything in a file that leans on what is private."""
    tree = ast.parse(text)
    rules = (private_imports, private_attributes, compared_names, unlisted)
    return [found for rule in rules for found in rule(tree)]


@each_of("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_of_the_server_uses_public_names_alone(path: Path) -> None:
    """No private module, name or attribute, by whatever way; and no class by its name."""
    assert violations(path.read_text()) == []


@each_of("name", MODULES)
def test_no_class_of_the_server_replaces_what_is_private(name: str) -> None:
    """A private method may be gone tomorrow, and what overrides it is then never called."""
    assert list(overridden(classes_of(importlib.import_module(name)))) == []


@each_of(
    ("text", "said"),
    [
        ("from mcp.server._otel import x", "imports mcp.server._otel.x"),
        ("def f():\n    import mcp.shared._compat", "imports mcp.shared._compat"),
        ("from mcp.server.runner import _dump_result", "imports mcp.server.runner._dump_result"),
        ("from mcp.server.connection import NotifyOnlyOutbound", "does not list NotifyOnlyOut"),
        ("ctx.session._connection", "uses ctx.session._connection"),
        ("self.server._handlers", "uses self.server._handlers"),
        ("getattr(stack, '_exit_callbacks', 1)", "looks for '_exit_callbacks'"),
        ("type(m).__name__ != 'OpenTelemetryMiddleware'", "compares type(m).__name__"),
        ("self._mine\nfrom mcp.server.runner import serve_one", ""),
    ],
)
def test_what_leans_on_a_private_name_is_seen(text: str, said: str) -> None:
    """The checker sees each way, and does not cry wolf."""
    found = violations(text)
    assert any(said in each for each in found) if said else found == []


def test_a_class_that_replaces_a_private_method_is_seen() -> None:
    """Whether or not it calls it."""
    from mcp.server.runner import ServerRunner  # noqa: PLC0415  # only here

    class Bent(ServerRunner):  # type: ignore[type-arg]
        def _compose_server_middleware(self, inner: object) -> object:
            return inner

    assert list(overridden([Bent])) == ["Bent overrides ServerRunner._compose_server_middleware"]

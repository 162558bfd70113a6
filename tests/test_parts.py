"""Nobody writes another part's attributes: a part is told, by a method of its own.

The checker reads sources; the tests below run it on this package, and on small sources that write
where they should tell.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

from sources import statements
from tables import each_of

import hud_mcp

ROOT = Path(hud_mcp.__file__).parent

ALLOWED = {
    "carl/": "physics are attributes of Gymnasium's environments, and a context's id is one to set",
    "cli/": "the streams of a process, and the width of rich's console",
    "loading/importers/reasoning_process.py": "the streams of a process",
    "rollout/channel_try.py": "a run is HUD's own record, which is filled in",
    "rollout/recorded.py": "the same",
    "sandbox/files.py": "the file that an OSError names",
    "sandbox/inside/gather.py": "entries of an archive",
    "plugins/hud/operating.py": "a draft, which whoever makes a call fills in",
    "plugins/operate/replicas/records.py": "the details of a server's own row",
    "server/app.py": "whether an agent has called, which its session remembers",
    "server/stdio/claim.py": "the streams of a process",
    "session/": "a draft and a held task are the records of this room, which its parts fill in",
    "serving/deadline.py": "a thread's name",
    "store/sql/statements.py": "a connection of the driver's",
    "plugins/hud/template_process/runner.py": "a module of the import system",
    "task_env/quick.py": "a draft again",
    "testing/contract.py": "a function that is made",
    "worlds/controller/functions.py": "the same",
    "worlds/desktop/vnc.py": "the objects of vncdotool",
    "worlds/gymnasium/world.py": "an episode, which its world fills in",
    "worlds/shell/": "entries of an archive",
}
"""Where attributes of other people's objects are set, each with its reason."""


def own_names(tree: ast.Module) -> set[str]:
    """The attributes that a source's own classes have."""
    found: set[str] = set()
    for part in statements(tree):
        if not isinstance(part, ast.ClassDef):
            continue
        for node in statements(part):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            elif _is_write(node) and _is_own(node.value):
                found.add(node.attr)
    return found


def foreign_writes(tree: ast.Module) -> Iterator[str]:
    """Every write to an attribute that no class of the source has, with its line."""
    own = own_names(tree)
    for node in statements(tree):
        if _is_write(node) and not _is_own(node.value) and node.attr not in own:
            yield f"{node.lineno}: {ast.unparse(node)}"


def _is_write(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


@cache
def writes() -> list[str]:
    """Every such write of the package, with its file."""
    return [
        f"{path.relative_to(ROOT).as_posix()}:{text}"
        for path in sorted(ROOT.rglob("*.py"))
        for text in foreign_writes(ast.parse(path.read_text()))
    ]


def test_no_part_writes_the_attributes_of_another() -> None:
    """What another part has to know, a method of its own is given."""
    assert [text for text in writes() if not text.startswith(tuple(ALLOWED))] == []


def test_every_exception_is_still_needed() -> None:
    """An exception with a reason does not outlive it."""
    assert [s for s in ALLOWED if not any(text.startswith(s) for text in writes())] == []


@each_of(
    ("source", "said"),
    [
        ("view.refused = True", ["1: view.refused"]),
        ("slot.proxy.site, x = site, 1", ["1: slot.proxy.site"]),
        ("play.count += 1", ["1: play.count"]),
        ("class A:\n    def f(self, b):\n        b.x = self.y = 1", ["3: b.x"]),
        ("class A:\n    x: int\ndef f(a):\n    a.x = 1", []),
        ("class A:\n    def f(self, other):\n        self.x = other.x", []),
    ],
)
def test_a_write_from_outside_is_seen(source: str, said: list[str]) -> None:
    """Through one name or several; a module may fill in what its own classes have."""
    assert list(foreign_writes(ast.parse(source))) == said

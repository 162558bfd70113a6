"""The syntax of source files, for tests that hold what is written to a rule."""

import ast
from collections.abc import Iterator

__all__ = ["children", "name_of", "statements"]


def children(node: ast.AST) -> Iterator[ast.AST]:
    """What a node holds, but for expressions that are read: no statement is in those.

    They are four of five nodes. What a statement assigns to is among the others.
    """
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr) or isinstance(getattr(child, "ctx", None), ast.Store):
            yield child


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement of a source, and what each assigns to."""
    ahead = [tree]
    while ahead:
        found = list(children(ahead.pop()))
        yield from found
        ahead += found


def name_of(node: ast.expr) -> str:
    """The last part of a name with dots; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

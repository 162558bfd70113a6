"""Labels of fields: each stands once, as the name of its field."""

from collections.abc import Sequence

from hud_mcp.worlds.browser.phrases import ACTED, CHECKS, FIELDS, INLINE, MOVED, words
from hud_mcp.worlds.browser.tree import TEXT, Node

__all__ = ["labelled", "without_labels"]


_NAMED = FIELDS | CHECKS | {"listbox"}


def without_labels(nodes: Sequence[Node], acted: set[Node]) -> Sequence[Node]:
    """Return nodes without the text of a label that names the field beside it.

    A field that is drawn by its label has no ref of its own: it gets that of the label, and joins
    the elements to act on.
    """
    if not any(_innermost(each).role in _NAMED for each in nodes):  # as for most
        return nodes
    out: list[Node] = []
    for i, node in enumerate(nodes):
        label = _label(node)
        beside = (*nodes[max(0, i - 1) : i], *nodes[i + 1 : i + 2]) if label else ()
        field = next((f for f in map(_innermost, beside) if _is_named(f, label)), None)
        if field is None or not MOVED.isdisjoint(node.states):
            out.append(node)
        elif node in acted and not field.ref:
            field.states = {**field.states, "ref": node.ref}
            acted.add(field)
    return out


def _label(node: Node) -> str:
    if node.role == TEXT:
        return node.name
    only = node.role == "generic" and len(node.children) == 1
    return node.children[0].name if only and node.children[0].role == TEXT else ""


def _innermost(node: Node) -> Node:
    while node.role == "generic" and not node.name and len(node.children) == 1:
        node = node.children[0]
    return node


def _is_named(node: Node, label: str) -> bool:
    return node.role in _NAMED and node.name == label


def labelled(node: Node) -> list[Node] | None:
    """Return the one field in a label, which all texts there name; else None."""
    inside = list(node.walk())
    fields = [each for each in inside if each.role in ACTED and each.role != "option"]
    if not MOVED.isdisjoint(node.states):
        return None
    if len(fields) != 1 or fields[0].role not in FIELDS | CHECKS or not fields[0].ref:
        return None
    field = fields[0]
    own = list(field.walk())
    others = [each for each in inside if each is not field and each not in own]
    if any(each.role not in INLINE | {TEXT, "generic"} for each in others):
        return None
    named = words(field.name)
    texts = [each for each in others if each.role == TEXT and not words(each.name) <= named]
    is_said = any(named <= words(each.name) for each in texts)
    told = [each.name for each in inside if each in texts or (each is field and not is_said)]
    field.name = " ".join(told).strip()
    return [field]

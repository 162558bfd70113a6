"""The text of a page: one line for each thing that a person would count as one.

A tree goes in, lines come out. docs/reading.md describes their form. Each word of the tree's
texts stands in the lines, in the order of reading. Each ref of an element to act on does once.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hud_mcp.worlds.browser.labels import labelled, without_labels
from hud_mcp.worlds.browser.lines import Piece, after, counted, indented, joined
from hud_mcp.worlds.browser.phrases import (
    ACTED,
    EDITED,
    FIELDS,
    INLINE,
    MOVED,
    address,
    choices,
    mark,
    plain,
    quoted,
    safe,
    words,
)
from hud_mcp.worlds.browser.tree import NOTICE, TEXT, Node, text_of

__all__ = ["outline"]

PROSE = frozenset({"caption", "definition", "heading", "label", "legend", "paragraph", "term"})
WRAPPERS = frozenset({"document", "generic", "none", "paragraph", "presentation", "rowgroup"})
QUIET = frozenset({"article", "banner", "contentinfo", "figure", "group", "list", "main"})
"""Containers that are told by a name of their own alone, and do not nest without one."""

LOUD = frozenset({"alertdialog", "dialog", "iframe", "navigation"})
TABLES = frozenset({"grid", "table", "treegrid"})
LIVE = frozenset({"alert", "log", "marquee", "status", "timer"})
VALUED = frozenset({"img", "meter", "progressbar"})
PHRASES = ACTED | WRAPPERS | VALUED
CELLS = frozenset({"cell", "columnheader", "gridcell", "rowheader"})
NAMES = {"generic": "", "iframe": "frame"}
"""The words for roles that have a plainer one."""

MAX_LINE = 160
"""The most characters to which things that stand beside each other share a line."""

_GAP = Node("gap")
"""The place where one block ends and the next begins."""


@dataclass
class _Place:
    """The row, item or card around a node, and the things that were told there."""

    node: Node
    heading: str = ""
    addresses: frozenset[str] = frozenset()

    @cached_property
    def _uses(self) -> Counter[str]:
        """The number of times that the place says a word."""
        return _said(self.node)

    def says(self, sought: Collection[str], node: Node) -> bool:
        """Whether the row, item or card has words also beside a node and the nodes in it."""
        if self.node.role in ("root", "dialog"):
            return False
        own = _said(node)
        return all(self._uses[word] > own[word] for word in sought)


def _said(node: Node) -> Counter[str]:
    """Return the number of times that each word is told in an element, whatever is left out."""
    leaves = (each.name for each in (node, *node.walk()) if not each.children)
    return Counter(word for name in leaves for word in words(name))


def outline(root: Node, url: str, *, whole: bool = False) -> list[str]:
    """Return the lines of a page at an address; `whole` has each option of a long select."""
    return list(_Outline(root, url, whole=whole).flow(root.children, _Place(root)))


class _Outline:
    """Writes the lines of one page."""

    def __init__(self, root: Node, url: str, *, whole: bool) -> None:
        self._url = url
        self._whole = whole
        self._acted: set[Node] = set()
        self._around: set[Node] = set()  # elements with one to act on in them
        self._find_acted(root, in_hand=False)

    def _find_acted(self, node: Node, *, in_hand: bool) -> bool:
        """Find the elements to act on, and return whether there is one in this element."""
        states, ref = node.states, node.ref
        node.role = states.get("drawn", node.role)
        hand = states.get("cursor") == "pointer"
        inside = False
        for child in node.children:
            inside |= self._find_acted(child, in_hand=in_hand or hand)
        if inside:
            self._around.add(node)
        if not ref:
            return inside
        acted = node.role in ACTED or (hand and not in_hand)
        acted = acted or not MOVED.isdisjoint(states)
        acted = acted or (states.get("click") == "own" and not (inside and len(node.children) == 1))
        # A listener is often that of a container, for events of the elements in it.
        if acted or ("click" in states and not inside and not in_hand):
            self._acted.add(node)
            return True
        return inside

    def flow(self, nodes: Sequence[Node], place: _Place) -> Iterator[str]:
        """Yield the lines of nodes that stand beside or below each other."""
        line: list[Piece] = []
        for node in self._spliced(nodes):
            piece = None if node is _GAP else self._piece(node, place)
            if piece is not None:
                if line and not self._fits(line, piece):
                    yield joined(line)
                    line = []
                line += [piece] if piece.text else []
                continue
            if node.role == "definition" and line and node not in self._acted:
                lines = list(self.flow(node.children, place))
                yield from after(f"{joined(line)}:" if lines else joined(line), lines)
                line = []
                continue
            if line:
                yield joined(line)
                line = []
            if node is not _GAP:
                yield from self._block(node, place)
        if line:
            yield joined(line)

    @staticmethod
    def _fits(line: Sequence[Piece], piece: Piece) -> bool:
        if line[-1].ends_line:
            return False
        if piece.is_text or line[-1].is_text:  # a sentence is not torn apart
            return True
        return sum(len(each.text) + 1 for each in line) + len(piece.text) <= MAX_LINE

    def _spliced(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """Yield nodes, with the content of wrappers between gaps in place of these."""
        for node in without_labels(nodes, self._acted):
            if node.role not in WRAPPERS or node.name:
                yield node
                continue
            field = labelled(node) if node in self._acted or "label" in node.states else None
            if field is None and node in self._acted:
                yield node
                continue
            yield _GAP
            yield from self._spliced(node.children) if field is None else field
            yield _GAP

    def _piece(self, node: Node, place: _Place) -> Piece | None:
        """Return a node as a part of a line; None if it needs lines of its own."""
        role = node.role
        if role == TEXT:
            return None if "\n" in node.name else Piece(safe(node.name))
        plain = node not in self._acted
        if role in INLINE and plain:
            pieces = self._pieces(node.children, place)
            around = EDITED.get(role, "")
            return None if pieces is None else Piece(f"{around}{joined(pieces)}{around}")
        if role == "separator" and plain:
            return Piece("")
        return self._element(node, place) if self._is_phrase(node) else None

    def _is_phrase(self, node: Node) -> bool:
        """Whether an element is one phrase, with nothing in it to act on beside itself."""
        if node.role == "combobox":
            return True
        if "scrolls" in node.states or node.role not in PHRASES:
            return False
        return node not in self._around

    def _pieces(self, nodes: Sequence[Node], place: _Place) -> list[Piece] | None:
        """Return nodes as parts of one line; None if one of them needs lines of its own."""
        out: list[Piece] = []
        starts = False
        for node in self._spliced(nodes):
            if node is _GAP:
                starts = True
                continue
            if node.role in PROSE and node not in self._acted:
                inner = self._pieces(node.children or [Node(TEXT, node.name)], place)
                starts = True
            elif node.role == TEXT:
                inner = [Piece(plain(node.name))]
            else:
                piece = self._piece(node, place)
                inner = None if piece is None else [piece]
            if inner is None:
                return None
            if inner and inner[0].text:
                out += [inner[0]._replace(starts_block=starts), *inner[1:]]
                starts = node.role in PROSE
        return out

    def _element(self, node: Node, place: _Place) -> Piece | None:
        """Return an element as a phrase; None if it is a text of several blocks."""
        role, acted = node.role, node in self._acted
        name, value = node.name, plain(node.states.get("value", ""))
        if role == "combobox" and any(each.role == "option" for each in node.walk()):
            value = choices(node, whole=self._whole)
        elif role in FIELDS or "editable" in node.states:
            value, role = _content(node) or value, role if role in FIELDS else "textbox"
        elif node.children:
            pieces = self._pieces(node.children, _Place(node, addresses=place.addresses))
            is_long = pieces is None or any(each.starts_block for each in pieces[1:])
            if is_long and role in WRAPPERS:
                return None
            texts = Node("", children=node.children) if pieces is None else None
            content = safe(text_of(texts)) if texts else joined(pieces or ())
            name, rest_of_it = _name_and_rest(node, content, place)
            value = rest_of_it or value
        if "range" in node.states:
            value = f"{value} ({plain(node.states['range'])})".lstrip()
        told = " ".join(each for each in (NAMES.get(role, role), name and quoted(name)) if each)
        link = address(node, self._url, place.addresses)
        phrase = f"{told}{mark(node, link, acted=acted)}".lstrip()
        text = f"{phrase}: {value}" if value else phrase
        return Piece(text, is_text=False, ends_line=bool(value))

    def _block(self, node: Node, place: _Place) -> Iterator[str]:
        """Yield the lines of a node that has lines of its own."""
        role = node.role
        if role == TEXT:
            yield from (safe(line) for line in node.name.split("\n") if line.strip())
        elif role == NOTICE:
            yield f"… {node.name}"
        elif role == "heading":
            yield from self._heading(node, place)
        elif role in ("listitem", "treeitem"):
            yield from self._item(node)
        elif role in TABLES and node not in self._acted:
            yield from self._table(node, place)
        elif role == "row":
            yield self._row(node)
        elif role in LIVE and node not in self._acted:
            head = f"{role} {quoted(node.name)}" if node.children and not _is_told(node) else role
            lines = list(self.flow(node.children or [Node(TEXT, node.name)], place))
            yield from after(f"{head}:", lines) if lines else ()
        else:
            yield from self._container(node, place)

    def _heading(self, node: Node, place: _Place) -> Iterator[str]:
        place.heading = text_of(node)
        nodes = node.children or [Node(TEXT, node.name)]
        pieces = self._pieces(nodes, place)
        lines = list(self.flow(nodes, place)) if pieces is None else [joined(pieces)]
        level = "#" * int(node.states.get("level") or 2)
        title = lines[0] if lines else ""
        yield f"{level} {title}{mark(node, acted=node in self._acted)}"
        yield from lines[1:]

    def _container(self, node: Node, place: _Place) -> Iterator[str]:
        role, name = node.role, node.name
        acted = node in self._acted
        shown = "" if name == place.heading else name
        if shown and shown == next((text_of(n) for n in node.walk() if n.role == "heading"), ""):
            shown = ""  # its first heading says it
        around = node if role in ("article", "figure", "group", "dialog") else place.node
        inner = _Place(around, place.heading, place.addresses | {node.props.get("url", "")})
        nodes = [each for each in node.children if not (shown and _says(each, shown))]
        lines = list(self._table(node, inner) if role in TABLES else self.flow(nodes, inner))
        if role in QUIET and "list" in role:
            lines = [counted(line, "items", node, "-") for line in lines]
        if not (shown or acted or role in LOUD) or role == "root":
            yield from lines
            return
        head = " ".join(each for each in (NAMES.get(role, role), shown and quoted(shown)) if each)
        link = address(node, self._url, place.addresses)
        head = f"{head}{mark(node, link, acted=acted)}".lstrip()
        yield f"{head}:" if lines else head
        yield from indented(lines)

    def _item(self, node: Node) -> Iterator[str]:
        place = _Place(node)
        nodes = node.children or [Node(TEXT, node.name)]
        if node.name and not _is_told(node):
            nodes = [Node(TEXT, node.name), _GAP, *nodes]
        lines = list(self.flow(nodes, place))
        if len(lines) > 1 and not any(each.role == "heading" for each in node.walk()):
            pieces = self._pieces(nodes, place)
            whole = joined(pieces) if pieces and all(each.is_text for each in pieces) else ""
            lines = [whole] if 0 < len(whole) <= MAX_LINE else lines
        yield from after(f"-{mark(node, acted=node in self._acted)}", lines)

    def _table(self, node: Node, place: _Place) -> Iterator[str]:
        if node.name and node.name != place.heading:
            yield f"table {quoted(node.name)}:"
        for row in self._spliced(node.children):
            if row is _GAP or (node.name and _says(row, node.name)):
                continue
            for line in self.flow([row], place):
                yield counted(line, "rows", node, "|")
            if row.children and all(cell.role == "columnheader" for cell in row.children):
                yield "|--"

    def _row(self, node: Node) -> str:
        place = _Place(node)
        cells: list[str] = []
        for cell in node.children or [Node(TEXT, node.name)]:
            nodes = (cell.children or [Node(TEXT, cell.name)]) if cell.role in CELLS else [cell]
            pieces = self._pieces(nodes, place)
            content = " / ".join(self.flow(nodes, place)) if pieces is None else joined(pieces)
            cells.append(
                content + mark(cell, acted=cell in self._acted) if cell.role in CELLS else content
            )
        return f"|{mark(node, acted=node in self._acted)} {' | '.join(cells)}".rstrip()


def _says(node: Node, name: str) -> bool:
    """Whether a node only says the name of the element around it."""
    plain = all(each.role == TEXT or each.role in INLINE for each in node.walk())
    return plain and node.role in PROSE | {TEXT} and text_of(node) == name


def _is_told(node: Node) -> bool:
    """Whether the texts in an element, or a name in it that is shown, say the element's name."""
    inside = [each.name for each in node.walk() if each.role not in ("button", "checkbox")]
    return words(node.name) <= frozenset[str]().union(*map(words, inside))


def _content(field: Node) -> str:
    """Return the value of a field, or its placeholder in parentheses if it is empty."""
    value = "\n".join(each.name for each in field.walk() if each.role == TEXT)
    if not value:
        hint = field.props.get("placeholder") or field.states.get("hint", "")
        return f"({plain(hint)})" if hint and hint != field.name else ""
    return quoted(value) if "\n" in value or value != value.strip() else safe(value)


def _name_and_rest(node: Node, content: str, place: _Place) -> tuple[str, str]:
    """Return an element's name without the words that its place tells, and what else it holds."""
    name = node.name
    if not content or not name or content == name:
        return name or content, ""
    shown, named = words(content), words(name)
    if shown == named:
        return name, ""
    if not shown:
        return name, content
    if shown < named:
        told = place.says(named - shown, node)
        return (content, "") if told else (name, "")
    return (content, "") if named <= shown else (name, content)

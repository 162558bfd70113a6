"""The text of a page: one line for each thing that a person would count as one.

A tree goes in, lines come out. docs/reading.md describes their form. Each word of the tree's
texts stands in the lines, in the order of reading. Each ref of an element to act on does once.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, Self

from hud_mcp.worlds.browser.phrases import (
    ACTED,
    CHECKS,
    FIELDS,
    address,
    choices,
    mark,
    quoted,
    safe,
    words,
)
from hud_mcp.worlds.browser.tree import NOTICE, TEXT, Node, text_of

__all__ = ["Line", "cut", "outline"]

INLINE = frozenset(
    (
        "abbr",
        "code",
        "deletion",
        "emphasis",
        "insertion",
        "mark",
        "strong",
        "subscript",
        "superscript",
        "term",
        "time",
    )
)
EDITED = {"deletion": "~~", "insertion": "++"}
"""What stands around text that was taken out or put in."""

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

_MOVED = frozenset({"drag", "edit", "scrolls"})
"""Facts by which any element is one to act on."""

_CLOSING = tuple(",.;:!?)]}…")
_GAP = Node("gap")
"""The place where one block ends and the next begins."""


class Line(str):
    """A line that is one of several of a kind, such as a row of a table.

    Attributes:
        kind: The kind, in the plural.
        part: The name and the ref of the whole.
    """

    __slots__ = ("kind", "part")

    kind: str
    part: tuple[str, str]

    @classmethod
    def of(cls, text: str, kind: str, whole: Node) -> Self:
        """Return a line of an element that has several."""
        line = cls(text)
        line.kind, line.part = kind, (whole.name, whole.ref)
        return line

    def indented(self) -> Self:
        """Return the line one step further in."""
        line = type(self)(f" {self}")
        line.kind, line.part = self.kind, self.part
        return line


class _Piece(NamedTuple):
    """A part of a line."""

    text: str
    is_text: bool = True
    starts_block: bool = False
    ends_line: bool = False


@dataclass
class _Place:
    """The row, item or card around a node, and the things that were told there."""

    node: Node
    heading: str = ""
    addresses: frozenset[str] = frozenset()

    def words_beside(self, node: Node) -> frozenset[str]:
        """Return the words in the place that are not those of a node or of the nodes in it."""
        own = {node, *node.walk()}
        others = (each.name for each in self.node.walk() if each not in own)
        return frozenset[str]().union(*map(words, others))


def outline(root: Node, url: str, *, whole: bool = False) -> list[str]:
    """Return the lines of a page.

    Args:
        root: The page's tree.
        url: The page's address, which shortens those of its links.
        whole: Whether to tell each option of a long select.
    """
    return list(_Outline(root, url, whole=whole).flow(root.children, _Place(root)))


def cut(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines, as many characters as there is room for, and what is left out."""
    shown, size = 0, 200  # of the notices
    while shown < len(lines) and size + len(lines[shown]) < room:
        size += len(lines[shown]) + 1
        shown += 1
    return [*lines[:shown], *_left_out(lines[shown:])]


def _left_out(lines: Sequence[str]) -> Iterator[str]:
    first = lines[0].lstrip() if not isinstance(lines[0], Line) else lines[0]
    if isinstance(first, Line):
        same = list(takewhile(lambda line: getattr(line, "part", None) == first.part, lines))
        name, ref = first.part
        whole = f" of {quoted(name)}" if name else ""
        observe = f", or observe {ref}" if ref else ""
        yield f"… {len(same)} more {first.kind}{whole}; scroll{observe}"
        lines = lines[len(same) :]
    if lines:
        titles = [line.strip() for line in lines if line.lstrip().startswith("# ")]
        titles = titles or [line.strip() for line in lines if line.lstrip().startswith("#")]
        below = f", with {', '.join(title[:40] for title in titles[:3])}" if titles else ""
        yield f"… {len(lines)} more lines{below}; scroll to see them"


class _Outline:
    """Writes the lines of one page."""

    def __init__(self, root: Node, url: str, *, whole: bool) -> None:
        self._url = url
        self._whole = whole
        self._acted: set[Node] = set()
        self._find_acted(root, in_hand=False)

    def _find_acted(self, node: Node, *, in_hand: bool) -> bool:
        """Find the elements to act on, and return whether there is one in this element."""
        states, ref = node.states, node.ref
        hand = states.get("cursor") == "pointer"
        inside = False
        for child in node.children:
            inside |= self._find_acted(child, in_hand=in_hand or hand)
        if not ref:
            return inside
        acted = node.role in ACTED or (hand and not in_hand)
        acted = acted or not _MOVED.isdisjoint(states)
        # A listener is often that of a container, for events of the elements in it.
        if acted or ("click" in states and not inside and not in_hand):
            self._acted.add(node)
            return True
        return inside

    def flow(self, nodes: Sequence[Node], place: _Place) -> Iterator[str]:
        """Yield the lines of nodes that stand beside or below each other."""
        line: list[_Piece] = []
        for node in self._spliced(nodes):
            piece = None if node is _GAP else self._piece(node, place)
            if piece is not None:
                if line and not self._fits(line, piece):
                    yield _joined(line)
                    line = []
                line += [piece] if piece.text else []
                continue
            if node.role == "definition" and line and node not in self._acted:
                lines = list(self.flow(node.children, place))
                yield from _after(f"{_joined(line)}:" if lines else _joined(line), lines)
                line = []
                continue
            if line:
                yield _joined(line)
                line = []
            if node is not _GAP:
                yield from self._block(node, place)
        if line:
            yield _joined(line)

    @staticmethod
    def _fits(line: Sequence[_Piece], piece: _Piece) -> bool:
        if line[-1].ends_line:
            return False
        if piece.is_text or line[-1].is_text:  # a sentence is not torn apart
            return True
        return sum(len(each.text) + 1 for each in line) + len(piece.text) <= MAX_LINE

    def _spliced(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """Yield nodes, with the content of wrappers between gaps in place of these."""
        for node in self._without_labels(nodes):
            if node.role not in WRAPPERS or node.name:
                yield node
                continue
            field = _labelled(node) if node in self._acted else None
            if field is None and node in self._acted:
                yield node
                continue
            yield _GAP
            yield from self._spliced(node.children) if field is None else field
            yield _GAP

    def _without_labels(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return nodes without the text of a label that names the field beside it.

        A field that is drawn by its label has no ref of its own: it gets that of the label.
        """
        out: list[Node] = []
        for i, node in enumerate(nodes):
            label = _label(node) if len(nodes) > 1 else ""
            beside = (*nodes[max(0, i - 1) : i], *nodes[i + 1 : i + 2]) if label else ()
            field = next((f for f in map(_innermost, beside) if _is_named(f, label)), None)
            if field is None or not _MOVED.isdisjoint(node.states):
                out.append(node)
            elif node in self._acted and not field.ref:
                field.states = {**field.states, "ref": node.ref}
                self._acted.add(field)
        return out

    def _piece(self, node: Node, place: _Place) -> _Piece | None:
        """Return a node as a part of a line; None if it needs lines of its own."""
        role = node.role
        if role == TEXT:
            return None if "\n" in node.name else _Piece(safe(node.name))
        plain = node not in self._acted
        if role in INLINE and plain:
            pieces = self._pieces(node.children, place)
            around = EDITED.get(role, "")
            return None if pieces is None else _Piece(f"{around}{_joined(pieces)}{around}")
        if role == "separator" and plain:
            return _Piece("")
        return self._element(node, place) if self._is_phrase(node) else None

    def _is_phrase(self, node: Node) -> bool:
        """Whether an element is one phrase, with nothing in it to act on beside itself."""
        if node.role == "combobox":
            return True
        if "scrolls" in node.states or node.role not in PHRASES:
            return False
        return not node.children or self._acted.isdisjoint(node.walk())

    def _pieces(self, nodes: Sequence[Node], place: _Place) -> list[_Piece] | None:
        """Return nodes as parts of one line; None if one of them needs lines of its own."""
        out: list[_Piece] = []
        starts = False
        for node in self._spliced(nodes):
            if node is _GAP:
                starts = True
                continue
            if node.role in PROSE and node not in self._acted:
                inner = self._pieces(node.children or [Node(TEXT, node.name)], place)
                starts = True
            elif node.role == TEXT:
                inner = [_Piece(safe(" ".join(node.name.split())))]
            else:
                piece = self._piece(node, place)
                inner = None if piece is None else [piece]
            if inner is None:
                return None
            if inner and inner[0].text:
                out += [inner[0]._replace(starts_block=starts), *inner[1:]]
                starts = node.role in PROSE
        return out

    def _element(self, node: Node, place: _Place) -> _Piece | None:
        """Return an element as a phrase; None if it is a text of several blocks."""
        role, acted = node.role, node in self._acted
        name, value = node.name, node.states.get("value", "")
        if role == "combobox" and any(each.role == "option" for each in node.walk()):
            value = choices(node, whole=self._whole)
        elif role in FIELDS or "edit" in node.states:
            value, role = _content(node) or value, role if role in FIELDS else "textbox"
        else:
            pieces = self._pieces(node.children, _Place(node, addresses=place.addresses))
            is_long = pieces is None or any(each.starts_block for each in pieces[1:])
            if is_long and role in WRAPPERS:
                return None
            rest = Node("", children=node.children)
            content = safe(text_of(rest)) if pieces is None else _joined(pieces)
            name, rest_of_it = _name_and_rest(node, content, place)
            value = rest_of_it or value
        if "range" in node.states:
            value = f"{value} ({node.states['range']})".lstrip()
        told = " ".join(each for each in (NAMES.get(role, role), name and quoted(name)) if each)
        link = address(node, self._url, place.addresses)
        phrase = f"{told}{mark(node, acted=acted)}{link}".lstrip()
        text = f"{phrase}: {value}" if value else phrase
        return _Piece(text, is_text=False, ends_line=bool(value))

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
            yield from _after(f"{head}:", lines) if lines else ()
        else:
            yield from self._container(node, place)

    def _heading(self, node: Node, place: _Place) -> Iterator[str]:
        place.heading = text_of(node)
        nodes = node.children or [Node(TEXT, node.name)]
        pieces = self._pieces(nodes, place)
        lines = list(self.flow(nodes, place)) if pieces is None else [_joined(pieces)]
        level = "#" * int(node.states.get("level") or 2)
        title = lines[0] if lines else ""
        yield f"{level} {title}{mark(node, acted=node in self._acted)}"
        yield from lines[1:]

    def _container(self, node: Node, place: _Place) -> Iterator[str]:
        role, name = node.role, node.name
        acted = node in self._acted
        title = next((text_of(each) for each in node.walk() if each.role == "heading"), "")
        shown = name if name and name not in (place.heading, title) else ""
        around = node if role in ("article", "figure", "group", "dialog") else place.node
        inner = _Place(around, place.heading, place.addresses | {node.props.get("url", "")})
        nodes = [each for each in node.children if not (shown and _says(each, shown))]
        lines = list(self._table(node, inner) if role in TABLES else self.flow(nodes, inner))
        if role in QUIET and "list" in role:
            lines = [_counted(line, "items", node, "-") for line in lines]
        if not (shown or acted or role in LOUD) or role == "root":
            yield from lines
            return
        head = " ".join(each for each in (NAMES.get(role, role), shown and quoted(shown)) if each)
        link = address(node, self._url, place.addresses)
        head = f"{head}{mark(node, acted=acted)}{link}".lstrip()
        yield f"{head}:" if lines else head
        yield from _indented(lines)

    def _item(self, node: Node) -> Iterator[str]:
        place = _Place(node)
        nodes = node.children or [Node(TEXT, node.name)]
        if node.name and not _is_told(node):
            nodes = [Node(TEXT, node.name), _GAP, *nodes]
        lines = list(self.flow(nodes, place))
        if len(lines) > 1 and not any(each.role == "heading" for each in node.walk()):
            pieces = self._pieces(nodes, place)
            whole = _joined(pieces) if pieces and all(each.is_text for each in pieces) else ""
            lines = [whole] if 0 < len(whole) <= MAX_LINE else lines
        yield from _after(f"-{mark(node, acted=node in self._acted)}", lines)

    def _table(self, node: Node, place: _Place) -> Iterator[str]:
        if node.name and node.name != place.heading:
            yield f"table {quoted(node.name)}:"
        for row in self._spliced(node.children):
            if row is _GAP or (node.name and _says(row, node.name)):
                continue
            for line in self.flow([row], place):
                yield _counted(line, "rows", node, "|")
            if row.children and all(cell.role == "columnheader" for cell in row.children):
                yield "|--"

    def _row(self, node: Node) -> str:
        place = _Place(node)
        cells: list[str] = []
        for cell in node.children or [Node(TEXT, node.name)]:
            nodes = (cell.children or [Node(TEXT, cell.name)]) if cell.role in CELLS else [cell]
            pieces = self._pieces(nodes, place)
            content = " / ".join(self.flow(nodes, place)) if pieces is None else _joined(pieces)
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
    return node.role in FIELDS | CHECKS | {"listbox"} and node.name == label


def _labelled(node: Node) -> list[Node] | None:
    """Return the one field in a label, with the texts there that do not name it; else None."""
    inside = list(node.walk())
    fields = [each for each in inside if each.role in ACTED and each.role != "option"]
    if not _MOVED.isdisjoint(node.states):
        return None
    if len(fields) != 1 or fields[0].role not in FIELDS | CHECKS or not fields[0].ref:
        return None
    field = fields[0]
    own = list(field.walk())
    others = [each for each in inside if each is not field and each not in own]
    if any(each.role not in INLINE | {TEXT, "generic"} for each in others):
        return None
    named = words(field.name)
    return [
        e
        for e in inside
        if e is field or (e in others and e.role == TEXT and not words(e.name) <= named)
    ]


def _content(field: Node) -> str:
    """Return the value of a field, or its placeholder in parentheses if it is empty."""
    value = "\n".join(each.name for each in field.walk() if each.role == TEXT)
    if not value:
        hint = field.props.get("placeholder", "")
        return f"({safe(hint)})" if hint and hint != field.name else ""
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
        told = named - shown <= place.words_beside(node)
        return (content, "") if told else (name, "")
    return (content, "") if named <= shown else (name, content)


def _joined(pieces: Sequence[_Piece]) -> str:
    text = ""
    was_text = False
    for piece in pieces:
        if text and not (piece.is_text and piece.text.startswith(_CLOSING)):
            text += " · " if piece.starts_block and piece.is_text and was_text else " "
        text += piece.text
        was_text = piece.is_text
    return text


def _counted(line: str, kind: str, whole: Node, start: str) -> str:
    if line.startswith(start) and not isinstance(line, Line):
        return Line.of(line, kind, whole)
    return line


def _after(head: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the first line behind a head, and the others below."""
    first, *others = [*lines] or [""]
    yield f"{head} {first}".rstrip()
    yield from _indented(others)


def _indented(lines: Collection[str]) -> Iterator[str]:
    return (line.indented() if isinstance(line, Line) else f" {line}" for line in lines)

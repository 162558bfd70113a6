"""Workbooks that LibreOffice writes as `.xlsx`: their sheets, and what is in the cells."""

import re
from collections.abc import Iterable, Iterator, Mapping

from osworld_office import RELATIONS, Element, Package, Unreadable, child, children, local

__all__ = ["MOST_CELLS", "Area", "Book", "Cells", "Place", "Sheet", "Value", "area", "inside",
           "place"]  # fmt: skip

Value = str | float | bool | None
Place = tuple[int, int]
"""A row and a column, from 1."""
Area = tuple[int, int, int, int]
"""The first row and column, and the last ones."""
Cells = dict[Place, Value]

CELL = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
MOST_CELLS = 1_000_000


class Book:
    """A workbook.

    Args:
        data: The file's content.

    Attributes:
        file: That content.

    Raises:
        Unreadable: It is none.
    """

    def __init__(self, data: bytes) -> None:
        self.file = data
        self.package = Package(data)
        self.xml = self.package.xml("xl/workbook.xml")
        self.related = self.package.related("xl/workbook.xml")
        self._parts: dict[str, str] = {}
        for each in children(self.xml, "sheets", "sheet"):
            part = self.related.get(each.get(f"{RELATIONS}id", ""), "")
            self._parts[each.get("name", "")] = part
        self._strings = self._shared()

    @property
    def names(self) -> list[str]:
        """Its sheets' names, in order."""
        return list(self._parts)

    def sheet(self, name: str) -> "Sheet | None":
        """A sheet by its name; None where there is none."""
        part = self._parts.get(name)
        return None if part is None else Sheet(self, part, self._strings)

    def _shared(self) -> list[str]:
        if "xl/sharedStrings.xml" not in self.package.names:
            return []
        found: list[str] = []
        for item in children(self.package.xml("xl/sharedStrings.xml"), "si"):
            plain = [each.text or "" for each in children(item, "t")]
            found.append("".join(plain + [each.text or "" for each in children(item, "r", "t")]))
        return found


class Sheet:
    """A sheet of a workbook.

    Args:
        book: The workbook.
        part: The sheet's part in it.
        strings: Those that the workbook's sheets share.

    Attributes:
        cells: What the cells show; those that show nothing are not there.
        filled: Where a value or a formula stands.
        styles: Each cell that the file has, with the number of its format.
    """

    def __init__(self, book: Book, part: str, strings: list[str]) -> None:
        self.book = book
        self.part = part
        self.xml: Element = book.package.xml(part)
        self._strings = strings
        self.cells: Cells = {}
        self.filled: set[Place] = set()
        self.styles: dict[Place, int] = {}
        for row in children(self.xml, "sheetData", "row"):
            for each in children(row, "c"):
                at = place(each.get("r", ""))
                self.styles[at] = number(each, "s")
                if any(local(part) in ("f", "v", "is") for part in each):
                    self.filled.add(at)
                value = self._value(each)
                if value is not None:
                    self.cells[at] = value

    @property
    def related(self) -> Mapping[str, str]:
        """The parts that it refers to, by the ids that it has for them."""
        return self.book.package.related(self.part)

    def _value(self, cell: Element) -> Value:
        """What a cell shows; a formula counts as its result."""
        kind, text = cell.get("t", "n"), "".join(each.text or "" for each in children(cell, "v"))
        if kind == "inlineStr":
            return "".join(each.text or "" for each in cell.iter() if local(each) == "t")
        if not text and kind != "str":
            return None
        try:
            if kind == "s":
                return self._strings[int(text)]
            if kind == "b":
                return text == "1"
            return None if kind == "e" else text if kind in ("str", "d") else float(text)
        except (ValueError, IndexError):
            raise Unreadable(f"The cell {cell.get('r')} is damaged.") from None

    def view(self, *path: str) -> Element | None:
        """What lies in the first view of it."""
        return child(self.xml, "sheetViews", "sheetView", *path)


def number(element: Element, name: str) -> int:
    """A whole number that an element has; 0 where it has none.

    Raises:
        Unreadable: It is no number.
    """
    text = element.get(name, "0")
    try:
        return int(text)
    except ValueError:
        raise Unreadable(f"{name}={text!r:.40} is no number.") from None


def place(name: str) -> Place:
    """The row and the column of a cell's name.

    Raises:
        Unreadable: It is none.
    """
    found = CELL.fullmatch(name)
    if found is None:
        raise Unreadable(f"{name!r:.40} names no cell.")
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]), column


def area(name: str) -> Area:
    """The cells from one to another, as in `A1:B6`; or one cell.

    Raises:
        Unreadable: It names none.
    """
    first, _, last = name.partition(":")
    return (*place(first), *place(last or first))


def inside(ranges: Iterable[str]) -> Iterator[Place]:
    """Each cell of some ranges."""
    for each in ranges:
        top, left, bottom, right = area(each)
        yield from ((row, col) for row in range(top, bottom + 1) for col in range(left, right + 1))

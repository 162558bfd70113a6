"""How spreadsheets are compared, by the rules that `compare_table` is given.

Files are those that LibreOffice writes as `.xlsx`. A sheet is named as rows name it: `0` or `RI0`
is the result's first one, `EI0` the expected one's; `RNSheet1` and `ENSheet1` are by name.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from osworld_office import Element, Package, Unreadable, child, children, local, ratio

__all__ = ["RULES", "compare_table"]

Value = str | float | bool | None
Cells = dict[tuple[int, int], Value]

CELL = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
MISSING = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
"""What pandas, by which the benchmark reads sheets, takes for an empty cell."""
PRECISION = 4
ZOOM = 100.0
MOST_CELLS = 1_000_000


def compare_table(result: Any, expected: Any = None, **options: Any) -> float:
    """Whether every rule holds."""
    try:
        mine = Book(result)
        wanted = None if expected is None else Book(expected)
        for rule in options["rules"]:
            if not RULES[rule["type"]](mine, wanted, rule):
                return 0.0
    except Unreadable:
        if expected is not None:
            Book(expected)  # which is the benchmark's own, and no fault of the agent's
        return 0.0
    return 1.0


class Book:
    """A workbook.

    Args:
        data: The file's content.

    Raises:
        Unreadable: It is none.
    """

    def __init__(self, data: bytes) -> None:
        self._package = Package(data)
        related = self._package.related("xl/workbook.xml")
        self._parts: dict[str, str] = {}
        for each in children(self._package.xml("xl/workbook.xml"), "sheets", "sheet"):
            ids = [value for name, value in each.attrib.items() if name.endswith("}id")]
            self._parts[each.get("name", "")] = related.get(ids[0] if ids else "", "")
        self._strings = self._shared()

    @property
    def names(self) -> list[str]:
        """Its sheets' names, in order."""
        return list(self._parts)

    def sheet(self, name: str) -> "Sheet | None":
        """A sheet by its name; None where there is none."""
        part = self._parts.get(name)
        return None if part is None else Sheet(self._package.xml(part), self._strings)

    def _shared(self) -> list[str]:
        if "xl/sharedStrings.xml" not in self._package.names:
            return []
        found: list[str] = []
        for item in children(self._package.xml("xl/sharedStrings.xml"), "si"):
            plain = [each.text or "" for each in children(item, "t")]
            found.append("".join(plain + [each.text or "" for each in children(item, "r", "t")]))
        return found


class Sheet:
    """A sheet of a workbook.

    Args:
        xml: Its part.
        strings: Those that the workbook's sheets share.
    """

    def __init__(self, xml: Element, strings: list[str]) -> None:
        self.xml = xml
        self._strings = strings
        self.cells: Cells = {}
        for row in children(xml, "sheetData", "row"):
            for each in children(row, "c"):
                value = self._value(each)
                if value is not None:
                    self.cells[place(each.get("r", ""))] = value

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


def place(name: str) -> tuple[int, int]:
    """The row and the column of a cell's name, from 1.

    Raises:
        Unreadable: It is none.
    """
    found = CELL.fullmatch(name)
    if found is None:
        raise Unreadable(f"{name!r} names no cell.")
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]), column


def inside(ranges: Iterable[str]) -> Iterable[tuple[int, int]]:
    """Each cell of some ranges, such as `A1:B6`."""
    for each in ranges:
        first, _, last = each.partition(":")
        (top, left), (bottom, right) = place(first), place(last or first)
        yield from ((row, col) for row in range(top, bottom + 1) for col in range(left, right + 1))


def chosen(name: str | int, mine: Book, wanted: Book | None) -> Sheet | None:
    """The sheet that a rule names; None where there is none.

    Raises:
        ValueError: It names none of what there is.
    """
    text = f"RI{name}" if isinstance(name, int) else name
    book = mine if text.startswith("R") else wanted
    if book is None or text[:2] not in ("RI", "RN", "EI", "EN"):
        raise ValueError(f"The rule names a sheet {name!r}, and there is no book of it.")
    if text[1] == "N":
        return book.sheet(text[2:])
    return book.sheet(book.names[int(text[2:])]) if int(text[2:]) < len(book.names) else None


def both(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> tuple[Sheet, Sheet] | None:
    """The two sheets of a rule; None where the first one is not there."""
    one = chosen(rule["sheet_idx0"], mine, wanted)
    other = chosen(rule["sheet_idx1"], mine, wanted)
    if other is None:
        raise ValueError(f"The rule names a sheet {rule['sheet_idx1']!r} that is not there.")
    return None if one is None else (one, other)


def sheet_name(mine: Book, wanted: Book | None, _rule: Mapping[str, Any]) -> bool:
    """Whether both have sheets of the same names, in the same order."""
    return wanted is not None and mine.names == wanted.names


def sheet_data(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether two sheets have the same values; numbers to 4 decimals in columns of numbers."""
    sheets = both(mine, wanted, rule)
    if sheets is None:
        return False
    digits = int(rule.get("precision", PRECISION))
    return frame(sheets[0].cells, digits) == frame(sheets[1].cells, digits)


def frame(cells: Cells, digits: int) -> list[tuple[str, list[Value]]]:
    """A sheet as pandas has it: the first row names columns, which are as long as the longest."""
    known = {at: value for at, value in cells.items() if value not in MISSING or at[0] == 1}
    if not known:
        return []
    rows, columns = max(row for row, _ in cells), max(column for _, column in cells)
    if rows * columns > MOST_CELLS:
        raise Unreadable("This sheet is larger than any of the benchmark.")
    made: list[tuple[str, list[Value]]] = []
    for column in range(1, columns + 1):
        values = [known.get((row, column)) for row in range(2, rows + 1)]
        plain = all(value is None or type(value) is float for value in values)
        shown = [
            round(value, digits) if plain and isinstance(value, float) and math.isfinite(value)
            else value
            for value in values
        ]  # fmt: skip
        made.append((repr(known.get((1, column))), [repr(each) for each in shown]))
    return made


def sheet_fuzzy(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether ranges of two sheets are alike, each in its way."""
    sheets = both(mine, wanted, rule)
    if sheets is None:
        return False
    for each in rule["rules"]:
        for at in inside(each["range"]):
            texts = [normal(shown(sheet.cells.get(at)), each) for sheet in sheets]
            if not alike(texts[0], texts[1], each):
                return False
    return True


def shown(value: Value) -> str:
    """A value as the benchmark reads it: a truth value is nothing to it."""
    return str(None if isinstance(value, bool) else value)


def normal(text: str, rule: Mapping[str, Any]) -> str:
    """A text without what does not count, by a rule."""
    for old, new in rule.get("normalization", ()):
        text = text.replace(old, new)
    if "trim_leadings" in rule:
        text = text.lstrip(rule["trim_leadings"])
    if "trim_trailings" in rule:
        text = text.rstrip(rule["trim_trailings"])
    text = "".join(sign for sign in text if sign not in set(rule.get("ignore_chars", "")))
    return text.lower() if rule.get("ignore_case") else text


def alike(one: str, other: str, rule: Mapping[str, Any]) -> bool:
    """Whether two texts are alike, by a rule."""
    kind = rule["type"]
    if kind == "includes":
        return other in one
    if kind == "included_by":
        return one in other
    if kind == "fuzzy_match":
        return ratio(one, other) * 100 >= float(rule.get("threshold", 85.0))
    if kind == "exact_match":
        return one == other
    raise ValueError(f"A range is compared by {kind!r}, which is unknown.")


def check_cell(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether a cell's value fits."""
    sheet = chosen(rule["sheet_idx"], mine, wanted)
    if sheet is None:
        return False
    value = sheet.cells.get(place(rule["coordinate"]))
    return all(fits(None if isinstance(value, bool) else value, each)
               for each in rule["props"].values())  # fmt: skip


def zoom(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether a sheet's zoom fits."""
    sheet = chosen(rule["sheet_idx"], mine, wanted)
    if sheet is None:
        return False
    view = child(sheet.xml, "sheetViews", "sheetView")
    text = view.get("zoomScale", "") if view is not None else ""
    return fits(float(text) if text.isdigit() and int(text) else ZOOM, rule)


def freeze(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether two sheets are frozen at the same cell."""
    sheets = both(mine, wanted, rule)
    return sheets is not None and frozen(sheets[0]) == frozen(sheets[1])


def frozen(sheet: Sheet) -> str | None:
    """The cell at which a sheet is frozen, or None."""
    pane = child(sheet.xml, "sheetViews", "sheetView", "pane")
    return None if pane is None else pane.get("topLeftCell")


def row_props(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether rows have the same properties, of which `hidden` is known."""
    sheets = both(mine, wanted, rule)
    return sheets is not None and hidden(sheets[0]) == hidden(sheets[1])


def hidden(sheet: Sheet) -> dict[str, bool]:
    """Whether each row that the file has is hidden."""
    return {
        row.get("r", ""): row.get("hidden") in ("1", "true")
        for row in children(sheet.xml, "sheetData", "row")
    }


def fits(value: Value, rule: Mapping[str, Any]) -> bool:
    """Whether a value is as a rule wants it.

    Raises:
        ValueError: The rule's method is unknown.
    """
    method, wanted = str(rule["method"]), rule["ref"]
    if method.startswith("approx:"):
        try:
            return value is not None and abs(float(value) - wanted) <= float(method[7:])
        except ValueError:
            return False
    if method in ("eq", "ne"):
        return (value == wanted) is (method == "eq")
    if method in ORDER:
        same = isinstance(value, str) is isinstance(wanted, str)
        return value is not None and same and ORDER[method](value, wanted)
    kind, *names = method.split(".")
    if kind == "re":
        flags = sum(getattr(re, name) for name in names)
        return isinstance(value, str) and re.search(wanted, value, flags) is not None
    raise ValueError(f"A value is compared by {method!r}, which is unknown.")


ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

RULES: dict[str, Callable[[Book, Book | None, Mapping[str, Any]], bool]] = {
    each.__name__: each
    for each in (check_cell, freeze, row_props, sheet_data, sheet_fuzzy, sheet_name, zoom)
}
"""By the names that rows have; of `check_cell` the value, of `row_props` what is hidden."""

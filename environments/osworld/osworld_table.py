"""How spreadsheets are compared, by the rules that `compare_table` is given.

A sheet is named as rows name it: `0` or `RI0` is the result's first one, `EI0` the expected one's;
`RNSheet1` and `ENSheet1` are by name.
"""

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from osworld_book import MOST_CELLS, Book, Cells, Sheet, Value, inside, number, place
from osworld_charts import CHARTS, charts
from osworld_fits import fits
from osworld_office import Beside, Element, Unreadable, children, ratio
from osworld_pivots import PIVOTS, pivots
from osworld_styles import STYLES, looks, style_of

__all__ = ["PROPS", "RULES", "compare_table"]

MISSING = frozenset({
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
})  # fmt: skip
"""What pandas, by which the benchmark reads sheets, takes for an empty cell."""
PRECISION = 4
ZOOM = 100.0
WIDTH = 13.0


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


def sheet_of(name: str | int, mine: Book, wanted: Book | None) -> tuple[Book, str | None]:
    """The book that a rule names, and the sheet's name in it; None where it has not so many.

    Raises:
        ValueError: It names none of what there is.
    """
    text = f"RI{name}" if isinstance(name, int) else name
    book = mine if text.startswith("R") else wanted
    if book is None or text[:2] not in ("RI", "RN", "EI", "EN"):
        raise ValueError(f"The rule names a sheet {name!r}, and there is no book of it.")
    if text[1] == "N":
        return book, text[2:]
    return book, book.names[int(text[2:])] if int(text[2:]) < len(book.names) else None


def chosen(name: str | int, mine: Book, wanted: Book | None) -> Sheet | None:
    """The sheet that a rule names; None where there is none."""
    book, called = sheet_of(name, mine, wanted)
    return None if called is None else book.sheet(called)


def printed(book: Book, name: str | None) -> list[str] | None:
    """The lines of the file that a sheet was printed to; None where there is none.

    It lies beside the workbook, under the names of both. Empty lines at its end do not count.
    """
    file = book.file
    if name is None or not isinstance(file, Beside):
        return None
    data = file.others.get(f"{PurePosixPath(file.name).stem}-{name}.csv")
    if data is None:
        return None
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


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
    """Whether a cell's value and its style fit."""
    sheet = chosen(rule["sheet_idx"], mine, wanted)
    if sheet is None:
        return False
    at = place(rule["coordinate"])
    value = sheet.cells.get(at)
    found = {"value": None if isinstance(value, bool) else value}
    names = [name for name in rule["props"] if name != "value"]
    if names:
        found |= zip(names, style_of(sheet, at, names), strict=True)
    return all(fits(found[name], each) for name, each in rule["props"].items())


def zoom(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether a sheet's zoom fits."""
    sheet = chosen(rule["sheet_idx"], mine, wanted)
    if sheet is None:
        return False
    view = sheet.view()
    text = view.get("zoomScale", "") if view is not None else ""
    return fits(float(text) if text.isdigit() and int(text) else ZOOM, rule)


def freeze(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether two sheets are frozen at the same cell."""
    sheets = both(mine, wanted, rule)
    return sheets is not None and frozen(sheets[0]) == frozen(sheets[1])


def frozen(sheet: Sheet) -> str | None:
    """The cell at which a sheet is frozen, or None."""
    pane = sheet.view("pane")
    return None if pane is None else pane.get("topLeftCell")


def row_props(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether rows have the same properties."""
    sheets = both(mine, wanted, rule)
    return sheets is not None and rows(sheets[0], rule) == rows(sheets[1], rule)


def rows(sheet: Sheet, rule: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The properties of each row of which the file says more than its number."""
    return {
        each.get("r", ""): [ROWS[name](each) for name in rule.get("props", ())]
        for each in children(sheet.xml, "sheetData", "row")
        if set(each.attrib) - {"r", "spans"}
    }


def col_props(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether columns have the same properties."""
    sheets = both(mine, wanted, rule)
    return sheets is not None and columns(sheets[0], rule) == columns(sheets[1], rule)


def columns(sheet: Sheet, rule: Mapping[str, Any]) -> dict[int, list[Any]]:
    """The properties of each group of columns, by its first one."""
    return {
        number(each, "min"): [COLUMNS[name](each) for name in rule.get("props", ())]
        for each in children(sheet.xml, "cols", "col")
    }


def true(name: str, element: Element) -> bool:
    """Whether an element says that something is so."""
    return element.get(name) in ("1", "true")


def length(name: str, default: float | None, element: Element) -> float | None:
    """A height or a width.

    Raises:
        Unreadable: It is no number.
    """
    text = element.get(name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise Unreadable(f"{name}={text!r:.40} is no number.") from None


def chart(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether two sheets have charts of the same cells that are alike."""
    sheets = both(mine, wanted, rule)
    names = rule.get("chart_props", ())
    return sheets is not None and charts(sheets[0], names) == charts(sheets[1], names)


def pivot_table(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether two sheets have pivot tables of the same cells that are alike."""
    sheets = both(mine, wanted, rule)
    names = rule.get("pivot_props", ())
    return sheets is not None and pivots(sheets[0], names) == pivots(sheets[1], names)


def style(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether every cell of two sheets looks the same."""
    sheets = both(mine, wanted, rule)
    names = rule.get("props", [])
    return sheets is not None and looks(sheets[0], names) == looks(sheets[1], names)


def sheet_print(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether two sheets print the same, as the files say into which each was converted."""
    one, other = (
        printed(*sheet_of(rule[name], mine, wanted)) for name in ("sheet_idx0", "sheet_idx1")
    )
    if other is None:
        raise ValueError(f"There is no printed sheet {rule['sheet_idx1']!r} to compare with.")
    if one is not None and rule.get("ignore_case"):
        return list(map(str.lower, one)) == list(map(str.lower, other))
    return one == other


def data_validation(mine: Book, wanted: Book | None, rule: Mapping[str, Any]) -> bool:
    """Whether each check of what is entered is one of those that a rule wants."""
    sheet = chosen(rule["sheet_idx"], mine, wanted)
    if sheet is None:
        return False
    found = [checked(each) for each in children(sheet.xml, "dataValidations", "dataValidation")]
    return len(found) >= len(rule["dv_props"]) and all(
        any(all(fits(each[name], how) for name, how in props.items()) for props in rule["dv_props"])
        for each in found
    )


def checked(element: Element) -> dict[str, Any]:
    """What a check says, by the names that rules have."""
    texts = dict.fromkeys(FORMULAS) | {
        name: "".join(part.itertext()) for name in FORMULAS for part in children(element, name)
    }
    told = {name: element.get(name) for name in TOLD}
    flags = {name: true(name, element) for name in FLAGS}
    return {**texts, **told, **flags, "ranges": element.get("sqref")}


FORMULAS = ("formula1", "formula2")
TOLD = ("type", "operator", "error", "errorTitle", "errorStyle", "prompt", "promptTitle", "imeMode")
FLAGS = ("allowBlank", "showDropDown", "showInputMessage", "showErrorMessage")
ROWS: dict[str, Callable[[Element], Any]] = {
    "hidden": partial(true, "hidden"),
    "collapsed": partial(true, "collapsed"),
    "height": partial(length, "ht", None),
}
COLUMNS: dict[str, Callable[[Element], Any]] = {
    "width": partial(length, "width", WIDTH),
    "auto_size": partial(true, "bestFit"),
    "hidden": partial(true, "hidden"),
    "collapsed": partial(true, "collapsed"),
    "min": partial(length, "min", None),
    "max": partial(length, "max", None),
}

RULES: dict[str, Callable[[Book, Book | None, Mapping[str, Any]], bool]] = {
    each.__name__: each
    for each in (
        chart, check_cell, col_props, data_validation, freeze, pivot_table, row_props, sheet_data,
        sheet_fuzzy, sheet_name, sheet_print, style, zoom,
    )
}  # fmt: skip
"""By the names that rows have."""
PROPS: dict[str, Collection[str]] = {
    "chart": CHARTS,
    "check_cell": {"value", *STYLES},
    "col_props": COLUMNS,
    "data_validation": {*FORMULAS, *TOLD, *FLAGS, "ranges"},
    "pivot_table": PIVOTS,
    "row_props": ROWS,
    "style": STYLES,
}
"""What some rules may name of what they look at."""

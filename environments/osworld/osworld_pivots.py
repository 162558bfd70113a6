"""The pivot tables of a sheet, by the names that rules have for what is compared of them."""

from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import Any

from osworld_book import Sheet, area, number
from osworld_office import RELATIONS, Element, Unreadable, child, children, local

__all__ = ["PIVOTS", "pivots"]

PIVOTS = frozenset({
    "col_fields", "data_fields", "data_fields_name", "filter", "location", "name", "ordered",
    "row_fields", "selection", "show_empty_col", "show_empty_row", "show_headers", "show_total",
})  # fmt: skip
"""The names that rows have for them."""
SHOWN = {
    "show_total": ("visualTotals", True),
    "show_empty_row": ("showEmptyRow", False),
    "show_empty_col": ("showEmptyCol", False),
    "show_headers": ("showHeaders", True),
}
"""What a table says of itself, and what counts where it does not."""


def pivots(sheet: Sheet, names: Collection[str]) -> dict[str, dict[str, Any]]:
    """Each pivot table by the cells that it is of, with what is compared of it.

    Raises:
        Unreadable: One is damaged, or is of no cells of a sheet.
    """
    found: dict[str, dict[str, Any]] = {}
    for table, cache in tables(sheet):
        chosen = [selected(each) for each in children(table, "pivotFields", "pivotField")]
        before = len(list(takewhile(lambda each: not each, chosen)))
        after = len(list(takewhile(lambda each: not each, reversed(chosen[before:]))))
        kept = chosen[before : len(chosen) - after]
        found[source(cache, before, after)] = compared(table, kept, before, names)
    return found


def tables(sheet: Sheet) -> Iterator[tuple[Element, Element]]:
    """Each pivot table of a sheet, and the definition of what it is of."""
    book = sheet.book
    caches = {
        each.get("cacheId"): book.related.get(each.get(f"{RELATIONS}id", ""), "")
        for each in children(book.xml, "pivotCaches", "pivotCache")
    }
    for part in sheet.related.values():
        if part in book.package.names and "/pivotTables/" in part:
            table = book.package.xml(part)
            if local(table) == "pivotTableDefinition":
                yield table, book.package.xml(caches.get(table.get("cacheId"), ""))


def selected(field: Element) -> list[tuple[bool | None, int]]:
    """The items of a field, each with whether it is hidden."""
    return [
        (None if "h" not in each.attrib else each.get("h") in ("1", "true"), number(each, "x"))
        for each in children(field, "items", "item")
        if "x" in each.attrib
    ]


def source(cache: Element, before: int, after: int) -> str:
    """The cells that a table is of, without the outer columns of which it has no items."""
    origin = child(cache, "cacheSource")
    place = child(origin, "worksheetSource")
    if origin is None or place is None:
        raise Unreadable("This pivot table is of no cells of a sheet.")
    top, left, bottom, right = area(place.get("ref", ""))
    cells = f"{(top, left + before)}:{(bottom, right - after)}"
    return f"{origin.get('type')};{cells};{place.get('sheet')}"


def compared(
    table: Element,
    chosen: list[list[tuple[bool | None, int]]],
    before: int,
    names: Collection[str],
) -> dict[str, Any]:
    """What is compared of a table; its fields are counted from the first one with items."""

    def fields(path: str, name: str) -> list[int]:
        return [number(each, name) - before for each in children(table, path, "field")]

    found: dict[str, Any] = {}
    if "name" in names:
        found["name"] = table.get("name")
    for name in sorted(SHOWN.keys() & set(names)):
        attribute, default = SHOWN[name]
        text = table.get(attribute)
        found[name] = default if text is None else text in ("1", "true")
    if "location" in names:
        place = child(table, "location")
        found["location"] = None if place is None else dict(place.attrib)
    if "filter" in names or "selection" in names:
        found["selection"] = chosen if "ordered" in names else [set(each) for each in chosen]
    if "filter" in names:
        pages = children(table, "pageFields", "pageField")
        found["filter_fields"] = {number(each, "fld") for each in pages}
    if "col_fields" in names:
        found["col_fields"] = fields("colFields", "x")
    if "row_fields" in names:
        found["row_fields"] = fields("rowFields", "x")
    if "data_fields" in names:
        found["data_fields"] = [
            (
                number(each, "fld") - before,
                each.get("name") if "data_fields_name" in names else "",
                each.get("subtotal", "sum"),
                each.get("showDataAs", "normal"),
            )
            for each in children(table, "dataFields", "dataField")
        ]
    return found

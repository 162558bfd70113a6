"""How cells look: the fonts and fills of a sheet, by the names that rules have for them."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from osworld_book import MOST_CELLS, Place, Sheet, area, inside, number
from osworld_office import Element, Unreadable, child, children

__all__ = ["STYLES", "looks", "style_of"]

PLAIN = "00000000"
"""A colour that a fill does not name."""
OTHER = "by a theme or a palette"
"""Every colour that is not given as such; the benchmark tells none of them from another."""
RGB_DIGITS = 6

Look = Mapping[str, Element | None]
"""The font and the fill of a cell, or of a conditional format."""


def style_of(sheet: Sheet, at: Place, names: Iterable[str]) -> list[Any]:
    """How a cell looks, by the names of styles.

    Raises:
        Unreadable: The workbook's formats are damaged.
    """
    index = 0 if at in merged(sheet) else sheet.styles.get(at, 0)
    filled = at in sheet.filled and at not in merged(sheet)
    return read(Formats(sheet).look(index), names, filled=filled)


def looks(sheet: Sheet, names: list[str]) -> tuple[dict[Place, list[Any]], list[Any]]:
    """How every cell of a sheet looks, and its conditional formats.

    The benchmark works out which cells a condition meets; here formats are compared as they are
    written, with the cells that they are for.

    Raises:
        Unreadable: The workbook's formats are damaged, or too much is in the sheet.
    """
    covered = merged(sheet)
    every = [*sheet.styles, *covered]
    rows = max((row for row, _ in every), default=0)
    columns = max((column for _, column in every), default=0)
    if rows * columns > MOST_CELLS:
        raise Unreadable("This sheet is larger than any of the benchmark.")
    formats = Formats(sheet)
    known: dict[tuple[int, bool], list[Any]] = {}
    found: dict[Place, list[Any]] = {}
    for row in range(1, rows + 1):
        for column in range(1, columns + 1):
            at = (row, column)
            hidden = at in covered
            key = (0 if hidden else sheet.styles.get(at, 0), at in sheet.filled and not hidden)
            if key not in known:
                known[key] = read(formats.look(key[0]), names, filled=key[1])
            found[at] = known[key]
    return found, conditional(sheet, formats, names)


def conditional(sheet: Sheet, formats: "Formats", names: list[str]) -> list[Any]:
    """The conditional formats of a sheet, each with its cells, its condition and its look."""
    found: list[Any] = []
    for each in children(sheet.xml, "conditionalFormatting"):
        cells = sorted(map(area, each.get("sqref", "").split()))
        for rule in children(each, "cfRule"):
            formulas = ["".join(part.itertext()) for part in children(rule, "formula")]
            look = formats.different(number(rule, "dxfId")) if "dxfId" in rule.attrib else {}
            condition = [rule.get(name) for name in ("type", "operator")]
            found.append([cells, *condition, formulas, read(look, names, filled=True)])
    return sorted(found, key=repr)


def merged(sheet: Sheet) -> set[Place]:
    """The cells that are merged into another one, and show nothing of their own.

    Raises:
        Unreadable: There are more than any sheet of the benchmark has.
    """
    found: set[Place] = set()
    for each in children(sheet.xml, "mergeCells", "mergeCell"):
        top, left, bottom, right = area(each.get("ref", ""))
        if len(found) + (bottom - top + 1) * (right - left + 1) > MOST_CELLS:
            raise Unreadable("More cells are merged than any sheet of the benchmark has.")
        found.update(inside([each.get("ref", "")]))
        found.discard((top, left))
    return found


class Formats:
    """The formats of a workbook.

    Args:
        sheet: One of its sheets.
    """

    def __init__(self, sheet: Sheet) -> None:
        package = sheet.book.package
        xml = package.xml("xl/styles.xml") if "xl/styles.xml" in package.names else None
        self._fonts = list(children(xml, "fonts", "font"))
        self._fills = list(children(xml, "fills", "fill"))
        self._cells = list(children(xml, "cellXfs", "xf"))
        self._different = list(children(xml, "dxfs", "dxf"))

    def look(self, index: int) -> Look:
        """The font and the fill of a format of cells."""
        if index == 0 and not self._cells:
            return {}
        chosen = item(self._cells, index)
        return {
            "font": item(self._fonts, number(chosen, "fontId")) if self._fonts else None,
            "fill": item(self._fills, number(chosen, "fillId")) if self._fills else None,
        }

    def different(self, index: int) -> Look:
        """Those of a conditional format."""
        chosen = item(self._different, index)
        return {"font": child(chosen, "font"), "fill": child(chosen, "fill")}


def item(items: list[Element], index: int) -> Element:
    """One of several.

    Raises:
        Unreadable: There is none of that number.
    """
    if not 0 <= index < len(items):
        raise Unreadable(f"There is no format {index}.")
    return items[index]


def read(look: Look, names: Iterable[str], *, filled: bool) -> list[Any]:
    """A look by the names of styles; a cell in which nothing stands has no font."""
    font = look.get("font")
    return [
        FILL[name](look.get("fill")) if name in FILL else FONT[name](font) if filled else None
        for name in names
    ]


def has(name: str, font: Element | None) -> bool:
    """Whether a font is bold, or slanted."""
    found = child(font, name)
    return found is not None and found.get("val", "1") not in ("0", "false", "f")


def underlined(font: Element | None) -> str | None:
    """How a font is underlined; None where it is not."""
    found = child(font, "u")
    return None if found is None else found.get("val", "single")


def text(name: str, font: Element | None) -> str | None:
    """A font's name."""
    found = child(font, name)
    return None if found is None else found.get("val")


def size(name: str, font: Element | None) -> float | None:
    """A number that a font has.

    Raises:
        Unreadable: It is none.
    """
    found = text(name, font)
    try:
        return None if found is None else float(found)
    except ValueError:
        raise Unreadable(f"{name}={found!r:.40} is no number.") from None


def colour(element: Element | None) -> str | None:
    """A colour as eight digits; None where there is none."""
    if element is None:
        return None
    found = element.get("rgb")
    if found is None or any(name in element.attrib for name in ("indexed", "theme", "auto")):
        return OTHER
    return f"00{found}" if len(found) == RGB_DIGITS else found


def in_fill(name: str, fill: Element | None) -> str | None:
    """A colour of a pattern; one that is not named is plain."""
    if child(fill, "gradientFill") is not None:
        return None
    return colour(child(fill, "patternFill", name)) or PLAIN


def fill_type(fill: Element | None) -> str:
    """Whether a fill is a pattern or a gradient."""
    return "patternFill" if child(fill, "gradientFill") is None else "gradientFill"


FONT: dict[str, Callable[[Element | None], Any]] = {
    "font_name": partial(text, "name"),
    "font_family": partial(size, "family"),
    "font_size": partial(size, "sz"),
    "font_bold": partial(has, "b"),
    "font_italic": partial(has, "i"),
    "font_underline": underlined,
    "font_color": lambda font: colour(child(font, "color")),
}
FILL: dict[str, Callable[[Element | None], Any]] = {
    "bgcolor": partial(in_fill, "bgColor"),
    "fgcolor": partial(in_fill, "fgColor"),
    "fill_type": fill_type,
}
STYLES = frozenset(FONT) | frozenset(FILL)
"""The names that rows have for them."""

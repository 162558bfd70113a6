"""The charts of a sheet, by the names that rules have for what is compared of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from osworld_book import Sheet
from osworld_office import RELATIONS, Element, child, children, local

__all__ = ["CHARTS", "charts"]

AXES = {"xtitle": ("catAx", "dateAx"), "ytitle": ("valAx",), "ztitle": ("serAx",)}
POINTS = ("scatterChart", "bubbleChart")
"""Whose axes both have values: the first one is that of x."""


def charts(sheet: Sheet, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Each chart by the cells of its series, with what is compared of it.

    Raises:
        Unreadable: A chart is damaged.
    """
    wanted = list(names)
    found: dict[str, dict[str, Any]] = {}
    for space, anchor in drawn(sheet):
        plots = [each for each in child(space, "chart", "plotArea") or () if is_plot(each)]
        if plots:
            series = ";".join(map(cells, children(plots[0], "ser")))
            found[series] = {name: CHARTS[name](space, plots[0], anchor) for name in wanted}
    return found


def drawn(sheet: Sheet) -> Iterator[tuple[Element, Element]]:
    """Each chart that is drawn on a sheet, with what holds it in its place."""
    package, related = sheet.book.package, sheet.related
    for drawing in children(sheet.xml, "drawing"):
        part = related.get(drawing.get(f"{RELATIONS}id", ""), "")
        inner = package.related(part)
        for anchor in package.xml(part):
            frame = child(anchor, "graphicFrame", "graphic", "graphicData", "chart")
            if frame is not None:
                yield package.xml(inner.get(frame.get(f"{RELATIONS}id", ""), "")), anchor


def is_plot(element: Element) -> bool:
    """Whether a part of a plot's area is a plot, such as `barChart`."""
    return local(element).endswith("Chart")


def cells(series: Element) -> str:
    """The cells of a series: those of its values, and those of its categories."""
    values = child(series, "val", "numRef", "f")
    names = child(series, "cat", "numRef", "f")
    if names is None:
        names = child(series, "cat", "strRef", "f")
    return ",".join("" if each is None else each.text or "" for each in (values, names))


def title(element: Element | None) -> str | None:
    """The first words of a title; None where there is none."""
    paragraph = child(element, "title", "tx", "rich", "p")
    run = child(paragraph, "r", "t")
    return None if run is None else run.text


def axis_title(name: str, space: Element, plot: Element) -> str | None:
    """The title of one of a plot's axes."""
    area = child(space, "chart", "plotArea")
    by_id = {
        value(child(each, "axId")): each
        for each in (area if area is not None else ())
        if local(each).endswith("Ax")
    }
    used = [by_id.get(value(each)) for each in children(plot, "axId")]
    axes = [each for each in used if each is not None]
    if local(plot) in POINTS:
        index = {"xtitle": 0, "ytitle": 1}.get(name, len(axes))
        return title(axes[index]) if index < len(axes) else None
    return next((title(each) for each in reversed(axes) if local(each) in AXES[name]), None)


def value(element: Element | None, default: str | None = None) -> str | None:
    """What an element says."""
    return default if element is None else element.get("val", default)


def legend(space: Element) -> str | None:
    """Where the legend is; None where there is none."""
    found = child(space, "chart", "legend")
    return None if found is None else value(child(found, "legendPos"), "r")


def held(anchor: Element) -> list[str | None]:
    """How and where a chart is held; the benchmark looks at the last row twice."""
    corner = {name: child(anchor, "to", name) for name in ("row", "col")}
    first = child(anchor, "from", "col")
    row, column, begin = (
        None if each is None else each.text for each in (corner["row"], corner["col"], first)
    )
    return [anchor.get("editAs"), begin, row, column, row]


def direction(plot: Element) -> str | None:
    """Whether the bars of a plot lie or stand; None where it has no bars."""
    return value(child(plot, "barDir"), "col") if local(plot).startswith("bar") else None


CHARTS: dict[str, Callable[[Element, Element, Element], Any]] = {
    "title": lambda space, _plot, _anchor: title(child(space, "chart")),
    "legend": lambda space, _plot, _anchor: legend(space),
    "anchor": lambda _space, _plot, anchor: held(anchor),
    "type": lambda _space, plot, _anchor: local(plot),
    "direction": lambda _space, plot, _anchor: direction(plot),
    "xtitle": lambda space, plot, _anchor: axis_title("xtitle", space, plot),
    "ytitle": lambda space, plot, _anchor: axis_title("ytitle", space, plot),
    "ztitle": lambda space, plot, _anchor: axis_title("ztitle", space, plot),
}
"""By the names that rows have for them."""

"""`compare_table` on what a workbook has beside its values, by OSWorld's published rules."""

import sys
from collections.abc import Callable

import pytest
from office_files import CACHES, DRAWING, chart, formats, pivot, plot, titled, xlsx
from tables import each_of

from hud_mcp.loading.source import load_environments

Compare = Callable[..., float]
SHEETS = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
ROWS = [["month", "n"], ["May", 1], ["June", 2]]


@pytest.fixture(scope="module")
def compare() -> Compare:
    """The metric."""
    load_environments(["osworld"])
    return sys.modules["osworld_metrics"].METRICS["compare_table"]


def drawn(*plots: str, **more: str) -> bytes:
    """A workbook with a chart."""
    drawing = ["../drawings/drawing1.xml"]
    return xlsx(ROWS, after=DRAWING, related=drawing, parts=chart(*plots, **more))


BARS = plot("barChart", "S!$B$2:$B$3", "S!$A$2:$A$3", inner='<c:barDir val="bar"/>')
COLUMNS = BARS.replace('"bar"', '"col"')
LINE = plot("lineChart", "S!$B$2:$B$3", "S!$A$2:$A$3")
LEGEND = '<c:legend><c:legendPos val="b"/></c:legend>'


def axes(x: str, y: str) -> str:
    """An axis of categories and one of values, with their titles."""
    return (
        f'<c:catAx><c:axId val="1"/>{titled(x)}</c:catAx>'
        f'<c:valAx><c:axId val="2"/>{titled(y)}</c:valAx>'
    )


@each_of(
    ("mine", "props", "score"),
    [
        (drawn(BARS, title="Sales"), ["type", "title", "direction", "legend", "anchor"], 1.0),
        (drawn(BARS, title="sales"), ["type", "title"], 0.0),
        (drawn(BARS, title="sales"), ["type"], 1.0),
        (drawn(COLUMNS, title="Sales"), ["type", "direction"], 0.0),
        (drawn(COLUMNS, title="Sales"), ["type"], 1.0),
        (drawn(LINE, title="Sales"), ["type"], 0.0),
        (drawn(LINE, title="Sales"), ["title"], 1.0),
        (drawn(BARS, LINE, title="Sales"), ["type", "title"], 1.0),
        (drawn(plot("barChart", "S!$B$2:$B$9", "S!$A$2:$A$3"), title="Sales"), ["title"], 0.0),
        (drawn(BARS, title="Sales", legend=LEGEND), ["legend"], 0.0),
        (drawn(BARS, title="Sales", axes=axes("Month", "")), ["xtitle"], 0.0),
        (drawn(BARS, title="Sales", axes=axes("Month", "")), ["ytitle"], 1.0),
        (xlsx(ROWS), ["type"], 0.0),
        (drawn(BARS, title="Sales").replace(b"chart3", b"chart4"), ["type"], 0.0),
    ],
)  # fmt: skip
def test_charts_of_the_same_cells_are_alike_in_what_is_named(
    compare: Compare, mine: bytes, props: list[str], score: float
) -> None:
    """A chart counts by its first plot, and one of other cells is another one."""
    rule = {"type": "chart", "chart_props": props, **SHEETS}
    assert compare(mine, drawn(BARS, title="Sales"), rules=[rule]) == score


ITEMS = '<item x="0"/><item x="1"/><item t="default"/>'
SUM = '<dataFields><dataField name="Sum" fld="2"/></dataFields>'
BY_ROW = '<rowFields><field x="1"/></rowFields>'


def pivoted(
    cells: str = "A1:C9", fields: tuple[str, ...] = ("", ITEMS, ""), inner: str = ""
) -> bytes:
    """A workbook with a pivot table."""
    parts = pivot(cells, fields, inner or BY_ROW + SUM)
    return xlsx(ROWS, book=CACHES, related=["../pivotTables/p1.xml"], parts=parts)


@each_of(
    ("mine", "score"),
    [
        (pivoted(), 1.0),
        (pivoted(inner=BY_ROW + SUM.replace("Sum", "Total")), 1.0),
        (pivoted("B1:C9", (ITEMS, ""), BY_ROW.replace("1", "0") + SUM.replace("2", "1")), 1.0),
        (pivoted(inner=BY_ROW + SUM.replace('"/>', '" subtotal="count"/>')), 0.0),
        (pivoted(inner=BY_ROW + SUM.replace('"/>', '" showDataAs="percentOfTotal"/>')), 0.0),
        (pivoted(inner=BY_ROW.replace("row", "col") + SUM), 0.0),
        (pivoted(inner=f'{BY_ROW}{SUM}<pageFields><pageField fld="1"/></pageFields>'), 0.0),
        (pivoted(fields=("", ITEMS.replace('x="1"', 'x="1" h="1"'), "")), 0.0),
        (pivoted("A1:C8"), 0.0),
        (xlsx(ROWS), 0.0),
    ],
)  # fmt: skip
def test_pivot_tables_of_the_same_cells_have_the_same_fields(
    compare: Compare, mine: bytes, score: float
) -> None:
    """Columns at the edges of which a table has no items do not count."""
    props = ["col_fields", "filter", "row_fields", "data_fields"]
    rule = {"type": "pivot_table", "pivot_props": props, **SHEETS}
    assert compare(mine, pivoted(), rules=[rule]) == score


BOLD = '<b/><color rgb="FFFFFFFF"/><name val="Arial"/>'
SOLID = '<fgColor rgb="FF0000FF"/><bgColor rgb="FF0000FF"/>'
BLUE = f'<patternFill patternType="solid">{SOLID}</patternFill>'
RED = BLUE.replace("FF0000FF", "FFFF0000")
PARTS = formats(['<color theme="1"/>', BOLD], ["<patternFill/>", BLUE])


def painted(*, fill: str = BLUE, font: str = BOLD, **looks: int) -> bytes:
    """A workbook whose cells have formats."""
    parts = formats(['<color theme="1"/>', font], ["<patternFill/>", fill])
    return xlsx(ROWS, looks=looks, parts=parts)


@each_of(
    ("mine", "props", "score"),
    [
        (painted(A1=1), ["bgcolor", "font_color", "font_bold"], 1.0),
        (painted(A1=1, B2=1), ["bgcolor"], 0.0),
        (painted(), ["bgcolor"], 0.0),
        (painted(A1=1, fill=RED), ["bgcolor"], 0.0),
        (painted(A1=1, fill=RED), ["font_color", "font_name"], 1.0),
        (painted(A1=1, font='<color theme="4"/>'), ["font_color"], 0.0),
        (painted(A1=1, font=BOLD.replace("<b/>", '<b val="0"/>')), ["font_bold"], 0.0),
        (painted(A1=1, font=BOLD + "<u/>"), ["font_underline"], 0.0),
        (painted(A1=1, fill=BLUE.replace("pattern", "gradient")), ["fill_type"], 0.0),
        (painted(A1=9), ["bgcolor"], 0.0),
        (xlsx([*ROWS, [None, None]], looks={"A1": 1}, parts=PARTS), ["font_color"], 0.0),
    ],
)  # fmt: skip
def test_every_cell_looks_the_same_in_what_is_named(
    compare: Compare, mine: bytes, props: list[str], score: float
) -> None:
    """Colours by themes are all alike, and a sheet with more cells is another one."""
    rule = {"type": "style", "props": props, **SHEETS}
    assert compare(mine, painted(A1=1), rules=[rule]) == score


def test_conditional_formats_are_compared_as_they_are_written(compare: Compare) -> None:
    """With their cells, their condition and their colours."""

    def conditional(formula: str, dxf: str) -> bytes:
        rule = f'<cfRule type="expression" dxfId="0"><formula>{formula}</formula></cfRule>'
        after = f'<conditionalFormatting sqref="A1:B9">{rule}</conditionalFormatting>'
        fill = f"<fill>{dxf}</fill>"
        return xlsx(ROWS, after=after, parts=formats([""], ["<patternFill/>"], fill))

    rule = {"type": "style", "props": ["bgcolor"], **SHEETS}
    wanted = conditional("B1=MAX($B$2:$B$3)", BLUE)
    assert compare(conditional("B1=MAX($B$2:$B$3)", BLUE), wanted, rules=[rule]) == 1.0
    assert compare(conditional("B1=MIN($B$2:$B$3)", BLUE), wanted, rules=[rule]) == 0.0
    assert compare(conditional("B1=MAX($B$2:$B$3)", RED), wanted, rules=[rule]) == 0.0


@each_of(
    ("place", "merged", "score"),
    [("A1", "A1:B1", 1.0), ("B1", "", 1.0), ("B1", "A1:B1", 0.0), ("A2", "", 0.0), ("Z9", "", 0.0)],
)
def test_a_cell_is_checked_by_its_value_and_its_style(
    compare: Compare, place: str, merged: str, score: float
) -> None:
    """A cell that is merged into another one has neither."""
    after = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    mine = xlsx([["Profile", "Profile"], ["Profile"]], looks={"A1": 1, "B1": 1}, after=after,
                parts=PARTS)  # fmt: skip
    props = {
        "bgcolor": {"method": "eq", "ref": "FF0000FF"},
        "font_bold": {"method": "eq", "ref": True},
        "font_color": {"method": "eq", "ref": "FFFFFFFF"},
        **({} if merged and place != "A1" else {"value": {"method": "eq", "ref": "Profile"}}),
    }
    rule = {"type": "check_cell", "sheet_idx": 0, "coordinate": place, "props": props}
    assert compare(mine, None, rules=[rule]) == score


@each_of(
    ("ranges", "formula", "more", "score"),
    [
        ("D2:D29", '"Pass,Fail,Held"', "", 1.0),
        ("D2:D1048576", '"Held,Fail,Pass"', "", 1.0),
        ("D2:D28", '"Pass,Fail,Held"', "", 0.0),
        ("D1:D29", '"Pass,Fail,Held"', "", 0.0),
        ("D2:D29", '"Pass,Fail"', "", 0.0),
        ("D2:D29", '"Pass,Fail,Held"', '<dataValidation type="whole" sqref="A1"/>', 0.0),
    ],
)
def test_checks_of_what_is_entered_are_the_wanted_ones(
    compare: Compare, ranges: str, formula: str, more: str, score: float
) -> None:
    """Each is for cells between two ranges, and allows the same set; another one is too much."""
    inner = f"<formula1>{formula}</formula1>"
    check = f'<dataValidation type="list" sqref="{ranges}">{inner}</dataValidation>'
    mine = xlsx(ROWS, after=f"<dataValidations>{check}{more}</dataValidations>")
    wanted = {
        "formula1": {"method": "str_set_eq", "ref": ["Pass", "Fail", "Held"]},
        "ranges": {"method": "spreadsheet_range", "ref": ["D2:D29", "D2:D1048576"]},
        "type": {"method": "eq", "ref": "list"},
    }
    rule = {"type": "data_validation", "sheet_idx": 0, "dv_props": [wanted]}
    assert compare(mine, None, rules=[rule]) == score


@each_of(
    ("lines", "ignored", "score"),
    [
        ("month,n\nMay,1.00\n", False, 1.0),
        (" month,n\nMay,1.00\n\n", False, 1.0),
        ("month,n\nMay,1.0\n", False, 0.0),
        ("Month,n\nmay,1.00", False, 0.0),
        ("Month,n\nmay,1.00", True, 1.0),
        (None, False, 0.0),
    ],
)
def test_a_sheet_prints_as_the_file_beside_it_says(
    compare: Compare, lines: str | None, *, ignored: bool, score: float
) -> None:
    """The file is named by the workbook and by the sheet."""
    beside = sys.modules["osworld_office"].Beside
    mine = {"mine.xlsx": xlsx(ROWS)}
    if lines is not None:
        mine["mine-Sheet1.csv"] = lines.encode()
    wanted = {"gold.xlsx": xlsx(ROWS), "gold-Sheet1.csv": b"month,n\nMay,1.00\n"}
    rule = {"type": "sheet_print", "ignore_case": ignored, **SHEETS}
    both = beside.of("mine.xlsx", mine), beside.of("gold.xlsx", wanted)
    assert compare(*both, rules=[rule]) == score


def test_columns_are_alike_in_what_is_named(compare: Compare) -> None:
    """A group of columns counts by its first one."""
    columns = '<cols><col min="2" max="3" width="20" hidden="1"/></cols>'
    mine, wanted = xlsx(ROWS, before=columns), xlsx(ROWS, before=columns.replace("20", "9"))
    for props, score in ((["hidden"], 1.0), (["hidden", "width"], 0.0)):
        rule = {"type": "col_props", "props": props, **SHEETS}
        assert compare(mine, wanted, rules=[rule]) == score

"""OSWorld's metrics of documents, on documents made here: by its published rules, and no wider."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from office_files import odt, pdf, pptx, slide, text_box, word, xlsx, zipped
from tables import each_of

from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.sets import osworld

DATA = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}
ROWS = [["name", "n", "x"], ["Ada", 1, 1.00001], ["Bo", 2.5, None]]


@pytest.fixture(scope="module")
def metrics() -> dict[str, Callable[..., float]]:
    """The metrics by their names."""
    load_environments(["osworld"])
    return sys.modules["osworld_metrics"].METRICS


Metrics = dict[str, Callable[..., float]]


def test_every_rule_of_a_table_that_rows_may_name_is_there(metrics: Metrics) -> None:
    """What the importer admits is what the environment has."""
    table = sys.modules["osworld_table"]
    assert set(table.RULES) == set(osworld.TABLE_RULES)
    assert {name: set(props) for name, props in table.PROPS.items()} == osworld.TABLE_PROPS


@each_of(
    ("rows", "score"),
    [
        (ROWS, 1.0),
        ([["name", "n", "x"], ["Ada", 1, 1.00004], ["Bo", 2.5, "NA"]], 1.0),
        ([["name", "n", "x"], ["Ada", 1, 1.001], ["Bo", 2.5, None]], 0.0),
        ([["name", "n", "x"], ["=Ada", 1.0, 1.00001], ["Bo", 2.5, None]], 1.0),
        ([["name", "m", "x"], *ROWS[1:]], 0.0),
        ([*ROWS, ["Cy", 3, None]], 0.0),
        ([["name", "n", "x"], ["Ada", True, 1.00001], ["Bo", 2.5, None]], 0.0),
    ],
)
def test_sheets_are_the_same_by_their_values(
    metrics: Metrics, rows: list[list[Any]], score: float
) -> None:
    """Numbers to four decimals; what is empty, or says so, is the same."""
    assert metrics["compare_table"](xlsx(rows), xlsx(ROWS), rules=[DATA]) == score


@each_of(
    ("rule", "score"),
    [
        ({"type": "sheet_name"}, 0.0),
        ({"type": "sheet_data", "sheet_idx0": "RNMine", "sheet_idx1": "ENSheet1"}, 1.0),
        ({"type": "sheet_data", "sheet_idx0": "RNNone", "sheet_idx1": "ENSheet1"}, 0.0),
        ({"type": "sheet_data", "sheet_idx0": 3, "sheet_idx1": "EI0"}, 0.0),
        ({"type": "check_cell", "sheet_idx": 0, "coordinate": "C2",
          "props": {"value": {"method": "approx:0.001", "ref": 1}}}, 1.0),
        ({"type": "check_cell", "sheet_idx": 0, "coordinate": "A2",
          "props": {"value": {"method": "eq", "ref": "Bo"}}}, 0.0),
        ({"type": "check_cell", "sheet_idx": 0, "coordinate": "C3",
          "props": {"value": {"method": "approx:1", "ref": 0}}}, 0.0),
        ({"type": "zoom", "sheet_idx": 0, "method": "lt", "ref": 151}, 1.0),
        ({"type": "zoom", "sheet_idx": "EI0", "method": "eq", "ref": 100}, 1.0),
        ({"type": "freeze", "sheet_idx0": 0, "sheet_idx1": "EI0"}, 0.0),
        ({"type": "freeze", "sheet_idx0": 0, "sheet_idx1": "RI0"}, 1.0),
        ({"type": "row_props", "sheet_idx0": 0, "sheet_idx1": "EI0", "props": ["hidden"]}, 0.0),
        ({"type": "sheet_fuzzy", "sheet_idx0": 0, "sheet_idx1": "EI0", "rules": [
            {"range": ["A1:B2"], "type": "exact_match"}, {"range": ["C3"], "type": "includes"}]},
         1.0),
    ],
)  # fmt: skip
def test_a_rule_of_a_table_looks_at_what_it_names(
    metrics: Metrics, rule: dict[str, Any], score: float
) -> None:
    """A sheet is named by its place or its name, in the result or in what is expected."""
    view = '<sheetView zoomScale="150"><pane topLeftCell="B2" state="frozen"/></sheetView>'
    mine = xlsx(ROWS, name="Mine", view=view, hidden=2)
    assert metrics["compare_table"](mine, xlsx(ROWS), rules=[rule]) == score


@each_of(
    ("rule", "score"),
    [
        ({"type": "exact_match"}, 0.0),
        ({"type": "exact_match", "ignore_case": True, "ignore_chars": " -",
          "normalization": [["Street", "St"]]}, 1.0),
        ({"type": "includes", "trim_leadings": "1 "}, 0.0),
        ({"type": "fuzzy_match", "threshold": 60}, 1.0),
        ({"type": "fuzzy_match", "threshold": 95}, 0.0),
    ],
)  # fmt: skip
def test_texts_of_a_range_are_alike_as_far_as_a_rule_says(
    metrics: Metrics, rule: dict[str, Any], score: float
) -> None:
    """What does not count is left out first."""
    rules = [{**DATA, "type": "sheet_fuzzy", "rules": [{"range": ["A1"], **rule}]}]
    both = xlsx([["1 high-Street"]]), xlsx([["1 High St"]])
    assert metrics["compare_table"](*both, rules=rules) == score


@each_of(
    ("mine", "wanted", "options", "score"),
    [
        (word("a  b", "c"), word("a b", "c", table="x"), {}, 1.0),
        (word("a  b"), word("a b"), {"ignore_blanks": False}, 0.0),
        (word("a\tb"), word("a\tb"), {"ignore_blanks": False}, 1.0),
        (word("b", "a"), word("a", "b"), {}, 0.0),
        (word("B", "a"), word("a", "b"), {"ignore_order": True, "ignore_case": True}, 0.0),
        (word("B", "A"), word("b", "a"), {"ignore_case": True}, 1.0),
        (word("B", "A"), word("A", "B"), {"ignore_order": True}, 1.0),
        (word("hello wurld"), word("hello world"), {"content_only": True}, 10 / 11),
        (odt("a *b* c"), odt("a b c"), {}, 1.0),
        (odt("a b"), word("a b"), {}, 0.0),
        (b"no document", word("a"), {}, 0.0),
    ],
)
def test_documents_of_text_are_compared_by_paragraphs(
    metrics: Metrics, mine: bytes, wanted: bytes, options: dict[str, Any], score: float
) -> None:
    """Blanks, case and order count as a row says."""
    assert metrics["compare_docx_files"](mine, wanted, **options) == pytest.approx(score)


def shown(*shapes: str, notes: str = "") -> bytes:
    """A presentation whose second slide has the shapes."""
    return pptx(slide(text_box("One")), slide(*shapes), notes=notes)


PLAIN = shown(text_box("Two"))
BOLD = shown(text_box("Two", font='b="1"/>'))
RED = '><a:solidFill><a:srgbClr val="FF0000"/></a:solidFill></a:rPr>'


@each_of(
    ("mine", "options", "score"),
    [
        (PLAIN, {}, 1.0),
        (shown(text_box("Two "), text_box("More")), {}, 0.0),
        (shown(text_box("Two"), text_box("More")), {"examine_bullets": False}, 1.0),
        (shown(text_box("Too")), {}, 0.0),
        (shown(text_box("Too")), {"examine_text": False, "examine_bullets": False}, 1.0),
        (BOLD, {}, 0.0),
        (BOLD, {"examine_font_bold": False}, 1.0),
        (shown(text_box("Two", box=(1, 9, 3, 4))), {}, 0.0),
        (shown(text_box("Two", box=(1, 9, 3, 4))), {"examine_shape": False}, 1.0),
        (shown(text_box("Two", paragraph='<a:pPr algn="r"/>')), {"examine_bullets": False}, 0.0),
        (shown(text_box("Two", paragraph='<a:pPr lvl="1"/>')), {"examine_bullets": False}, 0.0),
        (shown(text_box("Two", paragraph='<a:pPr><a:buChar char="-"/></a:pPr>')), {}, 0.0),
        (shown(text_box("Two", font=RED)), {}, 1.0),
        (shown(text_box("Two"), notes="Say it."), {}, 0.0),
        (shown(text_box("Two"), notes="Say it."), {"examine_note": False}, 1.0),
        (pptx(slide(text_box("One"))), {}, 0.0),
        (pptx(slide(text_box("One"))), {"examine_number_of_slides": False}, 1.0),
        (b"no document", {}, 0.0),
    ],
)
def test_presentations_are_compared_by_what_is_examined(
    metrics: Metrics, mine: bytes, options: dict[str, Any], score: float
) -> None:
    """By default nearly everything; shapes in pairs, and colours where both are given."""
    assert metrics["compare_pptx_files"](mine, PLAIN, **options) == score


def test_a_rule_that_wants_something_moved_wants_it_beyond_its_place(metrics: Metrics) -> None:
    """The table of the third slide has to be lower than it was, and nothing else may move."""

    def deck(top: int, left: int = 1) -> bytes:
        frame = (
            f'<p:graphicFrame><p:xfrm><a:off x="1" y="{top}"/><a:ext cx="3" cy="4"/></p:xfrm>'
            "<a:graphic><a:graphicData><a:tbl/></a:graphicData></a:graphic></p:graphicFrame>"
        )
        first = slide(text_box("One", box=(left, 2, 3, 4)))
        return pptx(first, slide(text_box("Two")), slide(frame))

    options = {"examine_shape": False, "examine_table_bottom_position": True}
    for mine, score in ((deck(3_700_000), 1.0), (deck(2), 0.0), (deck(9), 0.0),
                        (deck(3_700_000, left=5), 0.0)):  # fmt: skip
        assert metrics["compare_pptx_files"](mine, deck(2), **options) == score


def test_a_document_with_too_much_in_it_is_none(metrics: Metrics) -> None:
    """Nor is one that declares entities, or one whose sheet is wider than any; each gets 0."""
    bomb = zipped(word__document_dot_xml="<w/>" + " " * 70_000_000)
    entities = '<!DOCTYPE d [<!ENTITY a "b">]><w:document xmlns:w="w">&a;</w:document>'
    wide = xlsx([["a"]]).replace(b"sheet7", b"sheet8")
    assert metrics["compare_docx_files"](bomb, word("a")) == 0.0
    assert metrics["compare_docx_files"](zipped(word__document_dot_xml=entities), word("a")) == 0.0
    assert metrics["compare_table"](wide, xlsx([["a"]]), rules=[DATA]) == 0.0
    with pytest.raises(ValueError, match="no document"):
        metrics["compare_table"](xlsx([["a"]]), b"not theirs", rules=[DATA])


@pytest.mark.long
def test_pdfs_are_as_like_as_their_texts(metrics: Metrics) -> None:
    """What is none, or is not there, counts 0; of several the mean counts."""
    if find_spec("pypdf") is None:
        pytest.skip("not on this machine: pypdf, which reads them")
    compare = metrics["compare_pdfs"]
    assert compare(pdf("hello wurld"), pdf("hello world")) == pytest.approx(10 / 11)
    assert compare(b"%PDF-1.4 broken", pdf("hello")) == 0.0
    assert compare([pdf("one"), None], [pdf("one"), pdf("two")]) == 0.5


@each_of(
    ("result", "score"),
    [
        ({"url": "https://WWW.shop.example/"}, 1.0),
        ("https://shop.example", 1.0),
        ({"url": "http://shop.example"}, 0.0),
        ({"url": "https://shop.example/a"}, 0.0),
        (None, 0.0),
    ],
)
def test_a_tab_is_the_expected_one_by_its_address(
    metrics: Metrics, result: object, score: float
) -> None:
    """`www.`, the case of the host and a lone slash count nothing."""
    rules = {"type": "url", "url": "https://www.shop.example"}
    assert metrics["is_expected_active_tab"](result, rules) == score

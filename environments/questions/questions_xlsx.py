"""A small writer of XLSX: sheets with merged cells, hidden rows, percentages and dates.

Format: ECMA-376, part 1, section 18. Texts are inline, and no formula is written.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from xml.sax.saxutils import escape, quoteattr

__all__ = ["HEADING", "PERCENT", "PLAIN", "Cell", "Sheet", "write_xlsx", "zip_files"]

PLAIN, HEADING, PERCENT, DAY = range(4)
"""Styles of cells, by their place in the table of styles."""

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

_STYLES = f"""{_XML}<styleSheet xmlns="{_MAIN}">\
<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>\
<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>\
<fills count="3"><fill><patternFill patternType="none"/></fill>\
<fill><patternFill patternType="gray125"/></fill>\
<fill><patternFill patternType="solid"><fgColor rgb="FFDDE6F0"/></patternFill></fill></fills>\
<borders count="1"><border/></borders>\
<cellStyleXfs count="1"><xf/></cellStyleXfs>\
<cellXfs count="4"><xf numFmtId="0" xfId="0"/>\
<xf numFmtId="0" fontId="1" fillId="2" xfId="0" applyFont="1" applyFill="1" applyAlignment="1">\
<alignment horizontal="center" vertical="center"/></xf>\
<xf numFmtId="10" xfId="0" applyNumberFormat="1"/>\
<xf numFmtId="14" xfId="0" applyNumberFormat="1"/></cellXfs>\
<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>\
</styleSheet>"""


@dataclass(frozen=True)
class Cell:
    """A value with a style."""

    value: str | float | date
    style: int = PLAIN


@dataclass
class Sheet:
    """One sheet: rows of cells from A1 on, where None leaves a cell out."""

    name: str
    rows: list[list[Cell | None]]
    merged: list[str] = field(default_factory=list)
    hidden: bool = False
    hidden_rows: frozenset[int] = frozenset()

    def xml(self) -> str:
        """The sheet's part of the file."""
        rows = "".join(self._row(number, row) for number, row in enumerate(self.rows, 1))
        merged = "".join(f'<mergeCell ref="{each}"/>' for each in self.merged)
        if merged:
            merged = f'<mergeCells count="{len(self.merged)}">{merged}</mergeCells>'
        widths = '<cols><col min="1" max="12" width="15" customWidth="1"/></cols>'
        data = f"<sheetData>{rows}</sheetData>"
        return f'{_XML}<worksheet xmlns="{_MAIN}">{widths}{data}{merged}</worksheet>'

    def _row(self, number: int, row: list[Cell | None]) -> str:
        hidden = ' hidden="1"' if number in self.hidden_rows else ""
        cells = (_cell(f"{chr(65 + i)}{number}", each) for i, each in enumerate(row) if each)
        return f'<row r="{number}"{hidden}>{"".join(cells)}</row>'


def _cell(place: str, cell: Cell) -> str:
    value = cell.value
    begin = f'<c r="{place}" s="{cell.style}"'
    if isinstance(value, str):
        return f'{begin} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, date):
        value = value.toordinal() - date(1899, 12, 30).toordinal()
    return f"{begin}><v>{value}</v></c>"


def write_xlsx(sheets: list[Sheet]) -> bytes:
    """A whole workbook."""
    parts = {"xl/styles.xml": _STYLES}
    listed = types = relations = ""
    for n, sheet in enumerate(sheets, 1):
        parts[f"xl/worksheets/sheet{n}.xml"] = sheet.xml()
        state = ' state="hidden"' if sheet.hidden else ""
        listed += f'<sheet name={quoteattr(sheet.name)} sheetId="{n}"{state} r:id="rId{n}"/>'
        path = f"worksheets/sheet{n}.xml"
        types += f'<Override PartName="/xl/{path}" ContentType="{_TYPE}.worksheet+xml"/>'
        relations += _relation(n, "worksheet", path)
    relations += _relation(len(sheets) + 1, "styles", "styles.xml")
    parts["xl/workbook.xml"] = (
        f'{_XML}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATION}">'
        f"<sheets>{listed}</sheets></workbook>"
    )
    parts["xl/_rels/workbook.xml.rels"] = _relations(relations)
    parts["_rels/.rels"] = _relations(_relation(1, "officeDocument", "xl/workbook.xml"))
    parts["[Content_Types].xml"] = (
        f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>{types}</Types>'
    )
    return zip_files({name: text.encode() for name, text in sorted(parts.items())})


def _relation(number: int, kind: str, target: str) -> str:
    return f'<Relationship Id="rId{number}" Type="{_RELATION}/{kind}" Target="{target}"/>'


def _relations(listed: str) -> str:
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive whose bytes do not depend on the time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(
                zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED
            )
    return out.getvalue()

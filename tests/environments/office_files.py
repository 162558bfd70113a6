"""Documents as small as they can be, made of the parts that a test says."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = [
    "CACHES", "DRAWING", "chart", "formats", "odt", "pdf", "pivot", "plot", "pptx", "slide",
    "text_box", "titled", "word", "xlsx", "zipped",
]  # fmt: skip

A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
C = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
REL = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'

DRAWING = '<drawing r:id="rId1"/>'
CACHES = '<pivotCaches><pivotCache cacheId="7" r:id="rId2"/></pivotCaches>'

Value = str | float | bool | None


def zipped(**parts: str) -> bytes:
    """A zip of texts, by their names; `__` is a slash, and `_dot_` a dot."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return data.getvalue()


def relations(*targets: str) -> str:
    """The parts that a part refers to, as `rId1` and so on."""
    each = (f'<Relationship Id="rId{n}" Target="{t}"/>' for n, t in enumerate(targets, 1))
    return f"<Relationships {REL}>{''.join(each)}</Relationships>"


def xlsx(
    rows: Sequence[Sequence[Value]], *, name: str = "Sheet1", view: str = "", hidden: int = 0,
    before: str = "", after: str = "", looks: Mapping[str, int] | None = None, book: str = "",
    related: Sequence[str] = (), parts: Mapping[str, str] | None = None,
) -> bytes:  # fmt: skip
    """A workbook of one sheet; texts are shared, and a text that begins with `=` is a result.

    Of cells in `looks` the format is known by its number. The sheet's cells stand between `before`
    and `after`. `book` is added to the workbook, and the sheet refers to the parts in `related`.
    """
    texts: list[str] = []
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        cells = "".join(
            cell(f"{'ABCDEFGH'[at]}{number}", value, texts) for at, value in enumerate(row)
        )
        is_hidden = ' hidden="1"' if number == hidden else ""
        lines.append(f'<row r="{number}"{is_hidden}>{cells}</row>')
    views = f"<sheetViews>{view}</sheetViews>" if view else ""
    shared = "".join(f"<si><r><t>{escape(text)}</t></r></si>" for text in texts)
    sheets = f'<sheets><sheet name="{name}" sheetId="1" r:id="rId1"/></sheets>'
    data = "".join(lines)
    for place, look in (looks or {}).items():
        data = data.replace(f'<c r="{place}"', f'<c r="{place}" s="{look}"')
    return zipped(
        xl__workbook_dot_xml=f"<workbook {S} {R}>{sheets}{book}</workbook>",
        xl___rels__workbook_dot_xml_dot_rels=relations(
            "worksheets/sheet7.xml", "pivotCache/c1.xml"
        ),
        xl__sharedStrings_dot_xml=f"<sst {S}>{shared}</sst>",
        xl__worksheets__sheet7_dot_xml=f"<worksheet {S} {R}>{views}{before}<sheetData>{data}"
        f"</sheetData>{after}</worksheet>",
        xl__worksheets___rels__sheet7_dot_xml_dot_rels=relations(*related),
        **(parts or {}),
    )


def chart(*plots: str, title: str = "", legend: str = "", axes: str = "") -> dict[str, str]:
    """The parts of a chart; a sheet refers to `../drawings/drawing1.xml`, and has `DRAWING`."""
    held = (
        '<d:twoCellAnchor xmlns:d="d" editAs="oneCell"><d:from><d:col>1</d:col></d:from><d:to>'
        "<d:col>5</d:col><d:row>9</d:row></d:to><d:graphicFrame><a:graphic><a:graphicData>"
        '<c:chart r:id="rId1"/></a:graphicData></a:graphic></d:graphicFrame></d:twoCellAnchor>'
    )
    space = f"{titled(title)}<c:plotArea>{''.join(plots)}{axes}</c:plotArea>{legend}"
    return {
        "xl__drawings__drawing1_dot_xml": f"<d:wsDr xmlns:d='d' {A} {R} {C}>{held}</d:wsDr>",
        "xl__drawings___rels__drawing1_dot_xml_dot_rels": relations("../charts/chart3.xml"),
        "xl__charts__chart3_dot_xml": f"<c:chartSpace {C} {A}><c:chart>{space}</c:chart>"
        "</c:chartSpace>",
    }


def titled(text: str) -> str:
    """The title of a chart or of an axis; none where there is no text."""
    run = f"<a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p>"
    return f"<c:title><c:tx><c:rich>{run}</c:rich></c:tx></c:title>" if text else ""


def plot(kind: str, values: str, names: str = "", *, inner: str = "") -> str:
    """A plot of one series, on the axes 1 and 2."""
    cells = f"<c:val><c:numRef><c:f>{values}</c:f></c:numRef></c:val>"
    if names:
        cells = f"<c:cat><c:strRef><c:f>{names}</c:f></c:strRef></c:cat>{cells}"
    axes = '<c:axId val="1"/><c:axId val="2"/>'
    return f"<c:{kind}>{inner}<c:ser>{cells}</c:ser>{axes}</c:{kind}>"


def pivot(cells: str, fields: Sequence[str], inner: str) -> dict[str, str]:
    """The parts of a pivot table; a sheet refers to `../pivotTables/p1.xml`; see `CACHES`."""
    items = "".join(f"<pivotField><items>{each}</items></pivotField>" for each in fields)
    table = f'<pivotFields>{items}</pivotFields><location ref="A1:B3"/>{inner}'
    place = f'<worksheetSource ref="{cells}" sheet="Sheet1"/>'
    return {
        "xl__pivotTables__p1_dot_xml": f'<pivotTableDefinition {S} name="P" cacheId="7">{table}'
        "</pivotTableDefinition>",
        "xl__pivotCache__c1_dot_xml": f'<pivotCacheDefinition {S}><cacheSource type="worksheet">'
        f"{place}</cacheSource></pivotCacheDefinition>",
    }


def formats(fonts: Sequence[str], fills: Sequence[str], dxf: str = "") -> dict[str, str]:
    """The formats of a workbook: of each number the font, the fill, and both of that number."""
    cells = "".join(f'<xf fontId="{n}" fillId="{n}"/>' for n in range(len(fonts)))
    each = "".join(f"<font>{font}</font>" for font in fonts)
    inner = "".join(f"<fill>{fill}</fill>" for fill in fills)
    return {
        "xl__styles_dot_xml": f"<styleSheet {S}><fonts>{each}</fonts><fills>{inner}</fills>"
        f"<cellXfs>{cells}</cellXfs><dxfs><dxf>{dxf}</dxf></dxfs></styleSheet>"
    }


def cell(place: str, value: Value, texts: list[str]) -> str:
    """A cell; its text is put to the shared ones."""
    if value is None:
        return f'<c r="{place}"/>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str) and value.startswith("="):
        return f'<c r="{place}" t="str"><f>A1</f><v>{escape(value[1:])}</v></c>'
    if isinstance(value, str):
        texts.append(value)
        return f'<c r="{place}" t="s"><v>{len(texts) - 1}</v></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def word(*paragraphs: str, table: str = "") -> bytes:
    """A document of Word; a tab in a paragraph is one."""

    def paragraph(text: str) -> str:
        runs = "</w:t><w:tab/><w:t>".join(map(escape, text.split("\t")))
        return f"<w:p><w:r><w:t>{runs}</w:t></w:r></w:p>"

    inner = f"<w:tbl><w:tr><w:tc>{paragraph(table)}</w:tc></w:tr></w:tbl>" if table else ""
    body = f"<w:body>{''.join(map(paragraph, paragraphs))}{inner}</w:body>"
    return zipped(word__document_dot_xml=f"<w:document {W}>{body}</w:document>")


def odt(*paragraphs: str) -> bytes:
    """A document of OpenDocument; a word in stars is in a span."""

    def paragraph(text: str) -> str:
        before, _, rest = text.partition("*")
        inside, _, after = rest.partition("*")
        return f"<t:p>{before}<t:span>{inside}</t:span>{after}</t:p>"

    body = "".join(map(paragraph, paragraphs))
    return zipped(content_dot_xml=f'<o:c xmlns:o="o" xmlns:t="text">{body}</o:c>')


def text_box(
    text: str, *, box: Sequence[int] = (1, 2, 3, 4), font: str = "", paragraph: str = ""
) -> str:
    """A shape with a paragraph of one run."""
    x, y, cx, cy = box
    place = f'<a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{cx}" cy="{cy}"/></a:xfrm>'
    run = f"<a:r><a:rPr {font}<a:t>{escape(text)}</a:t></a:r>" if font else (
        f"<a:r><a:t>{escape(text)}</a:t></a:r>"
    )  # fmt: skip
    return f"<p:sp><p:spPr>{place}</p:spPr><p:txBody><a:p>{paragraph}{run}</a:p></p:txBody></p:sp>"


def slide(*shapes: str) -> str:
    """A slide of shapes."""
    tree = f"<p:spTree>{''.join(shapes)}</p:spTree>"
    return f"<p:sld {P} {A}><p:cSld>{tree}</p:cSld></p:sld>"


def pptx(*slides: str, notes: str = "") -> bytes:
    """A presentation; the notes are those of its first slide."""
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    parts = {f"ppt__slides__slide{n}_dot_xml": text for n, text in enumerate(slides, 1)}
    if notes:
        shape = text_box(notes).replace(
            "<p:sp>", '<p:sp><p:nvSpPr><p:nvPr><p:ph type="body"/></p:nvPr></p:nvSpPr>'
        )
        parts["ppt__notesSlides__notesSlide1_dot_xml"] = slide(shape)
        parts["ppt__slides___rels__slide1_dot_xml_dot_rels"] = relations(
            "../notesSlides/notesSlide1.xml"
        )
    return zipped(
        ppt__presentation_dot_xml=f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst>"
        "</p:presentation>",
        ppt___rels__presentation_dot_xml_dot_rels=relations(
            *(f"slides/slide{n}.xml" for n in range(1, len(slides) + 1))
        ),
        **parts,
    )


def pdf(text: str) -> bytes:
    """A PDF of one page with one line."""
    drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources 6 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Font << /F1 5 0 R >> >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    begin = len(data)
    data += b"xref\n0 7\n0000000000 65535 f \n" + table
    return data + b"trailer\n<< /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % begin

"""How presentations are compared, by what `compare_pptx_files` is told to examine.

The rules are OSWorld's, with what is odd in them: shapes are compared in pairs, so that one more
at the end counts nothing; backgrounds are said to be examined, and never differ; some rules know
one slide or one text of the benchmark.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from osworld_office import RELATIONS, Element, Package, Unreadable, child, children, local

__all__ = ["compare_pptx_files"]

BELOW, RIGHT, TOP = 3_600_000, 4_320_000, 1_980_000
"""Where things have to be moved to, in EMU, of which 914,400 are an inch."""
MOVED = {"title": "Product Comparison", "shift": "Elaborate on what you want to discuss."}
TABLE, PICTURE, FREEFORM = "table", "picture", "freeform"
OFF = frozenset({
    "examine_title_bottom_position", "examine_table_bottom_position", "examine_right_position",
    "examine_top_position", "examine_shape_for_shift_size", "examine_image_size",
    "examine_modify_height",
})  # fmt: skip
"""What is examined only where a row says so; all else is, unless it says otherwise."""
FONT = (
    ("examine_font_size", "sz", None),
    ("examine_font_bold", "b", None),
    ("examine_font_italic", "i", None),
    ("examine_font_underline", "u", None),
    ("examine_strike_through", "strike", "noStrike"),
)
TRUE = {"1": "true", "0": "false"}

Box = tuple[int | None, int | None, int | None, int | None]


@dataclass(frozen=True)
class Shape:
    """A thing on a slide.

    Attributes:
        kind: `text`, `picture`, `table`, `freeform` or `other`.
        box: Its left, top, width and height in EMU; None where nothing says it.
        paragraphs: Those of its text; None where it has no place for one.
    """

    kind: str
    box: Box
    paragraphs: tuple[Element, ...] | None

    @property
    def text(self) -> str | None:
        """Its text; None where it has no place for one."""
        return None if self.paragraphs is None else "\n".join(map(text_of, self.paragraphs))


@dataclass(frozen=True)
class Slide:
    """A slide: its shapes, its notes, its bullets."""

    shapes: tuple[Shape, ...]
    notes: str
    bullets: tuple[tuple[str | None, ...], ...]


def compare_pptx_files(result: Any, expected: Any, **options: Any) -> float:
    """Whether two presentations are the same, in what is examined."""
    wanted = slides_of(Package(expected))
    try:
        mine = slides_of(Package(result))
    except Unreadable:
        return 0.0
    if len(mine) != len(wanted) and examined(options, "examine_number_of_slides"):
        return 0.0
    pairs = enumerate(zip(mine, wanted, strict=False), 1)
    return float(all(same_slide(number, one, other, options) for number, (one, other) in pairs))


def examined(options: Mapping[str, Any], name: str) -> bool:
    """Whether something is examined."""
    return bool(options.get(name, name not in OFF))


def same_slide(number: int, one: Slide, other: Slide, options: Mapping[str, Any]) -> bool:
    """Whether two slides are the same."""
    if one.notes.strip() != other.notes.strip() and examined(options, "examine_note"):
        return False
    bullets = one.bullets == other.bullets or not examined(options, "examine_bullets")
    return all(
        same_place(number, mine, wanted, options) and same_text(mine, wanted, options, bullets)
        for mine, wanted in zip(one.shapes, other.shapes, strict=False)
    )


def same_place(number: int, mine: Shape, wanted: Shape, options: Mapping[str, Any]) -> bool:
    """Whether a shape is where it should be; each rule has shapes that it is about, or none."""
    stays = mine.box == wanted.box
    texts = mine.text is not None and wanted.text is not None
    same = texts and mine.text == wanted.text
    kinds = {mine.kind, wanted.kind}
    neither = mine.text is None and wanted.text is None
    lower = after(mine.box[1], wanted.box[1], BELOW)
    rules = (
        ("title_bottom_position", same, lower or mine.text != MOVED["title"], stays),
        ("table_bottom_position", number == 3 and kinds == {TABLE}, lower, stays),  # noqa: PLR2004
        ("right_position", number == 2 and neither,  # noqa: PLR2004
         after(mine.box[0], wanted.box[0], RIGHT), True),
        ("top_position", number == 2 and kinds == {PICTURE},  # noqa: PLR2004
         before(mine.box[1], wanted.box[1], TOP), stays),
        ("shape_for_shift_size", same and mine.text == MOVED["shift"], True, stays),
        ("shape", False, True, stays),
        ("image_size", kinds == {PICTURE}, mine.box[2:] == wanted.box[2:], stays),
        ("modify_height", neither or kinds == {FREEFORM}, mine.box[3] == wanted.box[3], stays),
    )  # fmt: skip
    return all(
        holds if concerned else otherwise
        for name, concerned, holds, otherwise in rules
        if examined(options, f"examine_{name}")
    )


def after(mine: int | None, wanted: int | None, least: int) -> bool:
    """Whether a place lies beyond another one, and not before the least."""
    return mine is not None and mine > (wanted or 0) and mine >= least


def before(mine: int | None, wanted: int | None, most: int) -> bool:
    """Whether a place lies before another one, and not beyond the most."""
    return mine is not None and mine < (wanted or 0) and mine <= most


def same_text(mine: Shape, wanted: Shape, options: Mapping[str, Any], bullets: bool) -> bool:  # noqa: FBT001
    """Whether two shapes say the same in the same way."""
    if mine.paragraphs is None or wanted.paragraphs is None:
        return True
    if (mine.text or "").strip() != (wanted.text or "").strip() and examined(
        options, "examine_text"
    ):
        return False
    return all(
        same_paragraph(one, other, options, bullets)
        for one, other in zip(mine.paragraphs, wanted.paragraphs, strict=False)
    )


def same_paragraph(one: Element, other: Element, options: Mapping[str, Any], bullets: bool) -> bool:  # noqa: FBT001
    """Whether two paragraphs are the same; bullets are looked at where both have a run."""
    first, second = child(one, "pPr"), child(other, "pPr")
    differ = (
        ("examine_alignment", has(first, "algn") != has(second, "algn")),
        ("examine_text", text_of(one) != text_of(other)),
        ("examine_indent", (has(first, "lvl") or "0") != (has(second, "lvl") or "0")),
    )
    if any(different and examined(options, name) for name, different in differ):
        return False
    runs = list(zip(children(one, "r"), children(other, "r"), strict=False))
    return (bullets or not runs) and all(same_run(a, b, options) for a, b in runs)


def same_run(one: Element, other: Element, options: Mapping[str, Any]) -> bool:
    """Whether two runs are written in the same way; colours where both are given as RGB."""
    first, second = child(one, "rPr"), child(other, "rPr")
    fonts = [has(child(each, "latin"), "typeface") for each in (first, second)]
    if fonts[0] != fonts[1] and examined(options, "examine_font_name"):
        return False
    for name, key, default in FONT:
        values = [has(each, key) or default for each in (first, second)]
        plain = [TRUE.get(each or "", each) for each in values] if key in "bi" else values
        if plain[0] != plain[1] and examined(options, name):
            return False
    colours = [has(child(each, "solidFill", "srgbClr"), "val") for each in (first, second)]
    differ = None not in colours and len({str(each).upper() for each in colours}) > 1
    return not (differ and examined(options, "examine_color_rgb"))


def has(element: Element | None, name: str) -> str | None:
    """An attribute; None where there is none, or no element."""
    return None if element is None else element.get(name)


def text_of(paragraph: Element) -> str:
    """The text of a paragraph: of its runs, fields and breaks."""
    found: list[str] = []
    for each in paragraph:
        if local(each) == "br":
            found.append("\v")
        elif local(each) in ("r", "fld"):
            found += [inner.text or "" for inner in children(each, "t")]
    return "".join(found)


def slides_of(package: Package) -> list[Slide]:
    """The slides of a presentation, in order.

    Raises:
        Unreadable: It is none.
    """
    name = "ppt/presentation.xml"
    related = package.related(name)
    ids = [each.get(f"{RELATIONS}id", "")
           for each in children(package.xml(name), "sldIdLst", "sldId")]  # fmt: skip
    return [slide_of(package, related.get(each, "")) for each in ids]


def slide_of(package: Package, name: str) -> Slide:
    """A slide by its part."""
    xml = package.xml(name)
    parts = package.related(name).values()
    layout = next((each for each in parts if "/slideLayouts/" in each), None)
    notes = next((each for each in parts if "/notesSlides/" in each), None)
    places = {} if layout is None else places_of(package, layout)
    tree = child(xml, "cSld", "spTree")
    shapes = [shape_of(each, places) for each in (tree if tree is not None else ())
              if local(each) in ("sp", "pic", "graphicFrame", "grpSp", "cxnSp")]  # fmt: skip
    return Slide(tuple(shapes), "" if notes is None else notes_of(package.xml(notes)),
                 tuple(bullets_of(xml)))  # fmt: skip


def notes_of(xml: Element) -> str:
    """What is written in the notes of a slide."""
    for each in children(xml, "cSld", "spTree", "sp"):
        mark = child(each, "nvSpPr", "nvPr", "ph")
        if mark is not None and mark.get("type") == "body":
            return "\n".join(map(text_of, children(each, "txBody", "p")))
    return ""


def bullets_of(xml: Element) -> Iterator[tuple[str | None, ...]]:
    """The level, the sign, the text and the colour of each paragraph of a slide."""
    for paragraph in xml.iter():
        if local(paragraph) != "p" or "drawingml" not in paragraph.tag:
            continue
        text = "".join(each.text or "" for each in paragraph.iter() if local(each) == "t")
        own = child(paragraph, "pPr")
        yield (
            "none" if own is None else own.get("lvl"),
            has(child(own, "buChar"), "char"),
            text,
            has(child(own, "buClr", "srgbClr"), "val"),
        )


def shape_of(element: Element, places: Mapping[str, Box]) -> Shape:
    """A shape; a placeholder that says not where it is, is where its layout has it."""
    name = local(element)
    frame = child(element, "xfrm" if name == "graphicFrame" else
                  "grpSpPr" if name == "grpSp" else "spPr")  # fmt: skip
    box = box_of(frame if name == "graphicFrame" else child(frame, "xfrm"))
    mark = next((each for each in element.iter() if local(each) == "ph"), None)
    if box[0] is None and mark is not None:
        box = places.get(mark.get("idx", "0"), box)
    kind = "text" if name == "sp" else "other"
    if name == "pic":
        kind = PICTURE
    elif child(element, "graphic", "graphicData", "tbl") is not None:
        kind = TABLE
    elif name == "sp" and child(frame, "custGeom") is not None:
        kind = FREEFORM
    paragraphs = tuple(children(element, "txBody", "p")) if name == "sp" else None
    return Shape(kind, box, paragraphs)


def places_of(package: Package, layout: str) -> dict[str, Box]:
    """Where a layout has its placeholders, by index; one may be where its master has the like."""
    master = next((each for each in package.related(layout).values() if "/slideMasters/" in each),
                  None)  # fmt: skip
    by_type: dict[str, Box] = {}
    for mark, box in placeholders(package.xml(master)) if master is not None else ():
        by_type.setdefault(mark.get("type", "obj"), box)
    found: dict[str, Box] = {}
    for mark, box in placeholders(package.xml(layout)):
        kind = {"ctrTitle": "title"}.get(mark.get("type", "obj"), mark.get("type", "obj"))
        own = box if box[0] is not None else by_type.get(kind, by_type.get("body", box))
        found.setdefault(mark.get("idx", "0"), own)
    return found


def placeholders(xml: Element) -> Iterator[tuple[Element, Box]]:
    """The placeholders of a layout or a master, and where each is."""
    for each in children(xml, "cSld", "spTree", "sp"):
        mark = child(each, "nvSpPr", "nvPr", "ph")
        if mark is not None:
            yield mark, box_of(child(each, "spPr", "xfrm"))


def box_of(frame: Element | None) -> Box:
    """Left, top, width and height."""
    off, size = child(frame, "off"), child(frame, "ext")
    return (number(off, "x"), number(off, "y"), number(size, "cx"), number(size, "cy"))


def number(element: Element | None, name: str) -> int | None:
    """An attribute as a number.

    Raises:
        Unreadable: It is none.
    """
    text = has(element, name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise Unreadable(f"{name}={text!r} is no number.") from None

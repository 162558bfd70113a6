"""A small writer of PDF: pages of A4 with text, lines and grey boxes.

Fonts are the standard ones that every reader has. Format: ISO 32000-1, sections 7 and 9.
"""

import zlib

__all__ = ["Page", "write_pdf"]

WIDTH_PT, HEIGHT_PT = 595, 842
_NARROW = {".": 278, ",": 278, " ": 278, "-": 333, "%": 889}
"""Widths of Helvetica, for what is aligned to the right: numbers."""


class Page:
    """One page of A4; points count from its top left corner."""

    def __init__(self) -> None:
        self._drawn: list[str] = []

    def text(self, x: float, y: float, text: str, *, size: float = 10, bold: bool = False) -> None:
        """Write a line of text that begins at a point."""
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        font = "F2" if bold else "F1"
        self._drawn.append(f"BT /{font} {size:g} Tf {x:g} {HEIGHT_PT - y:g} Td ({escaped}) Tj ET")

    def number(
        self, x: float, y: float, text: str, *, size: float = 10, bold: bool = False
    ) -> None:
        """Write a number that ends at a point."""
        width = sum(_NARROW.get(sign, 556) for sign in text) * size / 1000
        self.text(round(x - width, 2), y, text, size=size, bold=bold)

    def line(self, x1: float, y1: float, x2: float, y2: float, *, width: float = 0.6) -> None:
        """Draw a straight line."""
        ends = f"{x1:g} {HEIGHT_PT - y1:g} m {x2:g} {HEIGHT_PT - y2:g} l"
        self._drawn.append(f"{width:g} w {ends} S")

    def box(self, x: float, y: float, width: float, height: float, *, grey: float) -> None:
        """Fill a rectangle, from its top left corner."""
        corner = f"{x:g} {HEIGHT_PT - y - height:g}"
        self._drawn.append(f"{grey:g} g {corner} {width:g} {height:g} re f 0 g")

    def content(self) -> bytes:
        """Its content stream, compressed."""
        return zlib.compress("\n".join(self._drawn).encode("cp1252"), 9)


def write_pdf(pages: list[Page]) -> bytes:
    """A whole file of these pages."""
    kids = " ".join(f"{5 + 2 * i} 0 R" for i in range(len(pages)))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        font.format("Helvetica").encode(),
        font.format("Helvetica-Bold").encode(),
    ]
    for i, page in enumerate(pages):
        data = page.content()
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH_PT} {HEIGHT_PT}] /Contents "
            f"{6 + 2 * i} 0 R /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>".encode(),
            f"<< /Length {len(data)} /Filter /FlateDecode >>\nstream\n".encode()
            + data
            + b"\nendstream",
        ]
    return _file_of(objects)


def _file_of(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places: list[int] = []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + each + b"\nendobj\n"
    start = len(out)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n".encode()
    out += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)

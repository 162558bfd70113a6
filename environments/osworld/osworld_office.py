"""Documents as zips of XML: what is in them, within bounds, as an agent may have made them."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET

__all__ = ["RELATIONS", "Beside", "Element", "Package", "Unreadable", "child", "children", "local",
           "ratio"]  # fmt: skip

MOST_BYTES = 64 * 1024 * 1024
MOST_PARTS = 10_000
MOST_SIGNS = 200_000
RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"

Element = ET.Element


class Unreadable(ValueError):
    """A file is no document of its kind, or has more in it than anybody writes."""


class Beside(bytes):
    """A file's content, with the files that lie beside it.

    Attributes:
        name: The file's name.
        others: The contents of all of them, by their names.
    """

    name: str
    others: Mapping[str, bytes]

    @classmethod
    def of(cls, name: str, others: Mapping[str, bytes]) -> "Beside":
        """One of some files."""
        made = cls(others[name])
        made.name, made.others = name, others
        return made


class Package:
    """The parts of a document.

    Args:
        data: The file's content.

    Raises:
        Unreadable: It is no zip, or has too much in it.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError) as exc:
            raise Unreadable(f"This is no document: {exc}.") from None
        parts = self._zip.infolist()
        if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_BYTES:
            raise Unreadable("This document has more in it than is read.")
        self.names = frozenset(part.filename for part in parts)

    def xml(self, name: str) -> Element:
        """A part as XML.

        Raises:
            Unreadable: It is not there, or is no XML.
        """
        try:
            text = self._zip.read(name)
            if b"<!DOCTYPE" in text or b"<!ENTITY" in text:  # which no office writes
                raise Unreadable(f"{name} declares entities.")
            return ET.fromstring(text)  # noqa: S314  # without entities, and bounded
        except (KeyError, ET.ParseError, zipfile.BadZipFile, zlib.error,
                NotImplementedError, RuntimeError, EOFError) as exc:  # fmt: skip
            raise Unreadable(f"{name} cannot be read: {exc}.") from None

    def related(self, name: str) -> dict[str, str]:
        """The parts that a part refers to, by the ids that it has for them."""
        folder, _, file = name.rpartition("/")
        place = f"{folder}/_rels/{file}.rels"
        if place not in self.names:
            return {}
        return {
            each.get("Id", ""): joined(folder, each.get("Target", "")) for each in self.xml(place)
        }


def joined(folder: str, target: str) -> str:
    """Where a part is that another one in a folder refers to."""
    parts = [] if target.startswith("/") else folder.split("/")
    for each in target.strip("/").split("/"):
        if each == "..":
            parts = parts[:-1]
        else:
            parts.append(each)
    return "/".join(parts)


def local(element: Element) -> str:
    """An element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def children(element: Element | None, *path: str) -> Iterator[Element]:
    """What lies under an element by a path of names, whatever their namespace."""
    if element is None:
        return
    for each in element:
        if local(each) == path[0]:
            if len(path) == 1:
                yield each
            else:
                yield from children(each, *path[1:])


def child(element: Element | None, *path: str) -> Element | None:
    """The first of them, or None."""
    return next(children(element, *path), None)


def ratio(one: str, other: str) -> float:
    """How like two texts are: twice their longest common subsequence by the length of both.

    It is `fuzz.ratio` of RapidFuzz, as a fraction; two empty texts are alike. A text of more than
    200,000 signs, which no row has, is like itself alone.
    """
    if one == other:
        return 1.0
    if max(len(one), len(other)) > MOST_SIGNS:
        return 0.0
    places: dict[str, int] = {}
    for index, sign in enumerate(one):
        places[sign] = places.get(sign, 0) | 1 << index
    # Hyyrö's bit vector: a bit of `row` is 0 where the subsequence grows at that sign.
    whole = (1 << len(one)) - 1
    row = whole
    for sign in other:
        taken = row & places.get(sign, 0)
        row = ((row + taken) | (row - taken)) & whole
    return 2 * (len(one) - row.bit_count()) / (len(one) + len(other))

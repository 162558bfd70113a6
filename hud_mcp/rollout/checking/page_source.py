"""The parts of a page's source that no person sees, and the addresses that it names."""

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import orjson

from hud_mcp.rollout.checking.surface import Seen, SeenKind, walk_json

__all__ = ["HtmlSource", "named_addresses", "parts_of_text"]

_VOID = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
        "source", "track", "wbr",
    }
)  # fmt: skip
_UNSHOWN = frozenset({"script", "style", "template", "noscript", "head"})
_SHOWN_VALUES = frozenset({"alt", "title", "placeholder", "label", "aria-label"})
_LAYOUT = frozenset({"class", "style", "type", "rel", "lang", "charset"})
_UNSHOWN_TYPES = frozenset({"radio", "checkbox"})
_LINKS = frozenset({"href", "src", "action", "formaction"})
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_QUOTED = re.compile(
    r"""["'`]((?:\.{0,2}/)?(?:[\w.-]+/)*[\w.-]+(?:\?[\w=&%+.-]*)?)["'`]""", re.ASCII
)
"""A text in a script that may be an address."""

_FILE = re.compile(r"\.(json|js|mjs|txt|csv|xml|html?)(\?|$)", re.IGNORECASE)
_LINE_CHARS = 400


class HtmlSource(HTMLParser):
    """The parts of a document's source: hidden texts, visible texts, and addresses.

    A visible text is one that a person sees, or may see. Addresses are as elements write them.
    """

    def __init__(self, text: str, place: str) -> None:
        super().__init__()
        self.parts: list[Seen] = []
        self.visible: list[str] = []
        self.addresses: list[str] = []
        self._place = place
        self._open: list[tuple[str, bool]] = []
        self._form: tuple[str, dict[str, str]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read an element's attributes, and note whether it is shown."""
        known = {name: value or "" for name, value in attrs}
        for name, value in known.items():
            self._take_attribute(tag, name, value, known)
        self._note_form(tag, known)
        if tag not in _VOID:
            hides = (
                tag in _UNSHOWN or "hidden" in known or _INVISIBLE.search(known.get("style", ""))
            )
            self._open.append((tag, bool(hides) or self._is_hidden))

    def _take_attribute(self, tag: str, name: str, value: str, known: Mapping[str, str]) -> None:
        if name in _LINKS:
            self.addresses.append(value)
            self._add("open", f"{name} of a <{tag}>", value, name)
        elif name.startswith("on"):
            self.addresses += named_addresses(value)
            self._add("open", f"{name} of a <{tag}>", value)
        elif name == "value":
            kind = known.get("type", "").lower() if tag == "input" else tag
            field = known.get("name", "")
            if kind == "hidden":
                self._add("hidden", f"the hidden input {field!r}", value, field)
            elif kind in _UNSHOWN_TYPES or tag == "option":
                self._add("open", f"the value of a <{tag}>", value, field)
            else:
                self.visible.append(value)
        elif name in _SHOWN_VALUES:
            self.visible.append(value)
        elif name not in _LAYOUT:
            field = known.get("name", "") if tag == "meta" else name
            self._add("hidden", f"{name} of a <{tag}>", value, field)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element, and the open ones in it."""
        if tag == "form" and self._form is not None:
            action, fields = self._form
            self.addresses.append(f"{action}?{urlencode(fields)}" if fields else action)
            self._form = None
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] == tag:
                del self._open[place:]
                return

    def handle_comment(self, data: str) -> None:
        """Read a comment."""
        self._add("hidden", "a comment", data)

    def handle_data(self, data: str) -> None:
        """Read a text: a script's, a hidden or a shown one."""
        tag = self._open[-1][0] if self._open else ""
        if tag == "style" or not data.strip():
            return
        if tag == "script":
            self.addresses += named_addresses(data)
            self._add("open", "a <script>", data)
        elif self._is_hidden and tag != "title":
            self._add("open", f"the hidden text of a <{tag}>", data)
        else:
            self.visible.append(data)

    @property
    def _is_hidden(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def _add(self, kind: SeenKind, what: str, text: str, named: str = "") -> None:
        first = self.getpos()[0]
        for number, line in enumerate(text.splitlines(), first):
            place = f"{self._place}, line {number}: {what}"
            self.parts.append(Seen(place=place, kind=kind, text=line, own=True, named=named))

    def _note_form(self, tag: str, known: dict[str, str]) -> None:
        if tag == "form" and known.get("method", "get").lower() == "get":
            self._form = (known.get("action", ""), {})
        elif self._form is not None and tag in ("input", "button") and known.get("name"):
            self._form[1][known["name"]] = known.get("value", "")


def named_addresses(text: str) -> list[str]:
    """Return the addresses in a script or in data, as written: paths and files."""
    return [
        each
        for each in _QUOTED.findall(text)
        if each.startswith(("/", "./", "../", "api/")) or _FILE.search(each)
    ]


def parts_of_text(text: str, place: str, named: str) -> Iterator[Seen]:
    """Return the parts of a response that is no page: each value of JSON, or each line."""
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        for number, line in enumerate(text.splitlines(), 1):
            yield Seen(
                place=f"{place}, line {number}", kind="open", text=line, own=True, named=named
            )
        return
    for each in walk_json(place, value, "open", own=True):
        yield each.model_copy(
            update={
                "kind": "open",
                "own": True,
                "named": f"{named} {each.place.removeprefix(place)}",
            }
        )

"""The elements of a world's text: their refs, such as `e12`, and their names in words.

The text of a page has `button "Buy" [e12 disabled]`. Texts of other worlds, and older records,
have `button "Buy" [disabled] [ref=e12]`.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from hud_mcp.base.text import clip

_REF = re.compile(r"(?<!\\)\[(?:ref=(\w+)|((?:f\d+)?e\d+|link\d+))(?=[ \]])")
_SAID = re.compile(r'"(?:[^"\\]|\\.)*"?')
_STATE = re.compile(r" \[([\w-]+)\]")
_QUOTED = re.compile(r'(?:[\w-]+ )?("(?:[^"\\]|\\.)*")')
_BRACKETS = re.compile(r" ?\[[^\]]*\]")
_NAME = re.compile(r'((?:[\w-]+ )?"(?:[^"\\]|\\.)*"|[a-z][\w-]*)(?: \[[^\]]*\])* $')

CHANGES = "Changed since the last text:"
"""The line that begins the changes in a text."""
_NAME_CHARS = 80


def refs_in(text: str) -> list[str]:
    """Return the refs of a text in their order."""
    return [match[1] or match[2] for match in _REF.finditer(text)]


class Named(NamedTuple):
    """A ref with what a text says of its element.

    Attributes:
        ref: The ref.
        name: The role and the name, such as `button "Buy"`.
        states: The states that are on, such as `checked`.
        owner: The name of its row or item, if its own name leaves that out.
    """

    ref: str
    name: str
    states: frozenset[str]
    owner: str = ""

    @property
    def words(self) -> str:
        """The element in words, such as `the button “Buy” of “Lamp”`."""
        role, _, name = self.name.partition('"')
        said = _element_words(role.strip(), _plain(f'"{name}') if name else "")
        return f"{said} of {quoted(self.owner, 40)}" if self.owner else said


def named_refs(text: str) -> Iterator[Named]:
    """Yield each ref of a text with the name, the states and the owner of its element."""
    for line, owner in _owned_lines(text):
        start = 0
        for match in _REF.finditer(line):
            end = line.find("]", match.end())
            before, inside = line[start : match.start()], line[match.end() : end]
            name, rest = _NAME.search(before), line[end + 1 :].strip(" :")
            states = _SAID.sub("", inside).split() + (_STATE.findall(name[0]) if name else [])
            on = frozenset(filter(str.isalpha, states))  # an address is no state
            said = name[1] if name else json.dumps(rest, ensure_ascii=False) if rest else "element"
            own = _plain(said[said.find('"') :]) if '"' in said else ""
            other = "" if match[1] or (own and (own in owner or owner in own)) else owner
            yield Named(match[1] or match[2], said, on, other)
            start = end


def _owned_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line without its mark, and the title of the row or item that it is part of."""
    lines, items = text.splitlines(), list[tuple[int, str]]()
    is_changes = CHANGES in text
    for line, below in zip(lines, [*lines, ""][1:], strict=True):
        whole = line[2:] if is_changes and line[:2] in ("+ ", "- ", "  ") else line
        inner = whole.lstrip(" ")
        indent = len(whole) - len(inner)
        while items and items[-1][0] >= indent:
            items.pop()
        if inner.startswith("- "):
            inner = inner[2:]
            items.append((indent, _title(inner)))
        owner = items[-1][1] if items else ""
        if inner.startswith("| "):
            is_head = below.lstrip("+- ").startswith("|--")
            owner = "" if is_head else _title(inner[2:].split(" | ")[0])
        yield inner, owner


def _title(line: str) -> str:
    """Return the words before a line's first element, or else that element's name."""
    found = _QUOTED.search(line)
    before = (line[: found.start()] if found else _BRACKETS.sub("", line)).strip("#:| ")
    return before if before or found is None else _plain(found[1])


def said_apart(elements: Collection[Named]) -> dict[str, str]:
    """Return elements in words by their refs; the ref stands behind a name that is not unique."""
    words = {each.ref: each.words for each in elements}
    count = Counter(words.values())
    return {
        ref: said if count[said] == 1 and "“" in said else f"{said} ({ref})"
        for ref, said in words.items()
    }


def find_ref(text: str, wanted: str, nth: int = 0) -> str | None:
    """Return the ref of an element that a text names by some words; None if there is none.

    Args:
        text: The text.
        wanted: Part of the element's line, from its role or name on, such as `button "Buy`.
        nth: Which one, if several elements match.
    """
    found: list[str] = []
    for line in text.splitlines():
        places = list(_REF.finditer(line))
        at = line.find(wanted)
        while at >= 0 and places:
            behind = next((each for each in places if each.end() > at), places[-1])
            ref = behind[1] or behind[2]
            if ref not in found:
                found.append(ref)
            at = line.find(wanted, at + 1)
    return found[nth] if nth < len(found) else None


_KINDS = (
    ("field", "textbox searchbox spinbutton combobox input textarea select"),
    ("item", "listitem treeitem li"),
    ("heading", "heading columnheader rowheader"),
    *(("list", "listbox"), ("link", "a"), ("picture", "img"), ("cell", "gridcell td")),
    *(("radio button", "radio"), ("menu item", "menuitem"), ("row", "tr")),
)
_ROLES = {role: kind for kind, roles in _KINDS for role in roles.split()}
"""The words for roles, and for tags that have one."""
_INNER = str.maketrans("“”", "''")


def quoted(name: str, most_chars: int = _NAME_CHARS) -> str:
    """Return a name in quotation marks, in one line, cut to a length; no other mark ends it."""
    line = " ".join(name.encode(errors="replace").decode().translate(_INNER).split())
    return f"“{clip(line, most_chars)}”"


def said_alone(words: str) -> str:
    """Return the name of an element in words without its role, such as `“Guests”`."""
    return re.sub(r"^the [^“]*(?=“)", "", words)


def _element_words(role: str, name: str) -> str:
    kind = _ROLES.get(role, role)
    return " ".join(filter(None, ("the" if kind else "", kind, quoted(name) if name else "")))


_ENGINE = re.compile(
    r"(?:internal:)?(?P<engine>label|text|role|attr|testid|has-text)="
    r"(?P<rest>[\w-]*)(?P<value>\[.*\]|\"(?:[^\"\\]|\\.)*\"[si]?|/.*/[a-z]*)?"
)
_TEXT = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_ATTRIBUTE = re.compile(rf"\[(?P<key>[\w-]+)=(?P<text>{_TEXT})[si]?\]")
_CSS = re.compile(
    rf"(?P<tag>[a-z]*)(?::(?:has-text|text|text-is)\((?P<text>{_TEXT})\)"
    rf"|\[(?:aria-label|placeholder|title|alt)=(?P<name>{_TEXT})\])"
)
_SHOWN = {"placeholder": "field", "alt": "picture", "aria-label": "", "title": ""}
"""The attributes that a person sees as a name, with the kind of what has them."""


def selector_words(selector: str) -> str:
    """Return a selector in words, such as `the field “City”`; what says nothing stays."""
    words = list[str]()
    for part in map(str.strip, selector.split(" >> ")):
        nth = re.fullmatch(r"nth=(-?)(\d{1,9})", part)
        said = _part_words(part)
        if said is None:
            return selector
        if words and nth:
            words[0] += " (the last match)" if nth[1] else f" (match {int(nth[2]) + 1})"
        elif words and said.startswith("with "):
            words[0] += f" {said}"
        else:
            words.insert(0, said)
    return " in ".join(words)


def _part_words(part: str) -> str | None:
    """Return one part in words; None for a part of Playwright's own that has no words."""
    if css := _CSS.fullmatch(part):
        return _element_words(css["tag"], _plain(css["text"] or css["name"]))
    found, own = _ENGINE.fullmatch(part), part.startswith(("internal:", "role="))
    engine, value = (found["engine"], found["value"] or "") if found else ("", "")
    name, text = _ATTRIBUTE.search(value), re.match(_TEXT, value)
    if found is not None and engine == "role":
        return _element_words(found["rest"], _plain(name["text"]) if name else "")
    if name is not None:
        key, said = name["key"], _plain(name["text"])
        is_seen = key in _SHOWN
        return _element_words(_SHOWN[key], said) if is_seen else f"the {key} {quoted(said)}"
    kinds = {"label": "the field", "text": "the text", "has-text": "with the text"}
    if text is not None and engine in kinds:
        return f"{kinds[engine]} {quoted(_plain(text[0]))}"
    if part.startswith("text=") and not value:
        return f"the text {quoted(part[5:])}"
    return None if own else part


def _plain(given: str) -> str:
    """Return a quoted text without its quotation marks and escapes."""
    try:
        return str(json.loads(given))
    except ValueError:
        return re.sub(r"\\(.)", r"\1", given.rstrip()[1:-1])

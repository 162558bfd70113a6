"""An element of a page as a phrase: its role, its name, its ref with states, what it holds."""

import json
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from hud_mcp.worlds.browser.tree import Node, text_of

__all__ = [
    "ACTED",
    "CHECKS",
    "EDITED",
    "FIELDS",
    "INLINE",
    "MOVED",
    "address",
    "choices",
    "mark",
    "plain",
    "quoted",
    "safe",
    "words",
]

FIELDS = frozenset({"combobox", "searchbox", "slider", "spinbutton", "textbox"})
CHECKS = frozenset({"checkbox", "menuitemcheckbox", "menuitemradio", "radio", "switch"})
ACTED = FIELDS | CHECKS | {"button", "link", "listbox", "menuitem", "option", "tab", "treeitem"}
"""The roles of elements that a person acts on."""

EDITED = {"deletion": "~~", "insertion": "++"}
"""The marks around a text that was taken out or put in."""

INLINE = frozenset(
    {"code", "emphasis", "mark", "strong", "subscript", "superscript", "term", "time", *EDITED}
)
"""The roles of elements within a sentence."""

MOVED = frozenset({"draggable", "editable", "scrolls"})
"""Facts by which any element is one to act on."""

MAX_CHOICES = 200
"""The most characters of a select's options; a look at the select itself tells the others."""

MAX_URL = 80

_STATES = (
    "checked", "pressed", "selected", "expanded", "collapsed", "disabled", "readonly", "required",
    "busy", "current", "draggable", "editable", "scrolls",
)  # fmt: skip
"""The states without values, in the order of the text."""

_UNTOLD = frozenset(
    {"aria-hidden", "click", "cursor", "drawn", "hint", "label", "level", "range", "ref", "value"}
)
"""The states that are no part of the brackets."""

_WORD = re.compile(r"\w+|[^\w\s\x00-\x7f]")  # a sign such as ★ is one too
_REF = re.compile(r"\[(?=ref=|(?:f\d+)?e\d|link\d)")
_BLANK = re.compile(r"\s+")
_CACHED_CHARS = 400
"""The longest address whose short form is kept."""
_UNPLAIN = re.compile(r'["\\\x00-\x1f]')


def words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def safe(text: str) -> str:
    """Return a page's own text, in which nothing reads as a ref."""
    return _REF.sub(r"\\[", text) if "[" in text else text


def plain(text: str) -> str:
    """Return a page's own text in one line, in which nothing reads as a ref."""
    return safe(" ".join(text.split()))


def quoted(text: str) -> str:
    """Return a name in quotes; only quotes, backslashes and control characters are escaped."""
    plain = safe(text)
    return json.dumps(plain, ensure_ascii=False) if _UNPLAIN.search(plain) else f'"{plain}"'


def mark(node: Node, link: str = "", *, acted: bool) -> str:
    """Return an element's ref, its link's address and its states in brackets, or nothing."""
    states = node.states
    told = [each for each in (node.ref if acted else "", link) if each]
    if _UNTOLD.issuperset(states):  # as for most
        return f" [{' '.join(told)}]" if told else ""
    told += ["mixed" if states[state] == "mixed" else state for state in _STATES if state in states]
    if "sorted" in states:
        told.append(f"sorted {states['sorted']}")
    if "invalid" in states or "wrong" in states:
        told.append(f"invalid {quoted(states['wrong'])}" if states.get("wrong") else "invalid")
    if acted and "active" in states:
        told.append("focused")
    return f" [{' '.join(told)}]" if told else ""


def address(node: Node, page: str, known: Collection[str]) -> str:
    """Return a link's address, as short as it is clear on a page.

    An address that is `known`, since it stands beside the link, is left out.
    """
    given = node.props.get("url", "")
    if not given or given in known:
        return ""
    is_kept = len(given) + len(page) <= _CACHED_CHARS
    return _short(given, page) if is_kept else _short.__wrapped__(given, page)


@lru_cache(maxsize=4096)
def _short(given: str, page: str) -> str:
    if given == "#" or given.startswith("javascript:"):
        return ""
    try:
        here, full = urlsplit(page), urlsplit(urljoin(page, given))
    except ValueError:  # such as that of `http://[`
        here = full = urlsplit("")
    if full.netloc and (full.scheme, full.netloc) == (here.scheme, here.netloc):
        path = full._replace(scheme="", netloc="").geturl() or "/"
        if full.path == here.path:
            same = full.query == here.query and full.fragment
            path = f"#{full.fragment}" if same else path.removeprefix(full.path) or path
        given = path if ":" in given else min(_relative(given), path, key=len)
    given = safe(_BLANK.sub("%20", _relative(given)).replace("]", "%5D"))
    return given if len(given) <= MAX_URL else f"{given[: MAX_URL - 1]}…"


def _relative(given: str) -> str:
    """Return an address of which no word reads as a state, such as `disabled`."""
    return given if given[:1] in "/?#." or ":" in given else f"./{given}"


def choices(node: Node, *, whole: bool) -> str:
    """Return the chosen options of a select, and in parentheses all that fit, or the `whole`."""
    chosen: list[str] = []
    every: list[str] = []
    for option in (each for each in node.walk() if each.role == "option"):
        text = safe(text_of(option))
        if "selected" in option.states:
            chosen.append(text)
        every.append(f"{text} (disabled)" if "disabled" in option.states else text)
    return f"{', '.join(chosen)} ({' | '.join(every if whole else _first(every, node.ref))})"


def _first(texts: Sequence[str], ref: str) -> Sequence[str]:
    size = 0
    for i, text in enumerate(texts):
        size += len(text) + 3
        if size > MAX_CHOICES and i < len(texts) - 1:
            return [*texts[:i], f"… {len(texts) - i} more; observe {ref}" if ref else "…"]
    return texts

"""How WebArena compares answers, addresses and pages, by its published rules."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["address_fits", "cleaned", "content_fits", "is_included", "post_address"]

TOKEN = re.compile(r"[^\W_]+(?:[-.,:/'][^\W_]+)*|[^\w\s]|_")
"""A word, a number with its signs inside, or a sign alone."""


def cleaned(text: str) -> str:
    """A text without space and one pair of quotes around it, in lower case."""
    text = text.strip()
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def is_included(wanted: str, text: str, *, alone: bool = False) -> bool:
    """Whether a text has another one somewhere.

    Args:
        wanted: What is looked for.
        text: Where.
        alone: Whether a single character has to be a word of its own: `0` is not in `10`.
    """
    wanted, text = cleaned(wanted), cleaned(text)
    if alone and len(wanted) == 1:
        return wanted in TOKEN.findall(text)
    return wanted in text


def address_fits(address: str, references: Sequence[str]) -> bool:
    """Whether host and path of one reference are in those of an address, and the queries agree.

    Of each query argument that any reference has, the address needs one of the values.
    """
    place, query = _parts(address)
    wanted = [_parts(each) for each in references]
    if not any(reference in place for reference, _ in wanted):
        return False
    values: dict[str, set[str]] = {}
    for _, arguments in wanted:
        for name, given in arguments.items():
            values.setdefault(name, set()).update(given)
    return all(possible & set(query.get(name, [])) for name, possible in values.items())


def content_fits(content: str, target: Mapping[str, Any]) -> bool:
    """Whether what was read of a page is, or has, what is wanted."""
    content = html.unescape(content)
    if "exact_match" in target:
        return cleaned(content) == cleaned(str(target["exact_match"]))
    return all(
        any(is_included(each, content) for each in str(wanted).split(" |OR| "))
        for wanted in target["must_include"]
    )


def post_address(address: str) -> str:
    """The address of a forum's post, of that of a comment in it; any other one as it is."""
    parts = urlsplit(address)
    steps = parts.path.split("/")
    if len(steps) < 4 or steps[1] != "f":  # noqa: PLR2004  # /f/forum/post
        return address
    return f"{parts.scheme}://{parts.netloc}/f/{steps[2]}/{steps[3]}/"


def _parts(address: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlsplit(address.rstrip("/"))
    return parts.netloc + parts.path, parse_qs(parts.query)

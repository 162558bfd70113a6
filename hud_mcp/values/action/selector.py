"""Selectors in words, where they are written in a form that no person writes."""

import json
import re

__all__ = ["selector_words"]

_PART = re.compile(
    r"(?:internal:)?(?P<engine>label|text|role|attr|testid|has-text)="
    r"(?P<rest>[\w-]*)(?P<value>\[.*\]|\"(?:[^\"\\]|\\.)*\"[si]?|/.*/[a-z]*)?"
)
_LOCATOR = re.compile(r"(?:^|>> )(?:internal:|role=)")
_NAME = re.compile(r'\[(?P<key>[\w-]+)=(?P<text>"(?:[^"\\]|\\.)*")[si]?\]')
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def selector_words(selector: str) -> str:
    """A selector as a person says it: Playwright's own form of its locators, in words.

    Args:
        selector: CSS or Playwright's, of one or several parts.

    Returns:
        Words such as `the field "Full name"`; the selector itself, where it is of another form.
    """
    if not _LOCATOR.search(selector):
        return selector
    words = [_part_words(part.strip()) for part in selector.split(" >> ")]
    known = [each for each in words if each is not None]
    return " in ".join(reversed(known)) if len(known) == len(words) and known else selector


def _part_words(part: str) -> str | None:
    if part.startswith("nth="):
        return f"match {int(part[4:]) + 1}" if part[4:].isdigit() else "the last match"
    if not part.startswith(("internal:", "role=")):
        return part or None
    found = _PART.fullmatch(part)
    return None if found is None else _engine_words(found)


def _engine_words(found: re.Match[str]) -> str | None:
    engine, value = found["engine"], found["value"] or ""
    name, text = _NAME.search(value), _TEXT.match(value)
    if engine == "role":
        return f"{found['rest']} {_plain(name['text'])}" if name else found["rest"]
    if name is not None:
        return f"the element with {name['key']} {_plain(name['text'])}"
    kinds = {"label": "the field ", "text": "the text ", "has-text": "what has the text "}
    return kinds[engine] + _plain(text[0]) if text is not None and engine in kinds else None


def _plain(quoted: str) -> str:
    return f'"{json.loads(quoted)}"'

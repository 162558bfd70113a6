"""A docstring begins with the thing that it is about, and not with a question's word."""

import ast
from collections.abc import Iterator

from page_blocks import ROOT

FIRST = {"What", "Whose", "Whom", "Who", "Why", "Where", "When", "How", "That", "As", "So"}
"""Words after which a reader has to look for the subject. "Whether" is right for a boolean."""

CEILINGS = {"hud_mcp": 8, "client": 0, "environments": 251}
"""Docstrings of each folder that begin so. A ceiling only falls.

Those of environments stay: the digest of an environment has the bytes of its files, and a session
does not resume if that differs.
"""


def bent(text: str) -> Iterator[str]:
    """Yield the first line of each docstring of a source that begins with such a word."""
    for node in ast.walk(ast.parse(text)):
        for body in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            for each in body if isinstance(body, list) else ():
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    said = each.value.value
                    words = said.split(None, 1) if isinstance(said, str) else []
                    if words and words[0].rstrip(",:") in FIRST:
                        yield said.strip().partition("\n")[0]


def test_fewer_docstrings_begin_with_such_a_word_than_before() -> None:
    """A new one names its subject; who rewrites an old one lowers the ceiling."""
    found = {
        folder: [
            f"{path.relative_to(ROOT)}: {said}"
            for path in sorted((ROOT / folder).rglob("*.py"))
            for said in bent(path.read_text())
        ]
        for folder in CEILINGS
    }
    over = {folder: said for folder, said in found.items() if len(said) > CEILINGS[folder]}
    assert over == {}


def test_such_a_beginning_is_seen() -> None:
    """In a module, a class, a function, and beside a constant; other beginnings are not."""
    source = """
'What a room is.'
LIMIT = 1
'How many there are.'
class Room:
    'A room.'
    def is_open(self):
        'Whether it is open.'
    def owner(self):
        'Whose, in short, it is.'
"""
    assert list(bent(source)) == [
        "What a room is.",
        "How many there are.",
        "Whose, in short, it is.",
    ]

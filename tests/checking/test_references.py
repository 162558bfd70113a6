"""What counts as finding a value in a text: words and numbers of their own, however escaped."""

import json

from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.rollout.checking.leaks import occurs


@each_of(
    ("value", "text", "found"),
    [
        (3, "There are 3.", True),
        (3, "There are 13 or 3.5, and v3.", False),
        (3.0, "There are 3.", True),
        (1234, "It costs 1,234 euros.", True),
        (-5, "It is -5 degrees.", True),
        ("0", "version 0.1.0", False),
        ("0", "it is 0.", True),
        ("Vaduz", "in vaduz, of course", True),
        ("Vaduz", "the Vaduzer", False),
        ("a\nb", "a  b", True),
        ("R&D", "of R&amp;D here", True),
        ("Zürich", '"Z\\u00fcrich"', True),
        ("C++", "C++ or C", True),
        ("  ", "anything at all", False),
    ],
)
def test_a_value_is_found_as_a_word_of_its_own(value: str | float, text: str, found: bool) -> None:  # noqa: FBT001  # a parameter
    """Neither within another one, nor missed because it is written in another way."""
    assert occurs(value, text) is found


@given(st.text(min_size=1).filter(str.strip))
@example('¡"')
def test_no_text_hides_by_being_written_as_json(value: str) -> None:
    """Whatever it is made of."""
    if value.isprintable():
        assert occurs(value, f"before {json.dumps(value, ensure_ascii=False)} after")

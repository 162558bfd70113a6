"""The elements of a world's text in words, by their refs."""

from tables import each_of

from hud_mcp.record.transcript import RefNames, describe_action
from hud_mcp.values.refs import named_refs, quoted

STOCK = """Page: Stock

| button "Item" [e8] [sorted ascending] | button "Price" [e9]
|--
| link "Lamp" [e13 /item/1] | 29 EUR | button "Buy" [e16]
| link "Jar" [e19 /item/2] | 9 EUR | button "Buy" [e22 disabled]
- Ann: hello
 button "Reply" [e30]
 button "Answer Ann: hello" [e31]
## Contact
textbox "Name" [e51 required]: (Ann)
textbox [e52]
combobox "City" [e53]: Vienna (Graz | Vienna)
"More" [e60 collapsed]
button "Help" [e61] button "Help" [e62]
My own [ref=1] and \\[e99] are no refs
"""


@each_of(
    ("ref", "words"),
    [
        ("e9", "the button “Price”"),
        ("e13", "the link “Lamp”"),
        ("e16", "the button “Buy” of “Lamp”"),
        ("e22", "the button “Buy” of “Jar”"),
        ("e30", "the button “Reply” of “Ann: hello”"),
        ("e31", "the button “Answer Ann: hello”"),
        ("e51", "the field “Name”"),
        ("e52", "the field (e52)"),
        ("e53", "the field “City”"),
        ("e60", "“More”"),
        ("e61", "the button “Help” (e61)"),
        ("e99", "the element e99"),
    ],
)
def test_an_element_is_called_by_its_kind_its_name_and_its_row(ref: str, words: str) -> None:
    """The ref itself is told where these do not tell the element from others."""
    names = RefNames()
    names.read(STOCK)
    assert describe_action({"type": "click", "ref": ref}, names) == f"click {words}"


def test_a_text_of_changes_names_the_items_in_it() -> None:
    """Its marks are no marks of items."""
    names = RefNames()
    names.read('Changed since the last text:\n- - Lamp\n-  button "Buy" [e2]\n+ button "Go" [e4]')
    assert dict(names) == {"e2": "the button “Buy” of “Lamp”", "e4": "the button “Go”"}


def test_an_older_text_names_no_owners() -> None:
    """Every line of it begins as an item does."""
    names = RefNames()
    names.read('- main [ref=e1]:\n  - button "Buy" [disabled] [ref=e5]')
    assert names["e5"] == "the button “Buy”"


@each_of("name", ["a” of “b", "x" * 500, "two\nlines\tof it", "\ud800", "<b>&amp;</b>"])
def test_a_name_stays_within_its_marks(name: str) -> None:
    """A page cannot end the quotation, write a second line, or fill the screen."""
    said = quoted(name)
    assert said[0] + said[-1] == "“”"
    assert not set("“”\n\t") & set(said[1:-1])
    assert len(said) < 100
    assert said.encode()


def test_a_text_without_lines_names_nothing() -> None:
    """A world that shows nothing has an empty text, and its steps are told too."""
    assert list(named_refs("")) == []

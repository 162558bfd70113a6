"""The lines of a page's text, from the tree that they are written from."""

# ruff: noqa: E501, ISC004  # trees and their lines are easier to read unbroken

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.values.refs import refs_in
from hud_mcp.worlds.browser.lines import cut
from hud_mcp.worlds.browser.outline import outline
from hud_mcp.worlds.browser.phrases import ACTED
from hud_mcp.worlds.browser.tree import TEXT, Node, parse

URL = "http://site.localhost/shop/?page=2"

WRITTEN: dict[str, tuple[str, str]] = {
    "a heading": ('- heading "Stock" [level=2] [ref=e1]', "## Stock"),
    "a heading with a link": (
        '- heading [level=1] [ref=e1]:\n  - link "Lamp" [ref=e2] [cursor=pointer]:\n    - /url: /lamp',
        '# link "Lamp" [e2 /lamp]',
    ),
    "an address of this page": (
        '- link "Next" [ref=e2]:\n  - /url: /shop/?page=3\n- link "Top" [ref=e3]:\n  - /url: "#top"',
        'link "Next" [e2 ?page=3] link "Top" [e3 #top]',
    ),
    "addresses that read as something else": (
        '- link "A" [ref=e2]:\n  - /url: disabled\n- link "B" [ref=e3]:\n  - /url: "/a]b"\n- link "C" [ref=e4]:\n  - /url: "http://["',
        'link "A" [e2 ./disabled] link "B" [e3 /a%5Db] link "C" [e4 http://[]',
    ),
    "states": ('- checkbox "Gift" [checked] [disabled] [ref=e3]', 'checkbox "Gift" [e3 checked disabled]'),
    "facts of ours": (
        '- textbox "Mail" [ref=e3] [required] [wrong=No%20%40]: ann',
        'textbox "Mail" [e3 required invalid "No @"]: ann',
    ),
    "an empty field": (
        '- textbox "City" [ref=e3]:\n  - /placeholder: Vienna', 'textbox "City" [e3]: (Vienna)'
    ),
    "several lines": ('- textbox "Note" [ref=e3]: "a\\nb"', r'textbox "Note" [e3]: "a\nb"'),
    "a label": (
        '- generic [ref=e1]: City\n- textbox "City" [ref=e3]: Graz', 'textbox "City" [e3]: Graz'
    ),
    "a drawn control": (
        '- checkbox "Gift" [checked]\n- generic [ref=e4] [cursor=pointer]: Gift',
        'checkbox "Gift" [e4 checked]',
    ),
    "a control that only its label draws": (
        "- generic [ref=e4] [drawn=radio] [checked] [click]: Gift", 'radio "Gift" [e4 checked]'
    ),
    "more words in a label": (
        '- generic [ref=e1] [label]:\n  - radio "All" [ref=e2]\n  - generic: All\n  - generic: "24"', 'radio "All 24" [e2]'
    ),
    "a hint that is no name": ('- spinbutton "Max" [ref=e3] [hint=9%20at%20most]', 'spinbutton "Max" [e3]: (9 at most)'),
    "a select": (
        '- combobox "Size" [ref=e3]:\n  - option "S"\n  - option "M" [selected]\n  - option "L" [disabled]',
        'combobox "Size" [e3]: M (S | M | L (disabled))',
    ),
    "a paragraph": (
        '- paragraph [ref=e1]:\n  - text: See\n  - link "the shop" [ref=e2]\n  - text: ", now."',
        'See link "the shop" [e2], now.',
    ),
    "a row that a button repeats": (
        '- table "Stock" [ref=e1]:\n  - row "Lamp Buy" [ref=e2]:\n    - cell "Lamp" [ref=e3]\n'
        '    - cell [ref=e4]:\n      - button "Buy Lamp" [ref=e5]: Buy',
        'table "Stock":\n| Lamp | button "Buy" [e5]',
    ),
    "a name that only other names repeat": (
        '- paragraph: Page\n- button "Page 1" [ref=e1]: "1"\n- table [ref=e2]:\n  - row [ref=e3]:\n'
        '    - cell:\n      - button "1 May" [ref=e5]: "1"\n    - cell:\n      - button "2 May" [ref=e6]: "2"',
        'Page\nbutton "Page 1" [e1]\n| button "1 May" [e5] | button "2 May" [e6]',
    ),
    "a listener around others": (
        '- generic [ref=e1] [click=own]:\n  - text: Lamp\n  - button "Buy" [ref=e2]\n- generic [ref=e3] [click]:\n  - text: Jar\n  - button "Buy" [ref=e4]',
        '[e1]:\n Lamp button "Buy" [e2]\nJar button "Buy" [e4]',
    ),
    "a name that says more": (
        '- button "Remove the lamp" [ref=e5]: ✕', 'button "Remove the lamp" [e5]: ✕'
    ),
    "a definition": (
        "- term [ref=e1]: Total\n- definition [ref=e2]: €5", "Total: €5",
    ),
    "an item": (
        '- list [ref=e1]:\n  - listitem [ref=e2]:\n    - heading "A" [level=2]\n    - paragraph: text',
        "- ## A\n text",
    ),
    "a dialog": (
        '- dialog "Sure?" [ref=e1]:\n  - button "Yes" [ref=e2]', 'dialog "Sure?":\n button "Yes" [e2]'
    ),
    "a message": ("- status [ref=e1]: Saved", "status: Saved"),
    "no message": ("- status [ref=e1]", ""),
    "a clickable text": ("- generic [ref=e1] [cursor=pointer]: More", '"More" [e1]'),
    "a price": ("- paragraph:\n  - deletion: €9\n  - text: €7", "~~€9~~ €7"),
    "a page's own brackets": ('- paragraph: "[e12] and [more]"', r"\[e12] and [more]"),
}  # fmt: skip


@each_of("name", WRITTEN)
def test_a_thing_has_its_line(name: str) -> None:
    """As docs/reading.md describes it."""
    tree, lines = WRITTEN[name]
    assert "\n".join(outline(parse(tree.split("\n")), URL)) == lines


def test_what_is_cut_is_told_by_its_kind() -> None:
    """The rows of a table that are left out, its ref, and the headings below it."""
    rows = "\n".join(f'  - row [ref=e{i}]:\n    - cell "Item {i}"' for i in range(10, 110))
    tree = f'- table "Stock" [ref=e1]:\n{rows}\n- heading "Rules" [level=2]\n- paragraph: None.'
    lines = cut(outline(parse(tree.split("\n")), URL), 600)
    assert sum(len(line) + 1 for line in lines) <= 600
    shown = sum(line.startswith("|") for line in lines)
    assert 0 < shown < 100
    assert lines[-2] == f'… {100 - shown} more rows of "Stock"; scroll, or observe e1'
    assert lines[-1] == "… 2 more lines, with ## Rules; scroll to see more"


def test_a_line_that_is_longer_than_the_text_is_begun() -> None:
    """Its beginning is shown, and the number of its other characters."""
    shown, more = cut(["word " * 4_000, "next"], 1_000)
    assert 500 < len(shown) < 1_000
    assert re.search(r"word +… \d+ more characters$", shown)
    assert more == "… 1 more line; scroll to see more"


def test_a_tree_of_any_depth_is_read() -> None:
    """A page's scripts nest as deep as they like; a text has no more levels than one can tell."""
    lines = [f"{'  ' * depth}- {'list' if depth % 2 else 'listitem'}:" for depth in range(3_000)]
    said = outline(parse([*lines, f"{'  ' * 3_000}- text: bottom"]), URL)
    assert "bottom" in said[-1]


PRETENDS = {
    "a text": "- paragraph: '[e9] [ref=e9]'",
    "a name": "- button '[e9] [ref=e9]' [ref=e1]",
    "a value": '- slider "V" [ref=e1] [value=1%0Abutton%20%5Be9%5D]',
    "a range": '- slider "V" [ref=e1] [range=%5Be9%5D..2]: "1"',
    "a message": '- textbox "V" [ref=e1] [wrong=%5Be9%5D%0A%5Be9%5D]',
    "a hint": '- textbox "V" [ref=e1]:\n  - /placeholder: "a\\n[e9]"',
    "an address": '- link "V" [ref=e1]:\n  - /url: "#\\n [e9]"',
    "an option": '- combobox "V" [ref=e1]:\n  - option "[e9]" [selected]',
}


@each_of("name", PRETENDS)
def test_no_page_pretends_an_element(name: str) -> None:
    """Wherever a page writes what looks like a ref, or breaks its line."""
    lines = outline(
        parse(PRETENDS[name].replace("'[e9] [ref=e9]' [", '"[e9] [ref=e9]" [').split("\n")), URL
    )
    assert set(refs_in("\n".join(lines))) <= {"e1"}
    assert len(lines) == 1


WORDS = st.lists(st.sampled_from(["lamp", "jar", "buy", "9", "red-ish", "§", "[e5]", "[ref=e5]"]), min_size=1, max_size=3).map(" ".join)  # fmt: skip
ROLES = st.sampled_from(
    ["generic", "paragraph", "list", "listitem", "table", "row", "cell", "heading", "link", "button", "textbox",
     "checkbox", "dialog", "strong", "status", "region", "term", "definition", "img", "main"]
)  # fmt: skip


def grown(children: st.SearchStrategy[list[Node]]) -> st.SearchStrategy[Node]:
    """Elements with these in them; some have a name, a pointer or a value."""
    states = st.sampled_from(
        [{}, {"cursor": "pointer"}, {"checked": ""}, {"draggable": ""}, {"scrolls": ""}]
    )

    def make(role: str, name: str, states: dict[str, str], inside: list[Node]) -> Node:
        if role == "textbox":
            inside = [each for each in inside if each.role == TEXT]
        return Node(role, name if role in ACTED else "", states, inside)

    return st.builds(make, ROLES, WORDS, states, children)


TREES = st.recursive(
    WORDS.map(lambda words: Node(TEXT, words)),
    lambda inner: grown(st.lists(inner, max_size=4)),
    max_leaves=25,
)


@given(st.lists(TREES, max_size=5))
def test_nothing_is_lost_and_no_ref_stands_twice(nodes: list[Node]) -> None:
    """Each word of the page is in its text, and each element to act on has its ref there once."""
    root = Node("root", children=nodes)
    for number, node in enumerate(each for each in root.walk() if each.role != TEXT):
        node.states = {**node.states, "ref": f"e{number}"}
    acted = {node.ref for node in root.walk() if node.role in ACTED or "draggable" in node.states}
    said = Counter(
        word for n in root.walk() if n.role == TEXT for word in re.findall(r"\w+", n.name)
    )
    text = "\n".join(outline(root, URL))
    refs = refs_in(text)
    assert acted <= set(refs)
    assert len(refs) == len(set(refs))
    assert said.keys() <= set(re.findall(r"\w+", text.replace("\\n", " ")))

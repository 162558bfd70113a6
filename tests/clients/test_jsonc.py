"""A member is put into JSON with comments or taken out; every other character stays."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.errors import InvalidConfiguration
from hud_mcp.plugins.install import jsonc
from hud_mcp.plugins.install.jsonc import comments_of

PATH = ("mcpServers", "hud-mcp")
ENTRY = {"command": "/opt/ü/hud-mcp", "args": ["serve", "browser"], "env": {}}

BLANKS = st.sampled_from(["", " ", "\n", "\n  ", " // c\n", "/* d, { */", "\r\n\t", ' // "e"\r\n'])
NAMES = st.sampled_from(["mcpServers", 'a"//', "ü", "hud"])
SCALARS = st.sampled_from(["1", "null", "-2.5e3", '"x // y"', "[1, 2,]", "[/*k*/]", "{}"])


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """The text of an object, with comments anywhere and perhaps a comma at the end."""
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    text = "{" + draw(BLANKS)
    for name in names:
        value = draw(st.one_of(SCALARS, objects(depth + 1)) if depth < 2 else SCALARS)
        text += json.dumps(name) + draw(BLANKS) + ":" + draw(BLANKS) + value + draw(BLANKS)
        if name != names[-1] or draw(st.booleans()):
            text += "," + draw(BLANKS)
    return text + "}"


def comments(text: str) -> list[str]:
    """The comments of a text, in order."""
    return [text[start:end] for start, end in comments_of(text)]


@given(BLANKS, objects(), BLANKS)
@example("// mine\n", '{"mcpServers": {"a": 1 // one\n}}', "")
@example("", '{\n\t"mcpServers": {\n\t\t"a": {},\n\t},\n}', "\n")
@example("", '{"mcpServers":{"a":1,}}', "")
@example("", '{"mcpServers":{"a":\r\n1}}', "")
def test_what_was_put_can_be_taken_out_and_leaves_the_text_as_it_was(
    before: str, text: str, after: str
) -> None:
    """No comment is lost, no other value changes, and a second time changes nothing."""
    text = before + text + after
    value = jsonc.read(text)
    if not isinstance(value.get("mcpServers", {}), dict):
        return
    edited = jsonc.put(text, PATH, ENTRY)
    servers = {**value.get("mcpServers", {}), "hud-mcp": ENTRY}
    assert jsonc.read(edited) == {**value, "mcpServers": servers}
    assert comments(edited) == comments(text)
    assert jsonc.put(edited, PATH, ENTRY) == edited
    without = jsonc.drop(edited, PATH)
    assert comments(without) == comments(text)
    if value.get("mcpServers"):
        assert without == text


@each_of("text", ["", "\n", "// nothing yet\n", "/* nor here */"])
def test_an_empty_file_becomes_one_with_the_member_alone(text: str) -> None:
    """An editor leaves such a file when nothing was ever set."""
    edited = jsonc.put(text, PATH, ENTRY)
    assert edited.startswith(text.strip())
    assert jsonc.read(edited) == {"mcpServers": {"hud-mcp": ENTRY}}


def test_strict_json_stays_strict() -> None:
    """Clients that read no comments can read what was written, indented as the rest is."""
    text = '{\n    "theme": "dark",\n    "mcpServers": {}\n}\n'
    edited = jsonc.put(text, PATH, ENTRY)
    assert json.loads(edited) == {"theme": "dark", "mcpServers": {"hud-mcp": ENTRY}}
    assert '\n        "hud-mcp": {\n            "command"' in edited


@each_of(
    ("text", "place"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: a comma or }"),
        ('{"a": }', "line 1, column 7: a value"),
        ('{"a": "x\n"}', "line 1, column 9: a text that ends on its line"),
        ("{'a': 1}", "line 1, column 2: a name in double quotes"),
        ('{"a" 1}', "line 1, column 6: a colon"),
        ("[1 2]", "line 1, column 4: a comma or ]"),
        ("{} {}", "line 1, column 4: the end of the file"),
        ('{\n"a": 1', "line 2, column 7: a comma or }"),
        ("[" * 1000, "line 1, column 202: no more than"),
    ],
)
def test_a_text_that_is_no_json_is_refused_with_its_place(text: str, place: str) -> None:
    """Line and column, what is expected, and what is there."""
    with pytest.raises(InvalidConfiguration) as refused:
        jsonc.put(text, PATH, ENTRY)
    assert str(refused.value).startswith(place)


def test_something_else_than_an_object_is_not_replaced() -> None:
    """A list where servers were to be is somebody's own."""
    with pytest.raises(InvalidConfiguration, match=r"line 1, column 16: \{…\} is expected there"):
        jsonc.put('{"mcpServers": []}', PATH, ENTRY)

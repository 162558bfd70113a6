"""A table is put into TOML or taken out, and the rest stays line by line."""

import tomllib

import pytest
from tables import each_of

from hud_mcp.errors import InvalidConfiguration
from hud_mcp.plugins.install import toml

PATH = ("mcp_servers", "hud-mcp")
ENTRY = {"command": "/opt/ü/hud-mcp", "args": ["serve", "browser"], "env": {"A": "b"}}


@each_of(
    "text",
    [
        "",
        '# top\nmodel = "x"  # m\n\n[mcp_servers.a]\ncommand = "b" # c\n\n[tools]\nweb = true\n',
        "[mcp_servers]\n\n[other]\nx = 1\n",
        'mcp_servers = { a = { command = "x" } }\n',
        'mcp_servers.a.command = "x"\n[z]\n',
        "[a]\r\nb = 1\r\n",
        "[[projects]]\nx = 1\n# the end\n",
    ],
)
def test_a_table_that_was_put_can_be_taken_out_and_leaves_the_text_as_it_was(text: str) -> None:
    """Other tables, comments and line ends stay, wherever tables of that kind are."""
    edited = toml.put(text, PATH, ENTRY)
    before = tomllib.loads(text)
    servers = {**before.get("mcp_servers", {}), "hud-mcp": ENTRY}
    assert tomllib.loads(edited) == {**before, "mcp_servers": servers}
    assert toml.put(edited, PATH, ENTRY) == edited
    assert toml.drop(edited, PATH) == text


def test_comments_behind_a_table_stay_where_the_table_goes() -> None:
    """They belong to what follows."""
    text = "\n# my tools\n[tools]\nx = 1\n"
    assert toml.drop(toml.put("", PATH, ENTRY) + text, PATH) == text


def test_one_value_of_a_table_changes_and_the_others_stay() -> None:
    """What a person has added to an entry is still there, with its comment."""
    text = toml.put("", PATH, {"command": "x", "args": []}) + "startup_timeout_sec = 60 # slow\n"
    edited = toml.put(text, (*PATH, "args"), ["serve"])
    assert edited.endswith("startup_timeout_sec = 60 # slow\n")
    assert tomllib.loads(edited)["mcp_servers"]["hud-mcp"]["args"] == ["serve"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = ", "line 1, column 5: the file ends too early."),
        ("x = 1\n[a\n", "line 2, column 3: Unexpected character"),
    ],
)
def test_a_text_that_is_no_toml_is_refused_with_its_place(text: str, place: str) -> None:
    """Line and column."""
    with pytest.raises(InvalidConfiguration) as refused:
        toml.put(text, PATH, ENTRY)
    assert str(refused.value).startswith(place)


def test_something_else_than_a_table_is_not_replaced() -> None:
    """A text where servers were to be is somebody's own."""
    with pytest.raises(InvalidConfiguration, match="what is not a table"):
        toml.put('mcp_servers = "none"', PATH, ENTRY)

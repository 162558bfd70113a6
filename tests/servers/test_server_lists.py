"""The lists of a server: each tool unchanged, kept by command and version, and compared."""

from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.server import Server
from tables import each_of
from waiting import until

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.servers.listing import (
    Listing,
    Watch,
    changes,
    list_server,
    listing_file,
    offers,
)
from hud_mcp.plugins.servers.program import Program

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ = {
    "name": "read_file",
    "title": "Read a file",
    "description": "Reads.",
    "inputSchema": SCHEMA,
    "outputSchema": {"type": "object", "properties": {"text": {"type": ["string", "null"]}}},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "data:image/png;base64,AA=="}],
    "_meta": {"acme/kind": None},
}
"""A tool with everything that a server may say of one."""


class Fake:
    """A server's lists by their kind."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists

    async def list(self, kind: str) -> list[dict[str, Any]]:
        """Return the entries of a kind."""
        return self.lists.get(kind, [])


def named(*names: str) -> list[dict[str, Any]]:
    """Tools of these names."""
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def test_a_tool_is_offered_in_its_servers_words() -> None:
    """Title, schemas, annotations, icons and metadata, with no word of ours."""
    (offer,) = offers([READ], prefix="files")
    assert (offer.name, offer.entry, offer.note) == ("read_file", READ, "")


def test_a_name_of_ours_gets_the_servers() -> None:
    """And agents are told; a tool that is left out by the author is not told of."""
    found = list(offers(named("response", "read", "hidden"), prefix="files", without={"hidden"}))
    assert [each.name for each in found] == ["files_response", "read"]
    assert "response is files_response here" in found[0].note
    assert found[1].note == ""


@each_of(
    "entry, told",
    [
        ({"name": "no schema"}, "names"),
        ({"name": "a/b", "inputSchema": {}}, "names"),
        ({"name": "x" * 65, "inputSchema": {}}, "names"),
        ({"inputSchema": {}}, "names"),
        ({"name": ["x"], "inputSchema": {}}, "names"),
        ({"name": "a", "inputSchema": {"type": "string"}}, "object"),
        ({"name": "a", "inputSchema": True}, "object"),
        ({"name": "a", "inputSchema": {"properties": []}}, "properties"),
        ({**READ, "execution": {"taskSupport": "required"}}, "task"),
        ({**READ, "annotations": "all of them"}, "refuse"),
        ({**READ, "title": 7}, "refuse"),
    ],
)
def test_a_tool_that_clients_refuse_is_left_out_alone(entry: dict[str, Any], told: str) -> None:
    """With its reason; the others are offered."""
    first, second = offers([entry, *named("other")], prefix="files", without={"none"})
    assert (first.name, second.name) == (None, "other")
    assert told in first.note


def test_a_schema_of_results_that_cannot_be_sent_is_left_out() -> None:
    """The tool stays, and agents are told."""
    (offer,) = offers([{**READ, "outputSchema": "text"}], prefix="files")
    assert offer.name == "read_file"
    assert "outputSchema" not in offer.entry
    assert "schema of results" in offer.note


def test_a_name_that_is_listed_twice_is_offered_once() -> None:
    """The first one: a second would hide it from some hosts."""
    first, second = offers(named("read", "read"), prefix="files")
    assert (first.name, second.name) == ("read", None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ("title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta")


@pytest.mark.long
@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON), max_size=3))
def test_any_list_leaves_one_that_clients_of_both_eras_read(odd: list[dict[str, Any]]) -> None:
    """Whatever a server lists, a client's list is never broken as a whole."""
    listed = [{"name": f"odd_{n}", **each} for n, each in enumerate(odd)] + named("fine")
    shown = [{**each.entry, "name": each.name} for each in offers(listed, prefix="p") if each.name]
    assert shown[-1]["name"] == "fine"
    tools = [mcp_types.Tool.model_validate(each) for each in shown]

    async def list_tools(_context: Any, _params: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=tools)

    async def ask() -> None:
        server = Server("any", on_list_tools=list_tools)
        for mode in ("2026-07-28", "legacy"):
            async with Client(server, mode=mode) as client:
                assert len((await client.list_tools()).tools) == len(tools)

    anyio.run(ask)


async def test_a_listing_is_kept_whole(tmp_path: Path) -> None:
    """With its prompts and resources; a file that is no listing is none."""
    instance = Fake(tools=[READ], prompts=[{"name": "commit"}], resources=[{"uri": "a:b"}])
    listing = await list_server(instance, era="2025-11-25", server={"name": "files"})
    listing.keep(tmp_path / "kept.json")
    assert Listing.kept(tmp_path / "kept.json") == listing
    assert Listing.kept(tmp_path / "none.json") is None
    for text in ("", "[]", "{}", '{"form": 99}', '{"form": 1, "tool": []}'):
        (tmp_path / "kept.json").write_text(text)
        assert Listing.kept(tmp_path / "kept.json") is None


async def test_lists_of_any_size_are_refused() -> None:
    """A model could not read them, and each start would."""
    with pytest.raises(EnvironmentFailed, match="bytes"):
        await list_server(Fake(tools=[{**READ, "description": "x" * 5_000_000}]))


def test_a_listing_is_kept_by_command_and_version(home: Path) -> None:
    """Not by the place of the program, nor by the values of its variables."""
    program = Program(("/opt/a/bin/server", "."), {}, "1.0", "d", "server")
    moved = Program(("/opt/b/bin/server", "."), {}, "1.0", "d", "server")
    newer = Program(("/opt/a/bin/server", "."), {}, "1.1", "d", "server")
    first, second, third, fourth = (
        listing_file(each, env=env, era="auto", files="")
        for each, env in ((program, {}), (moved, {}), (newer, {}), (program, {"TOKEN": "1"}))
    )
    assert first == second
    assert len({first, third, fourth}) == 3
    assert first.is_relative_to(home)


def test_an_instance_that_lists_otherwise_is_told() -> None:
    """With the names of what is gone, new and changed; their order is no difference."""
    kept = [READ, *named("gone", "same")]
    now = [*named("same", "new"), {**READ, "description": "Writes."}]
    found = changes(kept, now)
    assert (found.gone, found.new, found.changed) == (("gone",), ("new",), ("read_file",))
    assert all(name in str(found) for name in ("gone", "new", "read_file"))
    assert not changes(kept, list(reversed(kept)))


async def test_a_list_that_changes_is_read_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that tells of changes without an end is not asked without an end."""
    monkeypatch.setattr("hud_mcp.plugins.servers.listing._RELIST_S", 0.2)
    instance = Fake(tools=named("a", "hidden"))
    watch = Watch(named("a"), {"hidden"})
    assert not await watch.look(instance)
    for name, told in (("b", True), ("c", False)):
        instance.lists["tools"] = [*instance.lists["tools"], *named(name)]
        assert not await watch.look(instance), "nobody told of a change"
        watch.is_due = True
        assert bool(await watch.look(instance)) is told
    change = await until(lambda: watch.look(instance))
    assert change.new == ("c",)

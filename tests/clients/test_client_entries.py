"""The servers of known clients are found by the client's name and their own."""

from pathlib import Path

import pytest
from made_homes import FILES, make_home
from tables import each_of

from hud_mcp.errors import InvalidConfiguration, SourceNotFound
from hud_mcp.plugins.install.client import Machine
from hud_mcp.registry import service


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with every client's configuration, on this machine."""
    for client in FILES:
        make_home(tmp_path, client, "linux")
    machine = Machine("linux", tmp_path, {})
    monkeypatch.setattr(Machine, "here", lambda: machine)
    return tmp_path


def test_every_client_has_its_servers_found(person: Path) -> None:
    """By the entry as it is written, whatever the language of the file."""
    found = {client: service("client entries")(client, "other", person) for client in FILES}
    assert {each["other"]["command"] for each in found.values()} == {"npx"}
    assert service("client entries")("vs code", "other", person)["other"]["args"] == ["-y", "other"]


@each_of(
    "client, name, told",
    [("cursr", "other", "cursor"), ("cursor", "othr", "other"), ("zed", "x" * 80, "zed")],
)
def test_a_wrong_name_is_told_with_those_that_are_there(
    person: Path, client: str, name: str, told: str
) -> None:
    """In the client's own file."""
    with pytest.raises(SourceNotFound, match=told):
        service("client entries")(client, name, person)


def test_an_entry_of_our_own_is_refused(person: Path) -> None:
    """A server of ours whose environment is our server would start itself without end."""
    path = person / FILES["cursor"][0]
    own = '"command": "/opt/bin/hud-mcp", "args": ["serve"]'
    path.write_text(f'{{"mcpServers": {{"hud": {{{own}}}}}}}')
    with pytest.raises(InvalidConfiguration, match="itself"):
        service("client entries")("cursor", "hud", person)


def test_all_servers_of_a_client_or_a_file_are_found_without_our_own(person: Path) -> None:
    """An empty name stands for all; each has the folder of its file."""
    own = '"command": "/opt/bin/hud-mcp", "args": ["serve"]'
    text = f'{{"mcpServers": {{"hud": {{{own}}}, "a": {{"command": "x"}}}}}}'
    (person / FILES["cursor"][0]).write_text(text)
    path = person / "deep" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text)
    for client, folder in (("cursor", person), (str(path), path.parent)):
        found = service("client entries")(client, "", person)
        assert found == {"a": {"command": "x", "cwd": str(folder)}}

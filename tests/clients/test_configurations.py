"""Each client's configuration is found, merged and put back, on each system."""

import json
import sys
from pathlib import Path

import pytest
from made_homes import FILES, PLATFORMS, SETTINGS, make_home
from tables import each_of

from hud_mcp.errors import HudMcpError, InvalidConfiguration, SourceNotFound
from hud_mcp.plugins.install.change import Configuration
from hud_mcp.plugins.install.client import (
    CLIENTS,
    Entry,
    Machine,
    find_client,
    is_own,
    kept_variables,
    serve_arguments,
)

ENTRY = Entry("/opt/hud-mcp", ["serve", "browser"])


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_server_is_added_where_the_client_reads_it_and_taken_away_again(
    name: str, platform: str, tmp_path: Path
) -> None:
    """Between both, every line of the person's is there; afterwards the file is as it was."""
    machine, path = make_home(tmp_path, name, platform)
    client = CLIENTS[name]
    assert client.is_on(machine)
    assert client.file(machine) == path
    change = Configuration(client, path).with_entry("hud-mcp", ENTRY)
    backup = change.write()
    assert backup is not None
    assert backup.read_bytes() == SETTINGS[name].encode()
    written = Configuration(client, path)
    assert Entry.read(written.find("hud-mcp")) == ENTRY
    assert Entry.read(written.find("other")).command == "npx"
    lines = path.read_text().splitlines()
    kept = [line for line in SETTINGS[name].splitlines() if line.rstrip(",}") in "".join(lines)]
    assert kept == SETTINGS[name].splitlines()
    assert all(line[0] in "+-@ " for line in change.lines())
    written.without_entry("hud-mcp").write()
    assert path.read_bytes() == SETTINGS[name].encode()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_has_left_nothing_is_given_a_configuration(name: str, tmp_path: Path) -> None:
    """With the folders of it; a second time changes nothing."""
    machine, client = Machine("linux", tmp_path, {}), CLIENTS[name]
    assert not client.is_on(machine)
    path = client.file(machine)
    assert path == tmp_path / FILES[name][0]
    change = Configuration(client, path).with_entry("hud-mcp", ENTRY)
    assert change.write() is None
    assert Configuration(client, path).with_entry("hud-mcp", ENTRY).is_empty
    change.undo()
    assert not path.exists()


def test_variables_move_configurations_as_they_do_for_the_clients(tmp_path: Path) -> None:
    """Each is read where the client's own documentation says that the client reads it."""
    there = str(tmp_path / "there")
    for name, platform, variable, end in (
        ("claude-code", "linux", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "linux", "CODEX_HOME", "config.toml"),
        ("gemini", "darwin", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("zed", "linux", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("vscode", "win32", "APPDATA", "Code/User/mcp.json"),
    ):
        machine = Machine(platform, tmp_path, {variable: there})
        assert CLIENTS[name].file(machine) == tmp_path / "there" / end


def test_claude_desktop_that_is_no_package_has_its_plain_folder(tmp_path: Path) -> None:
    """On Windows, where no package of it has a folder."""
    found = CLIENTS["claude-desktop"].file(Machine("win32", tmp_path, {}))
    assert found == tmp_path / "AppData/Roaming/Claude/claude_desktop_config.json"


@pytest.mark.parametrize("name", ["cursor", "codex"])
def test_what_a_person_added_to_an_entry_stays_in_it(name: str, tmp_path: Path) -> None:
    """A changed command leaves other keys of the same entry alone."""
    client = CLIENTS[name]
    path = tmp_path / "file"
    value = {"command": "/old/hud-mcp", "args": [], "disabled": True}
    change = Configuration(client, path).with_entry("hud-mcp", ENTRY)
    change.write()
    text = path.read_text().replace("/opt/hud-mcp", value["command"])
    added = '"disabled": true, "command"' if name == "cursor" else "disabled = true\ncommand"
    path.write_text(text.replace('"command"' if name == "cursor" else "command", added))
    Configuration(client, path).with_entry("hud-mcp", ENTRY).write()
    found = Configuration(client, path).find("hud-mcp")
    assert found["disabled"] is True
    assert found["command"] == "/opt/hud-mcp"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n  "mcpServers": {,}\n}', "line 2, column 18: a name in double quotes is expected"),
        (b"\xff\xfe{\x00", "is not UTF-8: byte 0"),
    ],
)
def test_a_broken_file_is_named_and_stays_as_it_was(
    content: bytes, said: str, tmp_path: Path
) -> None:
    """With its path, and where it is broken."""
    path = tmp_path / "mcp.json"
    path.write_bytes(content)
    with pytest.raises(InvalidConfiguration) as refused:
        Configuration(CLIENTS["cursor"], path)
    assert str(path) in str(refused.value)
    assert said in str(refused.value)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_somebody_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    """Nor is one undone that was changed after it was written."""
    path = tmp_path / "mcp.json"
    change = Configuration(CLIENTS["cursor"], path).with_entry("hud-mcp", ENTRY)
    path.write_text("{}")
    with pytest.raises(HudMcpError, match="changed during the command"):
        change.write()
    change.undo()
    assert path.read_text() == "{}"


@pytest.mark.skipif(sys.platform == "win32", reason="not on this machine: modes of files")
def test_a_link_stays_one_and_nobody_else_may_read_more_than_before(tmp_path: Path) -> None:
    """People keep their settings in a repository and link to them; some hold keys."""
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("\ufeff{}")
    real.chmod(0o640)
    path = tmp_path / "mcp.json"
    path.symlink_to(real)
    backup = Configuration(CLIENTS["cursor"], path).with_entry("hud-mcp", ENTRY).write()
    assert backup is not None
    assert path.is_symlink()
    assert {each.stat().st_mode & 0o777 for each in (real, backup)} == {0o640}
    assert real.read_text().startswith("\ufeff{")


def test_arguments_mean_the_same_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files become absolute; names of what is shipped, and options after them, stay."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").touch()
    (tmp_path / "rows.jsonl").touch()
    env, rows = str(tmp_path / "env.py"), str(tmp_path / "rows.jsonl")
    assert serve_arguments([]) == ["serve", env]
    assert serve_arguments(["env.py:shop", "browser", "--reward", "hidden"], ["rows.jsonl"]) == [
        *("serve", f"{env}:shop", "browser", "--taskset", rows, "--reward", "hidden")
    ]
    (tmp_path / "env.py").unlink()
    assert serve_arguments([], ["quickstart"])[1:] == [
        *("letter_count", "browser", "--taskset", "quickstart")
    ]


def test_variables_with_a_password_are_not_written() -> None:
    """A store's address may have one; its file is found by any server."""
    given = {"HUD_MCP_STORE": "postgresql://me:secret@db/x", "HUD_MCP_CHROMIUM": "/c", "PATH": "/"}
    given["SSL_CERT_FILE"] = "/certificates"
    assert kept_variables(["/bin/hud-mcp"], given) == {"HUD_MCP_CHROMIUM": "/c"}
    of_uv = kept_variables(["/bin/uvx", "--from", "hud-mcp"], given)
    assert of_uv == {"HUD_MCP_CHROMIUM": "/c", "SSL_CERT_FILE": "/certificates"}


@each_of(
    ("value", "expected"),
    [
        ({"command": "/x/bin/hud-mcp", "args": ["serve"]}, True),
        ({"command": "/usr/bin/python3", "args": ["-m", "hud_mcp", "serve"]}, True),
        ({"command": "uvx", "args": ["--from", "hud_mcp-0.1.0-py3-none-any.whl"]}, True),
        ({"command": "npx", "args": ["other"]}, False),
        ({"url": "https://hud-mcp.example.com"}, False),
        (["hud-mcp"], False),
    ],
)
def test_an_entry_is_our_own_where_it_starts_this_package(value: object, *, expected: bool) -> None:
    """Others are taken away only by force."""
    assert is_own(value) is expected


def test_a_client_is_found_by_its_usual_names() -> None:
    """And a mistyped one by what is meant."""
    assert find_client("VS Code").name == "vscode"
    assert find_client("gemini-cli").name == "gemini"
    with pytest.raises(SourceNotFound, match=r"Did you mean 'cursor'|cursor"):
        find_client("curser")


def test_what_is_written_is_json_for_clients_that_read_no_comments(tmp_path: Path) -> None:
    """Claude's and Windsurf's readers are strict."""
    for name in ("claude-desktop", "claude-code", "windsurf"):
        path = make_home(tmp_path / name, name, "linux")[1]
        Configuration(CLIENTS[name], path).with_entry("hud-mcp", ENTRY).write()
        assert json.loads(path.read_text())["mcpServers"]["hud-mcp"]["command"] == "/opt/hud-mcp"

"""`hud-mcp install` writes a configuration, starts what it wrote, and `uninstall` undoes it."""

import base64
import json
import sys
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from click.testing import CliRunner, Result
from made_homes import SETTINGS, make_home

from hud_mcp.base.process import own_command
from hud_mcp.cli import main
from hud_mcp.plugins.install.change import Configuration
from hud_mcp.plugins.install.client import CLIENTS, WEB, Entry

HERE = "win32" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home that is this process's and its servers'."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    return tmp_path


def run(*arguments: str) -> Result:
    """One call of `hud-mcp`."""
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each == "zed" else pytest.mark.long) for each in CLIENTS],
)
def test_what_is_written_is_started_and_a_task_is_graded(name: str, home: Path) -> None:
    """By the command of the file itself, and then all of it is taken away again."""
    path = make_home(home, name, HERE)[1]
    done = run("install", name, "letter_count")
    assert done.exit_code == 0, done.output
    assert "Graded: count-r-strawberry of letter_count, reward 0" in done.output
    entry = Entry.read(Configuration(CLIENTS[name], path).find("hud-mcp"))
    assert [entry.command, *entry.args] == [*own_command(), "serve", "letter_count"]
    assert Path(entry.command).is_absolute()
    assert (home / "store.sqlite3").is_file()
    (backup,) = path.parent.glob("*.bak")
    assert backup.read_bytes() == SETTINGS[name].encode()
    again = run("install", name, "letter_count", "--no-start")
    assert "has this server already" in again.output
    assert run("uninstall", name).exit_code == 0
    assert path.read_bytes() == SETTINGS[name].encode()


def test_a_server_for_an_ide_of_jetbrains_is_printed_to_be_pasted(home: Path) -> None:
    """The IDE keeps its servers by itself, so no file is written."""
    done = run("install", "jetbrains", "letter_count", "--name", "letters")
    assert done.exit_code == 0, done.output
    entry = json.loads(done.stdout)["mcpServers"]["letters"]
    assert [entry["command"], *entry["args"]] == [*own_command(), "serve", "letter_count"]
    assert "Paste this in the IDE" in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("option", ["--dry-run", "--link", "--no-start"])
def test_a_mistake_in_the_sources_is_told_before_anything_is_shown(option: str, home: Path) -> None:
    """Also where nothing would be written or started."""
    done = run("install", "cursor", "letter_cuont", option)
    assert done.exit_code == 1
    assert "letter_cuont" in done.output
    assert "letter_count" in done.output  # what was meant
    assert "mcpServers" not in done.output
    unread = run("install", "cursor", "letter_count", "--taskset", "nosuch.jsonl", option)
    assert unread.exit_code == 1
    assert "nosuch.jsonl" in unread.output
    assert list(home.iterdir()) == []


def test_a_dry_run_shows_the_change_and_makes_none(home: Path) -> None:
    """No file, no folder, no backup."""
    done = run("install", "vscode", "letter_count", "--dry-run")
    assert done.exit_code == 0, done.output
    assert '+    "hud-mcp": {' in done.output
    assert list(home.iterdir()) == []
    make_home(home, "codex", HERE)
    before = sorted(home.rglob("*"))
    run("install", "codex", "letter_count", "--no-start")
    assert len(list(home.rglob("*.bak"))) == 1
    done = run("uninstall", "codex", "--dry-run")
    assert "-[mcp_servers.hud-mcp]" in done.output
    assert len(sorted(home.rglob("*"))) == len(before) + 1


def test_a_server_that_does_not_start_leaves_the_file_as_it_was(home: Path) -> None:
    """What the server wrote to its standard error is shown."""
    path = make_home(home, "cursor", HERE)[1]
    done = run("install", "cursor", "letter_count", "--", "--reward", "sometimes")
    assert done.exit_code == 1
    assert "'sometimes' is not one of" in done.output
    assert f"{path} is as it was" in done.output
    assert path.read_bytes() == SETTINGS["cursor"].encode()
    assert list(path.parent.iterdir()) == [path]


def test_a_source_that_does_not_load_is_told_before_anything_is_written(home: Path) -> None:
    """With the name that is meant."""
    done = run("install", "cursor", "letter_cuont")
    assert done.exit_code == 1
    assert "letter_count" in done.output
    assert list(home.iterdir()) == []


def test_another_server_of_that_name_is_changed_by_force_alone(home: Path) -> None:
    """Another name, or another's entry; and it is taken away by force alone."""
    path = make_home(home, "windsurf", HERE)[1]
    given = ("install", "windsurf", "letter_count", "--no-start", "--name", "other")
    refused = run(*given)
    assert refused.exit_code == 1
    assert '-    "other": {' in refused.output or '-      "command": "npx"' in refused.output
    assert "--force" in refused.output
    assert path.read_bytes() == SETTINGS["windsurf"].encode()
    refused = run("uninstall", "windsurf", "--name", "other")
    assert refused.exit_code == 1
    assert "is not hud-mcp" in refused.output
    assert run(*given, "--force").exit_code == 0
    assert json.loads(path.read_text())["mcpServers"]["other"]["args"] == ["serve", "letter_count"]


def test_a_configuration_elsewhere_is_named(home: Path) -> None:
    """A project's own, for instance; and variables that the server needs."""
    path = home / "project" / "config.toml"
    given = ("--config", str(path), "--no-start", "--env", "KEY=a=b", "--name", "tasks")
    done = run("install", "codex", "letter_count", *given)
    assert done.exit_code == 0, done.output
    entry = tomllib.loads(path.read_text())["mcp_servers"]["tasks"]
    assert entry["env"] == {"HUD_MCP_STORE": str(home / "store.sqlite3"), "KEY": "a=b"}
    assert run("install", "codex", "--name", "a b").exit_code == 2
    assert run("install", "codex", "--env", "KEY").exit_code == 2


def test_without_a_client_all_are_listed(home: Path) -> None:
    """Which are here, and where each is configured."""
    path = make_home(home, "gemini", HERE)[1]
    listed = run("install").output.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [*CLIENTS, *WEB]
    (line,) = (line for line in listed if line.startswith("gemini"))
    assert line.split()[1:] == ["yes", str(path)]
    assert "no " in listed[1]


def test_a_link_holds_what_would_be_written(home: Path) -> None:
    """Cursor's in base64, VS Code's as a part of a URL; other clients take none."""
    given = ("letter_count", "--link", "--name", "tasks")
    link = urlsplit(run("install", "cursor", *given).output.strip())
    assert (link.scheme, link.netloc) == ("cursor", "anysphere.cursor-deeplink")
    query = parse_qs(link.query)
    assert query["name"] == ["tasks"]
    packed = json.loads(base64.b64decode(query["config"][0]))
    assert [packed["command"], *packed["args"]] == [*own_command(), "serve", "letter_count"]
    link = urlsplit(run("install", "vscode", *given).output.strip())
    assert (link.scheme, link.path) == ("vscode", "mcp/install")
    assert json.loads(unquote(link.query)) == {"name": "tasks", **packed}
    assert "takes no links" in run("install", "zed", *given).output
    assert list(home.iterdir()) == []


def test_a_browser_that_is_not_there_is_told_before_anything_is_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client would start a server whose tasks cannot begin."""
    monkeypatch.setenv("HUD_MCP_CHROMIUM", str(home / "chromium"))
    done = run("install", "cursor", "browser")
    assert done.exit_code == 1
    assert "is not a program that can be run" in done.output
    assert list(home.iterdir()) == []

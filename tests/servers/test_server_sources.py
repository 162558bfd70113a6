"""A server is served by its command alone: `mcp:` with settings before it, or a client's entry."""

import shlex
from pathlib import Path

import pytest
from programs import make_environment, make_package
from tables import each_of

from hud_mcp.errors import InvalidEnvironment, SourceNotFound
from hud_mcp.loading.source import Source, lasting_source
from hud_mcp.plugins.install.client import Machine
from hud_mcp.plugins.servers.source import Written, read


@each_of(
    "source, written",
    [
        ("mcp:npx -y acme .", Written(("npx", "-y", "acme", "."))),
        ("mcp:acme==1.0 -x", Written(("acme==1.0", "-x"))),
        ("mcp:TOKEN=$TOKEN acme", Written(("acme",), {"TOKEN": "$TOKEN"})),
        (
            "mcp:files='my notes' A=b=c acme a=b",
            Written(("acme", "a=b"), {"A": "b=c"}, {"files": "my notes"}),
        ),
        ("mcp:claude-code/git", Written(("claude-code/git",))),
        (
            "mcp:X-API-KEY=$KEY https://acme.example/mcp",
            Written(("https://acme.example/mcp",), {"X-API-KEY": "$KEY"}),
        ),
        *(
            (f"mcp:{name}={shlex.quote(value)} acme", Written(("acme",), {name: value}))
            for name, value in (
                ("MAX_TOKENS", "100000"),
                ("TOKEN_FILE", "/run/secrets/x"),
                ("SECRETS_DIR", "/tmp/some"),
                ("SSH_KEY", "~/.ssh/id_ed25519"),
                ("SORT_KEY", "1234567"),
                ("MONKEY", "a banana"),
                ("AUTHORIZATION", "Bearer $TOKEN"),
                ("API_KEY", "${env:MINE}"),
            )
        ),
    ],
)
def test_a_source_is_read_as_in_a_shell(source: str, written: Written) -> None:
    """And written again in a form that is read alike."""
    assert read(source) == written
    assert read(written.text) == written


@each_of(
    "source, told",
    [
        ("mcp:", "names no server"),
        ("mcp:files=.", "names no server"),
        ("mcp:acme 'x", "quotation"),
        ("mcp:file=. acme", "files"),
        ("mcp:TOKEN=$OTHER acme", "TOKEN"),
        ("mcp:docker run -i acme", "daemon"),
        ("mcp:npm start", "node dist/index.js"),
        ("mcp:files=. https://acme.example/mcp", "files= is of a command"),
        ("mcp:X-Api-Key=hunter22 https://acme.example/mcp", r"X-Api-Key=\$VARIABLE"),
        ("mcp:ACME_TOKEN=hunter22 acme", "would be recorded"),
        ("mcp:GITHUB_PAT=hunter22 acme", "would be recorded"),
        ("mcp:OPENAI_KEY=sk-hunter22 acme", "would be recorded"),
        ("mcp:PASSWORD='hunter22$word' acme", "would be recorded"),
        ("mcp:API_KEY='${X:-hunter22}' acme", "would be recorded"),
        ("mcp:AUTHORIZATION='Bearer hunter22 $X' acme", "would be recorded"),
        ("mcp:API_KEY='hunter $X' acme", "would be recorded"),
        ("mcp:DB_PASSWORD=12345678 acme", "would be recorded"),
    ],
)
def test_a_source_that_cannot_be_served_is_told(source: str, told: str) -> None:
    """Before a session starts; a secret is not in the words."""
    with pytest.raises((SourceNotFound, InvalidEnvironment), match=told) as raised:
        Source(source).load()
    assert "hunter22" not in str(raised.value)


def test_a_source_means_the_same_from_any_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files and scripts get absolute paths; paths of the session's folder stay."""
    for name in ("server.py", "notes.txt"):
        (home / name).write_text("")
    (home / "docs").mkdir()
    monkeypatch.chdir(home)
    found = lasting_source("mcp:files=docs python server.py notes.txt docs .")
    assert found == f"mcp:files={home}/docs python {home}/server.py notes.txt docs ."
    monkeypatch.chdir("/")
    assert lasting_source(found) == found
    assert lasting_source("mcp:npx -y acme .") == "mcp:npx -y acme ."


def test_an_environment_has_the_version_of_its_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version is another environment to the record, under the same name."""
    program = make_package(make_environment(home / "v"), "acme")
    monkeypatch.setenv("TOKEN", "a secret of mine")
    (first,) = Source(f"mcp:TOKEN=$TOKEN {program}").load()
    assert first.name == "acme"
    assert Source(f"mcp:TOKEN=$TOKEN {program}").load() == [first]
    assert "1.2.3" in first.made_of
    assert "a secret of mine" not in first.made_of


def test_a_clients_entry_is_served(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its variables, whose values are secrets and in no digest."""
    program = make_package(make_environment(home / "v"), "acme")
    entry = f'{{"command": "{program}", "args": ["-x"], "env": {{"TOKEN": "private value"}}}}'
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text(f'{{"mcpServers": {{"mine": {entry}}}}}')
    monkeypatch.setattr(Machine, "here", lambda: Machine("linux", home, {}))
    (found,) = Source("mcp:cursor/mine").load()
    assert found.name == "mine"
    assert "private value" not in found.made_of
    with pytest.raises(SourceNotFound, match="mine"):
        Source("mcp:cursor/mien").load()

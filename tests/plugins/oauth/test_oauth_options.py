"""The people and the addresses of a server with sign-in are checked before it answers anybody."""

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from signing_in import PASSWORD
from tables import each_of

from hud_mcp.cli import main
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.oauth.options import read_identity
from hud_mcp.plugins.oauth.people import PasswordFile, verify
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a password file that there is not yet."""
    path = tmp_path / "folder" / "users"
    monkeypatch.setenv("HUD_MCP_OAUTH_USERS", str(path))
    return path


def run(*arguments: str, said: str = "") -> tuple[int, str]:
    """Run `hud-mcp users`; its status and what it prints."""
    done = CliRunner().invoke(main, ["users", *arguments], input=said)
    return done.exit_code, done.output


def check_private(users: Path) -> None:
    """Nobody else reads the file, and who does finds no password."""
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    assert PASSWORD not in users.read_text()


async def test_people_are_added_listed_and_removed(users: Path) -> None:
    """The file is the owner's alone, and has no password."""
    assert run("add", "ann", said=f"{PASSWORD}\n")[0] == 0
    assert run("add", "olga", "--operator", said=f"{PASSWORD}\n")[0] == 0
    assert run("list") == (0, "ann\nolga\toperator\n")
    check_private(users)
    people = PasswordFile(users)
    found = await verify(people, "olga", PASSWORD)
    assert found is not None
    assert found.is_operator
    assert await verify(people, "ann", "another one") is None
    assert await verify(people, "nobody", PASSWORD) is None
    assert run("add", "olga", said="another password\n")[0] == 0
    assert await verify(people, "olga", PASSWORD) is None
    assert run("remove", "olga")[0] == 0
    status, said = run("remove", "olgo")
    assert status == 1
    assert "olgo" in said
    assert run("list") == (0, "ann\n")


@each_of(
    ("name", "password"),
    [
        ("ann", "short"),
        ("ann", ""),
        ("ann:operator", PASSWORD),
        ("#operator", PASSWORD),
        ("token", PASSWORD),
        ("a b", PASSWORD),
        ("a" * 65, PASSWORD),
    ],
)
def test_a_name_or_a_password_that_cannot_be_one_changes_nothing(
    users: Path, name: str, password: str
) -> None:
    """The error says what it takes."""
    assert run("add", name, said=f"{password}\n")[0] == 1
    assert not users.exists()


@each_of(
    ("given", "variables", "said"),
    [
        ({"host": "0.0.0.0"}, {}, "public_url"),
        ({"public_url": "http://tasks.example.com"}, {}, "https://"),
        ({"replica": "r1"}, {}, "the same public_url"),
        ({"oauth": "http://login.example.com"}, {}, "https://"),
        ({}, {}, "hud-mcp users add"),
        ({}, {"PASSCODE": "short"}, "at least 8"),
        ({}, {"PASSCODE": PASSWORD, "REGISTRATION": "no"}, "closed"),
    ],
)
async def test_a_setting_that_cannot_work_ends_the_start(
    users: Path, given: dict[str, str], variables: dict[str, str], said: str
) -> None:
    """Before anybody is answered, with what to do."""
    sessions = SimpleNamespace(store=Store(users.with_name("store.sqlite3")))
    options = {"oauth": "", "public_url": None, "replica": None, **given}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(f"HUD_MCP_OAUTH_{name}", value)
        with pytest.raises(HudMcpError, match=said):
            await read_identity(options, sessions, given.get("host", "127.0.0.1"))


async def test_a_server_without_the_option_asks_nobody(tmp_path: Path) -> None:
    """And a passcode does not stay where its children would find it."""
    given: dict[str, Any] = {"oauth": None, "public_url": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUD_MCP_OAUTH_PASSCODE", PASSWORD)
        sessions = SimpleNamespace(store=Store(tmp_path / "store.sqlite3"))
        assert await read_identity(given, sessions, "0.0.0.0") is None
        done = CliRunner().invoke(main, ["serve", "letter_count", "--oauth"])
        assert done.exit_code == 2
        assert "--http" in done.output

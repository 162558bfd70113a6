"""The commands by name, and the secrets that `hud-mcp serve` takes."""

import base64
import secrets

import pytest
from click.testing import CliRunner

from hud_mcp.cli import main
from hud_mcp.cli.serve import read_tokens
from hud_mcp.errors import HudMcpError


@pytest.mark.parametrize(
    ("given", "meant"), [("srve", "serve"), ("evl", "eval"), ("regrad", "regrade")]
)
def test_a_misspelt_command_is_suggested(given: str, meant: str) -> None:
    """In one line on stderr, with all that there are, and status 2."""
    result = CliRunner().invoke(main, [given])
    assert result.exit_code == 2
    assert f"There is no command {given!r}. Did you mean {meant!r}?" in result.stderr
    assert result.stdout == ""


def test_every_command_is_listed_and_shows_its_help() -> None:
    """Each that the list names loads, and says what it does."""
    listed = CliRunner().invoke(main, ["--help"]).output
    names = [
        line.split()[0] for line in listed.partition("Commands:")[2].splitlines() if line.strip()
    ]
    assert {"serve", "eval", "regrade", "tasks"} <= set(names)
    for name in ("eval", "regrade"):
        shown = CliRunner().invoke(main, [name, "--help"])
        assert shown.exit_code == 0
        assert "Exit status:" in shown.output


def test_a_secret_may_be_padded_base64() -> None:
    """What follows its first = is padding, and no secret of a principal's."""
    for size in (16, 17, 18, 32):
        secret = base64.b64encode(secrets.token_bytes(size)).decode()
        assert read_tokens([secret]) == {secret: "token"}
        assert read_tokens([f"ann={secret}"]) == {secret: "ann"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["short"], "needs at least 8 characters"),
        (["ann=short"], "needs at least 8 characters"),
        (["ann=the-same-secret", "bob=the-same-secret"], "have the same --token"),
    ],
)
def test_secrets_that_protect_nobody_are_refused(given: list[str], said: str) -> None:
    """Without showing them."""
    with pytest.raises(HudMcpError, match=said) as got:
        read_tokens(given)
    assert "the-same-secret" not in str(got.value)

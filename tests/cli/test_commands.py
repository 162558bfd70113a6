"""The commands by name, and the secrets that `hud-mcp serve` takes."""

import base64
import secrets
from pathlib import Path

import pytest
from click.testing import CliRunner
from kept_runs import AT, record_job

from hud_mcp.cli import main
from hud_mcp.cli.tokens import quotas_of_tokens, read_one_token, read_tokens
from hud_mcp.errors import HudMcpError
from hud_mcp.record.job import Job


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
        assert read_tokens([secret], None) == {secret: "token"}
        assert read_tokens([f"ann={secret}"], None) == {secret: "ann"}


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
        read_tokens(given, None)
    assert "the-same-secret" not in str(got.value)


def test_tokens_come_from_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One a line, beside those of the command line; one that others may read is named."""
    file = tmp_path / "tokens"
    file.write_text("# who may come in\nann=the-secret-of-ann\n\nthe-secret-of-others\n")
    file.chmod(0o600)
    found = read_tokens(["bob=the-secret-of-bob"], str(file))
    assert found == {
        "the-secret-of-bob": "bob",
        "the-secret-of-ann": "ann",
        "the-secret-of-others": "token",
    }
    assert not caplog.records
    file.write_text("only-this-one\n")
    file.chmod(0o644)
    assert read_one_token(None, str(file)) == "only-this-one"
    assert "chmod 600" in caplog.text
    caplog.clear()
    read_tokens([], str(file))
    quotas_of_tokens(str(file))
    assert len(caplog.records) == 1
    with pytest.raises(HudMcpError, match="There are 2 tokens"):
        read_one_token("the-other-one", str(file))


@pytest.mark.parametrize(
    ("text", "said"), [("# nothing\n", "holds no token"), ("abc", "at least 8")]
)
def test_a_file_without_a_secret_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """It would open the server to nobody, or to who guesses."""
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(HudMcpError, match=said):
        read_tokens([], str(file))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ev", "plain,eval"),
        ("eval qui", "plain,quickstart"),
        ("serve lett", "plain,letter_count"),
        ("jobs --store {store} job-a", "plain,job-abc"),
        ("trace --store {store} ", "plain,job-abc"),
        ("nonsense x", ""),
    ],
)
def test_a_shell_completes_names_and_ids(tmp_path: Path, typed: str, meant: str) -> None:
    """Of commands, tasksets, sources and jobs; of what is no command, nothing."""
    store = tmp_path / "store.sqlite3"
    record_job(store, Job(id="job-abc", name="a", created_at=AT), [], {})
    words = f"hud-mcp {typed.format(store=store)}"
    asked = {"_MAIN_COMPLETE": "bash_complete", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(words.count(" "))
    done = CliRunner(env=asked).invoke(main, prog_name="main")
    assert meant in done.output.splitlines() or meant == done.output.strip()
    assert "Traceback" not in done.output

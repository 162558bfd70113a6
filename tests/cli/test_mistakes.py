"""What a mistake says: what was given, what was expected, and what to do next."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kept_runs import AT, record_job

from hud_mcp.cli import main
from hud_mcp.record.job import Job

ENVIRONMENT = """
from typing import Literal

from hud_mcp import BrowserWorld, Environment

COUNTRIES = tuple(f"country-{{number}}" for number in range(130))
env = Environment("shop", version="1")


{before}
@env.template
async def visit({arguments}):
    yield "Where?"
    yield 1.0
"""


def write_env(folder: Path, *, before: str = "", arguments: str = "") -> Path:
    """An author's file."""
    file = folder / "env.py"
    file.write_text(ENVIRONMENT.format(before=before, arguments=arguments))
    return file


def run(*arguments: object, **env: str) -> Result:
    """Run a command in this process."""
    return CliRunner(env={"COLUMNS": "120", **env}).invoke(main, [str(each) for each in arguments])


READING = (
    ("jobs",), ("trace",), ("view",), ("export", "job-1", "--to", "jsonl"),
    ("regrade", "job-1"), ("redact", "job-1", "--fields", "text"),
)  # fmt: skip


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_store_that_is_not_there_is_named_where_it_is_read(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """With one of a like name, by option and by variable; none is made, and nothing is listed."""
    (tmp_path / "store.sqlite3").touch()
    wanted = tmp_path / "stor.sqlite3"
    results = [run(*command, "--store", wanted)]
    if command != ("view",):  # which may wait for what a server is going to record
        results.append(run(*command, HUD_MCP_STORE=str(wanted)))
    for result in results:
        assert result.exit_code == 1, result.output
        assert f"There is no store at {wanted}. Did you mean '{tmp_path}/store.sqlite3'?" in (
            result.stderr
        )
        assert result.stdout == ""
    assert not wanted.exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("mysql://user:secret@host/x", "a store is a SQLite file, or in PostgreSQL, and not in 'm"),
        ("folder", "folder is a folder. Name a file in it, such as"),
        ("notes.txt", "notes.txt is not an SQLite file, and stays as it is. Name another file."),
    ],
)
def test_what_cannot_be_a_store_is_refused_before_anything_is_done(
    tmp_path: Path, place: str, said: str
) -> None:
    """By what reads and by what writes; nothing is to be installed, and no secret is shown."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("Not a database, but of some length.")
    given = place if "://" in place else str(tmp_path / place)
    for command in (("jobs",), ("eval", "quickstart", "--agent", "nop"), ("serve", "--http", "0")):
        result = run(*command, "--store", given)
        assert (result.exit_code, said in result.stderr) == (1, True), result.output
        assert "secret" not in result.output
        assert "install" not in result.output
    assert (tmp_path / "notes.txt").read_text().startswith("Not a database")


@pytest.mark.long
def test_a_template_may_be_declared_without_parentheses(tmp_path: Path) -> None:
    """A file of tasks declares its environment, and `eval` finds it there."""
    file = write_env(tmp_path)
    file.write_text(f"{file.read_text()}\ntasks = [visit()]\n")
    mine = file.rename(tmp_path / "tasks.py")
    result = run("eval", mine, "--agent", "nop", "--store", tmp_path / "s.sqlite3")
    assert result.exit_code == 0, result.output
    assert "[1/1] visit: graded 1" in result.output


def test_a_hook_that_is_not_async_is_refused_with_its_line(tmp_path: Path) -> None:
    """When it is declared, and not by the first session."""
    before = "@env.initialize\ndef begin():\n    pass\n"
    result = run("check", write_env(tmp_path, before=before))
    said = r"env\.py:10: the initialize hook 'begin' is not async\. Write `async def begin\(\):`\."
    assert re.search(said, result.output), result.output
    assert result.exit_code == 1


def test_a_value_of_many_is_suggested(tmp_path: Path) -> None:
    """A few of 130 are listed."""
    write_env(tmp_path, arguments="country: Literal[COUNTRIES]")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"env": "shop", "template": "visit", "args": {"country": "contry-77"}}\n')
    result = run("taskset", "validate", rows)
    assert result.exit_code == 1
    assert "expected one of 130 values such as 'country-0', 'country-1'" in result.stderr
    assert "got 'contry-77'. Did you mean 'country-77'?" in result.stderr
    assert len(result.stderr) < 400


def test_a_world_that_is_not_declared_is_named(tmp_path: Path) -> None:
    """With what to write."""
    result = run("serve", write_env(tmp_path, arguments="browser: BrowserWorld"), "--http", "0")
    assert (
        "asks for BrowserWorld in 'browser', but environment 'shop' has no world. Declare one: "
        "Environment('shop', world=Browser(…))." in result.stderr
    )


@pytest.mark.long
def test_a_reason_is_told_once_and_is_no_wider_than_a_page(tmp_path: Path) -> None:
    """In a pipe, where nothing is folded: neither the table nor its lines are as wide as it."""
    file = tmp_path / "env.py"
    file.write_text(
        "from hud_mcp import Environment\n"
        'env = Environment("shop", version="1")\n'
        "@env.template\n"
        "async def fail(n: int):\n"
        '    yield "Where?"\n'
        '    yield {}["the reason " * 50]\n'
        "tasks = [fail(n=n) for n in (1, 2)]\n"
    )
    result = CliRunner(env={"COLUMNS": None}).invoke(
        main, ["eval", str(file), "--agent", "nop", "--store", str(tmp_path / "s.sqlite3")]
    )
    assert result.exit_code == 1
    assert result.output.count("KeyError") == 1
    assert max(map(len, result.output.splitlines())) < 300
    (head,) = (line for line in result.output.splitlines() if line.startswith("task "))
    assert len(head) < 80
    assert "`hud-mcp trace TRAJECTORY` shows whole" in result.output


def test_help_names_defaults_and_says_what_is_expected() -> None:
    """Of every command with such options; and what is run most comes first."""
    shown = " ".join(run("eval", "--help").output.split())
    for default in ("[default: 600.0]", "[default: 1]", "HUD_MCP_STORE"):
        assert default in shown
    assert "The table shows that reward as `expected`" in shown
    commands = run("--help").output.partition("Commands:")[2].split("\n")
    names = [line.split()[0] for line in commands if line.strip()]
    assert names.index("eval") < names.index("task") < names.index("channel")


def test_files_of_another_kind_are_named_as_what_they_are(tmp_path: Path) -> None:
    """What is empty, a picture, or a folder without tasks; each in one line, with status 1."""
    for name, content in (("empty.jsonl", b""), ("empty.json", b"\n"), ("pic.png", b"\x89PNG\n")):
        (tmp_path / name).write_bytes(content)
    said = {
        "empty.jsonl": "empty.jsonl holds no tasks.",
        "empty.json": "empty.json holds no tasks.",
        "pic.png": "pic.png:1: this line is not JSON: it is not text in UTF-8.",
        ".": "The folder has neither an env.py nor a .jsonl or .json file.",
    }
    (tmp_path / "folder").mkdir()
    for name, text in said.items():
        place = tmp_path / ("folder" if name == "." else name)
        result = run("tasks", place)
        assert (result.exit_code, text in result.stderr) == (1, True), result.output
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("eval", "quickstart", "--agent", "nop", "--timeout", "abc"), "is not a valid number"),
        (
            ("serve", "--limit", "sessions=abc"),
            "--limit sessions=abc: it should be a valid integer",
        ),
        (("serve", "--http", "127.0.0.1:70000"), "there is no port 70000. The last is 65535."),
        (("serve", "--http", "foo"), "'foo' is not a port. Write HOST:PORT"),
        (("serve", "--http", "a b:1"), "'a b' is not a host. Write HOST:PORT"),
        (("view", "--port", "abc"), "'abc' is not a valid whole number."),
        (("eval", "quickstart", "--agent", "nop", "--group", "abc"), "not a valid whole number."),
        (("serve", "--http", "0", "--token-file", "/"), "cannot be read: Is a directory."),
        (("jobs", "--store", "/dev/null"), "/dev/null is not a file. Name another one."),
        (("eval", "quickstart", "--agent", "nop", "--split", "dev"), "It has: easy, medium, hard."),
        (("task", "act", "click", "x"), "write NAME=VALUE, such as x=10"),
        (("task", "step", "["), "Write a list:"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_right(
    tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    """Nothing begins."""
    store = () if "--store" in command else ("--store", tmp_path / "s.sqlite3")
    result = run(*command, *store)
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.stderr.split())


def test_an_id_of_the_other_kind_is_led_to_its_command(tmp_path: Path) -> None:
    """A job's to `jobs`, a trajectory's to `trace`."""
    store = tmp_path / "s.sqlite3"
    record_job(store, Job(id="job-abc", name="a", created_at=AT), [], {})
    assert "`hud-mcp jobs job-abc`" in run("trace", "job-abc", "--store", store).stderr
    assert "`hud-mcp trace traj-1`" in run("jobs", "traj-1", "--store", store).stderr


TYPOS = (
    (("srve",), "'serve'"),
    (("serve", "browsr"), "'browser'"),
    (("check", "browsr"), "'browser'"),
    (("eval", "quickstrt", "--agent", "nop"), "'quickstart'"),
    (("tasks", "quickstart", "shop-price-lam"), "'shop-price-lamp'"),
    (("functions", "hud-browsr"), "'hud-browser'"),
    (("install", "claude-dsktop"), "'claude-desktop'"),
    (("serve", "zzz"), "more. `hud-mcp tasks`"),
    (("tasks", "zzz"), "`hud-mcp tasks` lists the shipped sets"),
    (("zzz",), "`hud-mcp --help` lists all"),
)
"""What is typed, and what is named that was meant, or that lists all."""


def test_a_name_that_there_is_not_is_answered_with_the_one_that_was_meant() -> None:
    """Or with a few and what lists all: no error is a list that nobody reads."""
    wrong: list[tuple[tuple[str, ...], str]] = []
    for typed, meant in TYPOS:
        result = run(*typed)
        said = " ".join(result.stderr.partition("Error: ")[2].split())
        if result.exit_code not in (1, 2) or meant not in said or len(said) > 320:
            wrong.append((typed, said))
    assert wrong == []


@pytest.mark.long
def test_a_row_with_an_unknown_template_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    """By every command that plays rows, whatever its agent."""
    write_env(tmp_path)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"env": "shop", "template": "visit"}\n{"env": "shop", "template": "vist"}\n')
    store = tmp_path / "s.sqlite3"
    commands = [("eval", rows, "--agent", name) for name in ("oracle", "nop", "random")]
    for command in (*commands, ("check", rows), ("taskset", "validate", rows)):
        given = ("--store", store) if command[0] != "taskset" else ()
        result = run(*command, *given)
        assert result.exit_code == 1
        assert "rows.jsonl:2: " in result.output, command
        assert "Did you mean 'visit'?" in result.output


def test_a_task_after_its_set_is_shown() -> None:
    """As `--show` shows it."""
    shown = run("tasks", "quickstart", "shop-price-lamp")
    assert shown.exit_code == 0
    assert shown.output == run("tasks", "quickstart", "--show", "shop-price-lamp").output
    several = run("tasks", "quickstart", "web", "shop-price-lamp").output
    assert '"id": "shop-price-lamp"' in several


def test_an_export_needs_no_kind_and_says_once_what_is_not_there(tmp_path: Path) -> None:
    """An id that says its kind is looked for as that kind alone."""
    store = tmp_path / "s.sqlite3"
    record_job(store, Job(id="job-abc", name="a", created_at=AT), [], {})
    for given, said, not_said in (
        ("job-xyz", "no job 'job-xyz'", "trajectory"),
        ("traj-xyz", "no trajectory 'traj-xyz'", "no job"),
        ("xyz", "no trajectory 'xyz'", "Missing option"),
    ):
        error = run("export", given, "--store", store).stderr
        assert said in error
        assert not_said not in error


def test_a_token_that_is_too_short_is_named_by_where_it_was_given(tmp_path: Path) -> None:
    """The option, or the file."""
    file = tmp_path / "tokens"
    file.write_text("short\n")
    file.chmod(0o600)
    for options, said in ((("--token", "short"), "A --token "), (("--token-file", file), file)):
        error = run("serve", "qa", "--http", "0", "--store", tmp_path / "s", *options).stderr
        assert str(said) in error
        assert "at least 8 characters" in error
        assert ("--token-file" in error) == (said == file)


@pytest.mark.parametrize("command", [("serve",), ("eval",), ("channel", "serve")], ids=" ".join)
def test_record_is_told_to_be_needed_no_more(command: tuple[str, ...]) -> None:
    """A command line of before fails with what to do; the help does not show the option."""
    result = run(*command, "letter_count", "--record", "batched")
    assert result.exit_code == 2
    assert "every step is written before its reply" in result.output
    assert "Leave it out" in result.output
    assert "--record" not in run(*command, "--help").output

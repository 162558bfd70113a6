"""`hud-mcp tasks` shows what is in a taskset, to people and to programs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hud_mcp.cli import main
from hud_mcp.task import Task, Validation
from hud_mcp.taskset import Taskset

TASKS = [
    Task(id="price-1", env="shop", template="price", args={"item": "Tee"}, description="A price."),
    Task(id="price-2", env="shop", template="price", validation=Validation(wrong_answer="1")),
    Task(id="letters", env="letter_count", template="count"),
]


@pytest.fixture
def taskset(tmp_path: Path) -> str:
    """A file of three tasks."""
    path = tmp_path / "mine.jsonl"
    Taskset(TASKS).save(path)
    return str(path)


def run(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["tasks", *arguments])


def test_the_table_lists_every_task(taskset: str) -> None:
    """With its environment, its template and its description, and how many there are."""
    result = run(taskset)
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()]
    assert rows[0] == ["task", "environment", "template", "description"]
    assert rows[1] == ["price-1", "shop", "price", "A", "price."]
    assert [row[0] for row in rows[1:4]] == ["price-1", "price-2", "letters"]
    assert "3 of 3 tasks; --show ID prints one." in result.output


def test_a_long_list_has_a_line_for_each_task(tmp_path: Path) -> None:
    """It fits the terminal; what a terminal would obey is shown as text, and JSON has all."""
    tasks = [
        Task(id=f"t{n}", env="shop", template="price", description="a\x1b[2Jb " + "long " * 40)
        for n in range(1_500)
    ]
    Taskset(tasks).save(tmp_path / "many.jsonl")
    lines = run(str(tmp_path / "many.jsonl")).output.splitlines()
    assert len(lines) == 1_502
    assert lines[0].split() == ["task", "environment", "template", "description"]
    assert max(map(len, lines)) == 120
    assert lines[1].startswith("t0     shop         price     a\\x1b[2Jb long long")
    assert lines[1].endswith("…")
    assert lines[-1] == "1500 of 1500 tasks; --show ID prints one."
    rows = run(str(tmp_path / "many.jsonl"), "--json").output.splitlines()
    assert [json.loads(row)["id"] for row in rows] == [task.id for task in tasks]


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [("price-*", ["price-1", "price-2"]), ("letter_count", ["letters"]), ("nothing", [])],
)
def test_a_filter_shows_what_is_like_it(taskset: str, pattern: str, ids: list[str]) -> None:
    """By id, environment or template; an empty result is not an error."""
    result = run(taskset, "--filter", pattern, "--json")
    assert result.exit_code == 0
    assert [json.loads(line)["id"] for line in result.output.splitlines()] == ids
    assert f"{len(ids)} of 3 tasks" in run(taskset, "--filter", pattern).output


def test_json_lines_are_a_taskset_again(taskset: str, tmp_path: Path) -> None:
    """What is printed can be saved and loaded."""
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(run(taskset, "--json").stdout_bytes)
    assert list(Taskset.load(copy)) == TASKS


def test_one_row_is_shown_whole(taskset: str) -> None:
    """Indented for people without its defaults; in one line with all of them for programs."""
    shown = run(taskset, "--show", "price-1")
    assert json.loads(shown.output)["args"] == {"item": "Tee"}
    assert "seed" not in shown.output
    assert len(shown.output.splitlines()) > 3
    (line,) = run(taskset, "--show", "price-1", "--json").output.splitlines()
    assert Task.model_validate_json(line) == TASKS[0]
    assert "seed" in json.loads(line)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}", "--show", "pric-1"], "Error: mine has no task 'pric-1'. Did you mean 'price-1'?"),
        (["missing.jsonl"], "Error: There is no taskset at 'missing.jsonl'."),
        (["{}.bad"], ":2: this line is not JSON"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_a_status(
    taskset: str, arguments: list[str], said: str
) -> None:
    """No traceback, and nothing on standard output."""
    Path(f"{taskset}.bad").write_text('{"env": "e", "template": "t"}\n{\n')
    result = run(*(a.format(taskset) for a in arguments))
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output


def test_the_command_says_what_it_does() -> None:
    """`--help` names the argument and every option."""
    shown = run("--help").output
    for word in ("TASKSET", "--filter", "--show", "--json", "List the available sets"):
        assert word in shown

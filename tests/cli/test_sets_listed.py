"""`hud-mcp tasks` without a name shows which sets there are, and what to type next."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hud_mcp.cli import main
from hud_mcp.loading.sets import ready_sets, shipped_sets
from hud_mcp.loading.source import shipped_folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, columns: int = 80) -> Result:
    """Run the command in this process."""
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["tasks", *arguments])


def test_a_narrow_terminal_has_two_lines_a_set() -> None:
    """Its name with its numbers, then what it is and needs; and what to type next."""
    shown = run().output.splitlines()
    [at] = [n for n, line in enumerate(shown) if line.startswith("quickstart ")]
    assert shown[at] == "quickstart  37 tasks (12 easy, 19 medium, 6 hard) in letter_count, browser"
    assert shown[at + 1] == (
        "  Letters to count, and three small sites: a shop, a support desk, a board."
    )
    assert any(line.endswith("Needs hud-mcp[miniwob].") for line in shown)
    assert [line.split()[0] for line in shown[: 2 * len(shipped_sets()) : 2]] == [*shipped_sets()]
    assert shown[-3].startswith(f"`all` stands for {', '.join(p.stem for p in ready_sets())}")
    assert (
        shown[-2] == "hud-mcp tasks SET lists its tasks; hud-mcp eval SET --agent oracle runs them."
    )


def test_a_wide_terminal_has_a_table() -> None:
    """With a row for each set, which a person can search."""
    shown = run(columns=220).output.splitlines()
    heads = "set tasks difficulty environments needs description"
    assert shown[0].split() == heads.split()
    [row] = [line for line in shown if line.startswith("miniwob ")]
    assert row.split()[1] == "125"
    assert "hud-mcp[miniwob]" in row
    assert len(shown) == 1 + len(shipped_sets()) + 3


def test_programs_get_an_object_for_each_set(here: Path) -> None:
    """JSON Lines, with the sets of the working folder at their end."""
    (here / "mine.jsonl").write_text('{"prompt": "?", "metadata": {"difficulty": "easy"}}\n')
    rows = [json.loads(line) for line in run("--json").output.splitlines()]
    assert [row["name"] for row in rows] == [*shipped_sets(), "mine"]
    assert rows[-1]["kind"] == "here"
    assert rows[-1]["difficulties"] == {"easy": 1}
    assert {row["name"] for row in rows if row["in_all"]} == {p.stem for p in ready_sets()}
    assert Path(rows[0]["file"]) == shipped_folder("taskset_data") / "quickstart.jsonl"


def test_several_sets_and_all_are_listed_as_one() -> None:
    """What `all` leaves out follows; a difficulty chooses among the rows of each."""
    two = run("quickstart", "contextual_browser", "--split", "hard", "--json").output.splitlines()
    assert {json.loads(line)["metadata"]["difficulty"] for line in two} == {"hard"}
    assert {json.loads(line)["id"].partition("@")[0] for line in two} >= {"shop-buy-lamp"}
    every = run("all", columns=300).output
    assert "Left out: " in every
    assert "count-umlaut" in every
    assert "Left out" not in run("quickstart", columns=300).output


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (["--split", "hard"], "Name a TASKSET whose tasks are meant", 2),
        (["--filter", "x"], "Name a TASKSET whose tasks are meant", 2),
        (["all", "--split", "hrad"], "all has no split 'hrad'. Did you mean 'hard'?", 1),
        (["quickstart", "quickstrat"], "quickstart has no task 'quickstrat'", 1),
        (["quickstart", "mine.jsonl"], "both have a task 'count-umlaut'", 1),
    ],
)
def test_a_mistake_in_names_is_told(
    here: Path, arguments: list[str], said: str, status: int
) -> None:
    """On one line, and nothing is listed."""
    (here / "mine.jsonl").write_text('{"id": "count-umlaut", "prompt": "?"}\n')
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert said in result.stderr

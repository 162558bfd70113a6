"""`hud-mcp eval` on several sets is one job, whose record and table tell them apart."""

import json
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from hud_mcp import load_job
from hud_mcp.cli import main

ENV = """
from hud_mcp import Environment

env = Environment("own")


@env.template()
async def ask(word: str = "lamp"):
    answer = yield "Say lamp."
    yield float(answer == word)


@ask.oracle
async def _(agent):
    return "lamp"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sets of two folders: one is of a shipped environment, one of its neighbour."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "env.py").write_text(ENV)
    rows = {
        "near.jsonl": [
            ("easy", "letter_count", "count", {}),
            ("hard", "letter_count", "count", {}),
        ],
        "far/own.jsonl": [("hard", "own", "ask", {}), ("hard", "own", "ask", {"word": "pen"})],
    }
    for name, each in rows.items():
        text = "".join(
            json.dumps({
                "id": f"{Path(name).stem}-{number}", "env": env, "template": template,
                "args": args, "metadata": {"difficulty": level},
            }) + "\n"
            for number, (level, env, template, args) in enumerate(each)
        )  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, arguments)


def table(printed: str, head: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading."""
    lines = printed.splitlines()
    [at] = [n for n, line in enumerate(lines) if line.split()[:2] == [head, "tasks"]]
    return [line.split() for line in lines[at + 1 : lines.index("", at)]]


def test_several_sets_are_one_job_with_a_mean_for_each() -> None:
    """Each set's environments are found beside it, and the record has the set of each task."""
    result = run("eval", "near", "far/own.jsonl", "--agent", "oracle")

    assert table(result.output, "set") == [
        ["near", "2", "2/2", "1.000", "1.000"],
        ["own", "2", "2/2", "0.500", "0.500"],
    ]
    assert table(result.output, "difficulty") == [
        ["easy", "1", "1/1", "1.000", "1.000"],
        ["hard", "3", "3/3", "0.667", "0.667"],
    ]
    tables = result.output.partition("\nset ")[2].partition("\nJob ")[0]
    assert max(map(len, tables.splitlines())) < 80
    assert result.exit_code == 0
    [listed] = [json.loads(line) for line in run("jobs", "--json").output.splitlines()]
    job = anyio.run(load_job, listed["id"])
    assert job.taskset == "near, far/own.jsonl"
    sets = {task.id: job.set_of(task.id) for task in anyio.run(job.load_tasks)}
    assert sets == {"near-0": "near", "near-1": "near", "own-0": "own", "own-1": "own"}

    resumed = run("eval", "--resume", job.id)
    assert table(resumed.output, "set") == table(result.output, "set")
    refused = run("eval", "near", "--resume", job.id)
    assert (refused.exit_code, "TASKSET comes from the record" in refused.stderr) == (2, True)


@pytest.mark.long
def test_a_difficulty_is_a_split_and_all_says_what_it_leaves_out() -> None:
    """One set and one difficulty have no table of their own."""
    result = run("eval", "all", "--agent", "nop", "--filter", "count-umlaut", "--split", "medium")

    assert result.exit_code == 0, result.output
    assert "over 1 graded of 1 run" in result.output
    left_out = result.output.partition("\n")[0]
    assert left_out.startswith("Left out: ")
    assert "quickstart_calls, contextual_browser (repeat quickstart)" in left_out
    assert "\nset " not in result.output
    assert "\ndifficulty " not in result.output
    [listed] = [json.loads(line) for line in run("jobs", "--json").output.splitlines()]
    assert listed["taskset"] == "all"
    assert anyio.run(load_job, listed["id"]).set_of("count-umlaut") == "quickstart"
    told = run("eval", "near", "far/own.jsonl", "--agent", "nop", "--split", "medium")
    assert "near, far/own.jsonl has no split 'medium'. It has: easy, hard." in told.stderr

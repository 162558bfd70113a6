"""`hud-mcp taskset` imports, lists, shows, checks, splits and samples sets of tasks."""

import json
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from hud_mcp.cli import main
from hud_mcp.taskset import Taskset

SITES = ("Shop", "Maps", "News")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, a cache, and a folder of data sets of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "sets" / "webvoyager"
    folder.mkdir(parents=True)
    rows = [
        {"web_name": s, "id": f"{s}--0", "ques": "Which?", "web": f"https://{s}.example/"}
        for s in SITES
    ]
    (folder / "WebVoyager_data.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (folder / "reference_answer.json").write_bytes(b"{}")
    monkeypatch.setenv("HUD_MCP_DATASETS", str(tmp_path / "sets"))
    return tmp_path


def run(*words: str) -> Result:
    """The command, as a user calls it."""
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def rows_of(path: Path, count: int) -> None:
    """Write a set of questions in two splits."""
    names = ["train", "test"]
    lines = [
        {"id": f"q{n}", "prompt": f"{n}?", "evaluate": [["response_is", str(n)]]}
        | {"metadata": {"split": names[n % 2]}}
        for n in range(count)
    ]
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))


def test_an_import_prints_its_counts_and_writes_where_rows_come_from(here: Path) -> None:
    """And the file is a taskset like any other one."""
    done = run("taskset", "import", "WebVoyager", "--host", "shop.example=http://127.0.0.1:8001")
    assert done.exit_code == 0, done.output
    assert "3 rows, 3 runnable here. They need: judge (3), network (2)." in done.output
    assert "Apache-2.0" in done.output
    tasks = Taskset.from_file(here / "WebVoyager.jsonl")
    assert all("WebVoyager" in (t.source or t.metadata["source"]) for t in tasks)
    assert [t.source is None for t in tasks] == [True, False, False]
    assert tasks[0].setup[0].args == ("http://127.0.0.1:8001/",)
    assert "127.0.0.1:8001" in (tasks[0].prompt or "")
    assert tasks[0].config == {"allow": ["127.0.0.1:8001"]}
    assert tasks[1].config == {"allow": ["*"]}


def test_an_import_takes_a_part_a_folder_and_a_place_to_write_to(here: Path) -> None:
    """A name that is no set's lists those that are."""
    done = run("taskset", "import", "webvoyager-maps", "--from", "sets/webvoyager", "-o", "m.json")
    assert done.exit_code == 0, done.output
    assert Taskset.from_file(here / "m.json").ids == ("Maps--0",)
    unknown = run("taskset", "import", "WebTraveller")
    assert unknown.exit_code == 1
    assert "There are: WebVoyager, GAIA, OSWorld" in unknown.output
    badly = run("taskset", "import", "WebVoyager", "--host", "shop.example")
    assert "write HOST=PLACE" in badly.output


def test_every_set_is_listed_with_its_licence() -> None:
    """Shipped ones by their rows, public ones by what they are."""
    done = run("taskset", "list", "--json")
    listed = {row["name"]: row for row in map(json.loads, done.output.splitlines())}
    assert listed["quickstart"]["about"] == "37 tasks"
    assert listed["OSWorld"]["licence"] == "Apache-2.0"
    assert listed["GAIA"]["licence"].startswith("gated")
    assert "WebVoyager" in run("taskset", "list").output


def test_a_set_is_shown_by_its_counts_and_a_row_whole(here: Path) -> None:
    """Rows that do not run here are counted by their reason."""
    rows_of(here / "mine.jsonl", 4)
    with (here / "mine.jsonl").open("ab") as file:
        row = {"id": "no", "prompt": "x", "setup": [["not_runnable", "it needs a desktop"]]}
        file.write(b"\n" + orjson.dumps(row | {"metadata": {"not_runnable": "it needs a desktop"}}))
    shown = run("taskset", "show", "mine").output
    assert "mine: 5 rows, 4 runnable here." in shown
    assert "mine: 5 rows fit their environments." in run("taskset", "validate", "mine").output
    assert "splits: train (2), test (2)" in shown
    assert "1  it needs a desktop" in shown
    assert json.loads(run("taskset", "show", "mine", "q1").output)["id"] == "q1"


def test_rows_that_do_not_fit_their_environment_are_named(here: Path) -> None:
    """By file and line; a set that fits is counted."""
    rows_of(here / "mine.jsonl", 4)
    assert "mine: 4 rows fit their environments." in run("taskset", "validate", "mine").output
    (here / "bad.jsonl").write_text('{"id": "b", "prompt": "x", "evaluate": [["respons_is", "x"]]}')
    done = run("taskset", "validate", "bad.jsonl")
    assert done.exit_code == 1
    assert "bad.jsonl:1" in done.output
    assert "response_is" in done.output


def test_a_set_is_split_by_its_rows_or_by_drawn_shares(here: Path) -> None:
    """Each row is in one split, and says which; the same seed draws the same ones."""
    rows_of(here / "mine.jsonl", 10)
    assert run("taskset", "split", "mine", "--folder", "own").exit_code == 0
    assert len(Taskset.from_file(here / "own" / "mine-train.jsonl")) == 5
    for folder in ("a", "b"):
        done = run("taskset", "split", "mine", "--part", "dev=0.3", "--part", "rest",
                   "--folder", folder)  # fmt: skip
        assert done.exit_code == 0, done.output
    dev, rest = (Taskset.from_file(here / "a" / f"mine-{name}.jsonl") for name in ("dev", "rest"))
    assert (len(dev), len(rest)) == (3, 7)
    assert set(dev.ids).isdisjoint(rest.ids)
    assert dev.splits == {"dev": 3}
    assert Taskset.from_file(here / "b" / "mine-dev.jsonl").ids == dev.ids
    assert "shares are from 0 to 1" in run("taskset", "split", "mine", "--part", "a=1.5").output
    (here / "plain.jsonl").write_text('{"id": "p", "prompt": "x"}')
    assert "have no splits" in run("taskset", "split", "plain").output


def test_a_sample_leaves_out_what_does_not_run_where_it_is_told_to(here: Path) -> None:
    """And prints rows where no file is named."""
    rows_of(here / "mine.jsonl", 6)
    with (here / "mine.jsonl").open("ab") as file:
        file.write(b'\n{"id": "no", "prompt": "x", "metadata": {"not_runnable": "why"}}')
    lines = run("taskset", "sample", "mine", "100", "--runnable").output.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"q{n}" for n in range(6)]
    assert run("taskset", "sample", "mine", "2", "--seed", "3", "-o", "few.jsonl").exit_code == 0
    assert len(Taskset.from_file(here / "few.jsonl")) == 2


@pytest.mark.long
def test_an_evaluation_takes_a_split_and_leaves_out_what_does_not_run(here: Path) -> None:
    """The job has the runs of what is left, and its record says what was left out."""
    rows_of(here / "mine.jsonl", 4)
    with (here / "mine.jsonl").open("ab") as file:
        row = {"id": "no", "prompt": "x", "setup": [["not_runnable", "it needs a desktop"]]}
        kept = {"not_runnable": "it needs a desktop", "split": "train"}
        file.write(b"\n" + orjson.dumps(row | {"metadata": kept}))
    listed = run("tasks", "mine", "--split", "train", "--json").output.splitlines()
    assert [json.loads(line)["id"] for line in listed] == ["q0", "q2", "no"]
    none = run("eval", "mine", "--agent", "nop", "--filter", "no", "--store", "s.sqlite3")
    assert "None of 1 tasks of mine runs here: it needs a desktop." in none.output
    done = run("eval", "mine", "--agent", "nop", "--split", "train", "--store", "s.sqlite3",
               "--report", "r.html")  # fmt: skip
    assert "over 2 graded of 2 runs" in done.output
    assert "1 task is left out, and not counted:" in done.output
    assert "1  it needs a desktop: no" in done.output
    (job,) = [word for word in done.output.split() if word.startswith("job-")][:1]
    shown = run("jobs", job.rstrip("`."), "--store", "s.sqlite3").output
    assert "left out, not counted: 1  it needs a desktop: no" in shown
    assert "left out, not counted: it needs a desktop" in (here / "r.html").read_text()
    assert "no split 'dev'" in run("eval", "mine", "--agent", "nop", "--split", "dev").output

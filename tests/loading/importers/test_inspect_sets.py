"""Inspect's data sets become questions, and its scorers grade them by their published rules."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hud_mcp.cli import main
from hud_mcp.errors import InvalidTask
from hud_mcp.graders.inspect_scorers import choice, includes, match
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.plugins.sets.files import dataset_file
from hud_mcp.plugins.sets.inspect_sets import InspectChoice, read_inspect
from hud_mcp.taskset import Taskset


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a working folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(path: Path, *records: dict[str, Any]) -> Path:
    """A file of records, one a line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def test_records_become_questions_with_inspects_scorer(here: Path) -> None:
    """Messages are put together, several targets are each right, ids and metadata are kept."""
    path = written(
        here / "facts.jsonl",
        {"input": "How many?", "target": ["3", "three"], "id": "a", "metadata": {"hard": True}},
        {"input": [{"role": "system", "content": "Be short."},
                   {"role": "user", "content": "Where?"}], "target": "Bern"},
    )  # fmt: skip
    first, second = read_inspect(path, InspectChoice(numeric=True))
    assert (first.id, second.id) == ("facts-a", "facts-2")
    assert first.prompt == "How many?"
    assert first.evaluate[0].args == (["3", "three"], "end", True, True)
    assert first.metadata["sample"] == {"hard": True}
    assert second.prompt == "Be short.\n\nWhere?"
    assert "facts.jsonl, record 1" in (first.source or "")


def test_a_table_has_columns_by_other_names(here: Path) -> None:
    """Choices are a list with commas, as Inspect reads them; the command says what runs."""
    (here / "quiz.csv").write_text(
        "question,options,right,level\n"
        'Which is red?,"sky, blood",B,1\n'
        'Which is green?,"sky, blood",C,2\n'
    )
    command = [
        "taskset", "import-inspect", "quiz.csv", "--scorer", "choice", "--field", "input=question",
        "--field", "choices=options", "--field", "target=right", "--metadata", "level",
    ]  # fmt: skip
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "2 rows, 1 runnable here." in done.output
    assert "1  its target is none of its choices" in done.output
    task, _ = Taskset.from_file(here / "quiz-tasks.jsonl")
    assert "A) sky\nB) blood\n" in (task.prompt or "")
    assert task.metadata["sample"] == {"level": "1"}
    assert task.evaluate[0].args == ("B", 2, False)
    badly = CliRunner().invoke(
        main, ["taskset", "import-inspect", "quiz.csv", "--field", "inptu=x"]
    )
    assert "no field 'inptu'. Did you mean 'input'" in badly.output


def test_files_are_kept_and_no_set_reaches_out_of_its_folder(here: Path) -> None:
    """A file beside the set, a text, and a data address; what lies elsewhere is refused."""
    (here / "table.csv").write_text("a,b")
    (here.parent / "secret").write_text("key")
    (here / "link").symlink_to(here.parent / "secret")
    files = {"data/table.csv": "table.csv", "note.txt": "plain text",
             "dot.bin": "data:application/octet-stream;base64,AAE="}  # fmt: skip
    outside = ["../secret", str(here.parent / "secret"), "link"]
    path = written(
        here / "f.jsonl", {"input": "x", "target": "y", "files": files},
        *({"input": "x", "target": "y", "files": {"f": each}} for each in outside),
    )  # fmt: skip
    task, *others = read_inspect(path, InspectChoice())
    kept = {call.args[0]: dataset_file(call.args[1]).read_bytes() for call in task.setup}
    assert kept == {"table.csv": b"a,b", "note.txt": b"plain text", "dot.bin": b"\0\1"}
    assert "hud://sessions/SESSION/files/table.csv" in (task.prompt or "")
    reasons = [why_not_runnable(each) for each in others]
    assert reasons == ["it names a file outside of the set's folder"] * 3
    stored = [p.read_bytes() for p in (here.parent / "cache").rglob("*") if p.is_file()]
    assert b"key" not in stored


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"target": ""}, "its target has no letter and no digit, which any answer matches"),
        ({"target": "?!"}, "its target has no letter and no digit, which any answer matches"),
        ({"target": "y", "sandbox": "docker"}, "it has a sandbox of its own"),
        ({"target": "y", "setup": "make"}, "it has a setup of its own"),
    ],
)
def test_a_sample_that_any_answer_would_pass_does_not_run(
    here: Path, record: dict[str, Any], why: str
) -> None:
    """Nor one that wants a machine of its own; the row says why."""
    (task,) = read_inspect(written(here / "r.jsonl", {"input": "x", **record}), InspectChoice())
    assert why_not_runnable(task) == why


def test_what_is_no_sample_is_named(here: Path) -> None:
    """By its file and its place."""
    with pytest.raises(InvalidTask, match=r"record 1 is not a sample: .* --field input=question"):
        read_inspect(written(here / "r.jsonl", {"question": "x"}), InspectChoice())
    (here / "b.json").write_text("{")
    with pytest.raises(InvalidTask, match=r"b\.json: this is no data set of Inspect"):
        read_inspect(here / "b.json", InspectChoice())


@pytest.mark.parametrize(
    ("answer", "target", "options", "score"),
    [
        ("It is Bern.", "bern", {}, 1),
        ("Bern it is", "bern", {}, 0),
        ("Bern it is", "bern", {"location": "begin"}, 1),
        ("so Bern it is", "bern", {"location": "any"}, 1),
        ("'Bern'.", "bern", {"location": "exact"}, 1),
        ("It is bern", "Bern", {"ignore_case": False}, 0),
        ("It is 25", "5", {}, 1),
        ("It is 25", "5", {"numeric": True}, 0),
        ("It costs $1,250.00.", "1250", {"numeric": True}, 1),
        (r"It costs \$20", "20", {"numeric": True}, 1),
        ("60%", "60", {"numeric": True}, 0),
        ("first 3 then 4", "3", {"numeric": True, "location": "begin"}, 1),
        ("first 3 then 4", "3", {"numeric": True}, 0),
        ("first 3 then 4", "3", {"numeric": True, "location": "any"}, 1),
        ("4 pieces", "4", {"numeric": True, "location": "exact"}, 0),
        ("123456", "123457", {"numeric": True}, 1),
        ("2\u00bd", "2.5", {"numeric": True}, 1),
        ("\u22123", "-3", {"numeric": True}, 1),
        ("nan", "nan", {"numeric": True}, 1),
        ("", "x", {}, 0),
    ],
)
def test_match_follows_its_published_rules(
    answer: str, target: str, options: dict[str, Any], score: float
) -> None:
    """Also where they are odd: five digits of a number count, and `25` ends with `5`."""
    assert match(answer, [target], **options) == score
    assert match(answer, ["nothing at all", target], **options) == score


def test_includes_looks_anywhere() -> None:
    """Case counts where it is told to; any one target will do."""
    assert includes("In BERN, I think", ["Rome", "bern"]) == 1
    assert includes("In BERN, I think", ["bern"], ignore_case=False) == 0
    assert includes(None, ["bern"]) == 0


@pytest.mark.parametrize(
    ("answer", "target", "several", "score"),
    [
        ("I think.\nANSWER: B", "B", False, 1),
        ("answer: b.", "B", False, 1),
        ("ANSWER: A\nNo:\nANSWER: B", "B", False, 1),
        ("So it is (ANSWER: B)", "B", False, 1),
        ("B", "B", False, 0),
        ("ANSWER: E", "B", False, 0),
        ("ANSWER: A, B", "B", False, 0),
        ("ANSWER: A, C", "AC", True, 1),
        ("ANSWER: CA", "A,C", True, 1),
        ("ANSWER: A and C", "AC", True, 1),
        ("ANSWER: A", "AC", True, 0),
        ("ANSWER: A, B, C, D", "AC", True, 0),
        ("", "A", True, 0),
    ],
)
def test_choice_takes_the_last_answer_line(
    answer: str, target: str, score: float, *, several: bool
) -> None:
    """A letter alone is no answer; naming every choice is none of several."""
    assert choice(answer, target, 4, several=several) == score

"""`hud-mcp check` on rows: what they say of answers, what they hide, and whether they fit."""

import json
from pathlib import Path
from typing import Any

import pytest
from proving import ENVIRONMENTS, check, verdicts

from hud_mcp.cli.proved import find_wanted
from hud_mcp.loading.sets import find_sets, shipped_sets
from hud_mcp.loading.source import shipped_environments
from hud_mcp.task import Task, Validation

ARGS = {"country": "Liechtenstein", "city": "Vaduz"}


def write(folder: Path, *rows: dict[str, Any]) -> None:
    """Write rows of `capitals`, with what each has of its own."""
    made = [{"env": "capitals", "template": "capital", "args": ARGS, **row} for row in rows]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))


def judged(folder: Path, *words: str, status: int) -> dict[str, dict[str, Any]]:
    """The verdicts on the rows."""
    place = str(ENVIRONMENTS / "capitals.py")
    return verdicts(folder, "rows.jsonl", "--env", place, "--repeat", "1", *words, status=status)


@pytest.mark.long
def test_rows_are_judged_by_what_they_say_and_hide(tmp_path: Path) -> None:
    """Each by its own: what it expects of answers, what it tells, and what is not there."""
    write(
        tmp_path,
        {"id": "plain"},
        {"id": "mistaken", "validation": {"wrong": ["Vienna", "vaduz"]}},
        {"id": "it-is-vaduz"},
        {"id": "described", "description": "It is Vaduz."},
        {"id": "kept", "metadata": {"answer": "Vaduz", "source": "an atlas"}},
        {"id": "generous", "validation": {"oracle": None, "nop": 0.5}},
        {"id": "unfit", "args": {"country": "Liechtenstein", "town": "Vaduz"}},
        {"id": "unknown", "env": "capitals", "template": "river"},
        {"id": "labelled", "metadata": {"parts": ["labelled"]}},
    )
    found = judged(tmp_path, status=1)

    assert {name: each["verdict"] for name, each in found.items()} == {
        "plain": "unproven",
        "mistaken": "failed",
        "it-is-vaduz": "failed",
        "described": "unproven",  # people alone read that
        "kept": "unproven",
        "generous": "failed",
        "unfit": "failed",
        "unknown": "failed",
        "labelled": "unproven",
    }
    assert "Its template has no oracle (" in found["plain"]["reasons"][0]
    assert found["mistaken"]["reasons"][0].startswith("Reward 1 for the answer 'vaduz'; less than")
    assert "An agent can read 'Vaduz'" in found["it-is-vaduz"]["reasons"][0]
    assert "list_tasks, the task's row: id" in found["it-is-vaduz"]["reasons"][0]
    assert found["generous"]["reasons"][0].startswith("Reward 0 for doing nothing; 0.5 was")
    assert "rows.jsonl:7: It does not fit." in found["unfit"]["reasons"][0]
    assert "there is no argument 'town'" in found["unfit"]["reasons"][0]
    assert "has no template 'river'" in found["unknown"]["reasons"][0]


@pytest.mark.long
def test_a_row_of_huds_is_solved_by_the_calls_of_its_validation(tmp_path: Path) -> None:
    """They stand for an oracle; calls that do not solve it fail it, and other things are named."""

    def row(slug: str, *calls: dict[str, Any]) -> dict[str, Any]:
        return {"env": "capitals", "id": "capital", "slug": slug, "args": ARGS, "validation": calls}

    rows = [
        row("right", {"name": "response", "arguments": {"answer": "Vaduz"}}),
        row("wrong", {"name": "response", "arguments": {"answer": "Schaan"}}),
        row("odd", {"tool": "response"}),
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    found = judged(tmp_path, status=1)

    assert found["right"]["verdict"] == "proven"
    assert found["wrong"]["reasons"][0].startswith("Reward 0 for the oracle; 1 was expected.")
    assert "is not a call of a tool" in found["odd"]["reasons"][0]


@pytest.mark.long
def test_a_prompt_is_unproven_and_strict_fails_on_that(tmp_path: Path) -> None:
    """Nobody can solve it here; that is no fault of it, unless everything is to be proven."""
    row: dict[str, Any] = {"id": "paris", "prompt": "Which country is Paris in?"}
    row |= {"evaluate": [["response_is", "France"], ["response_includes", "France"]]}
    row |= {"target": ["France", "Gaul"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    words = ("rows.jsonl", "--repeat", "1")

    assert "has a prompt and so no oracle" in check(tmp_path, *words, status=0)
    assert "1 task: 0 proven, 1 unproven" in check(tmp_path, *words, "--strict", status=1)


@pytest.mark.long
def test_a_split_is_proved_and_what_does_not_run_here_is_unproven(tmp_path: Path) -> None:
    """A row that says so is not played; a split that nobody has is named with those there are."""

    def row(name: str, split: str, **kept: str) -> dict[str, Any]:
        made = {"name": "response", "arguments": {"answer": "Vaduz"}}
        return {"env": "capitals", "id": "capital", "slug": name, "args": ARGS,
                "validation": [made], "metadata": {"split": split, **kept}}  # fmt: skip

    rows = [
        row("near", "test"),
        row("far", "test", not_runnable="it needs a desktop"),
        row("other", "train"),
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    found = judged(tmp_path, "--split", "test", status=0)

    assert {name: each["verdict"] for name, each in found.items()} == {
        "near": "proven",
        "far": "unproven",
    }
    assert found["far"]["reasons"] == ["It does not run here: it needs a desktop."]
    assert found["far"]["probes"] == []
    place = str(ENVIRONMENTS / "capitals.py")
    words = ("rows.jsonl", "--env", place, "--split", "dev")
    check(tmp_path, *words, status=1)
    check(tmp_path, place, "--split", "test", status=2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "words",
    [(), ("nowhere.jsonl",), ("no-such-source",), ("tcp://127.0.0.1:1",), ("--repeat", "0")],
)
def test_a_mistake_in_the_options_is_one_of_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Nothing is recorded then."""
    check(tmp_path, *words, status=2)
    assert not (tmp_path / "s.sqlite3").exists()


def test_wrong_answers_leave_the_digests_of_older_rows_as_they_were() -> None:
    """One answer may be a text; what has none is the same row as before there were several."""
    old = Task(id="a", env="e", template="t", validation=Validation(wrong_answer="x"))
    row = {"id": "a", "env": "e", "template": "t", "validation": {"wrong": "y"}}
    new = Task.model_validate(row)
    assert old.digest == "894ee5f53c4da99ab4e694e16dc8405fbabebb143b1d27bc95aea9dc8acbcb56"
    assert new.validation is not None
    assert new.validation.wrong_answers == ("y",)
    assert new.digest != old.digest
    assert Task.model_validate(new.row) == new


@pytest.mark.long
def test_a_name_of_an_environment_and_a_taskset_means_the_taskset_as_for_eval() -> None:
    """And it is said how the environment is named; what is one of both alone says nothing."""
    for name in sorted(shipped_sets().keys() & shipped_environments().keys()):
        both = find_wanted([name], (), None)
        named = [*(t.id for t in both.wanted.tasks), *(v.task for v in both.wanted.judged)]
        assert sorted(named) == sorted(find_sets([name]).read().tasks.ids)
        [said] = both.said
        assert "taskset and an environment" in said
        templates = find_wanted([said.rpartition("hud-mcp check ")[2]], (), None)
        assert templates.said == ()
        assert templates.wanted.tasks != both.wanted.tasks
    rows = find_wanted(["miniwob.jsonl", "quickstart"], (), "click-test-2")
    assert rows.said == ()
    assert [task.id for task in rows.wanted.tasks] == ["miniwob.click-test-2"]

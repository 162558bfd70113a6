"""`hud-mcp check` on several sets at once: one summary each, a split of all, and `all`."""

import json
import re
from pathlib import Path

import click
import pytest
from proving import check

from hud_mcp.cli.proved import find_wanted
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.sets import ready_sets

COUNT = {"env": "letter_count", "template": "count"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder has two sets; one row fails, and one does not fit."""
    monkeypatch.chdir(tmp_path)
    rows = {
        "first": [
            {**COUNT, "id": "good", "metadata": {"difficulty": "easy"}},
            {**COUNT, "id": "bad", "validation": {"nop": 1.0}, "metadata": {"difficulty": "hard"}},
        ],
        "second": [{**COUNT, "id": "unfit", "args": {"town": "x"}, "metadata": {"split": "hard"}}],
    }
    for name, each in rows.items():
        text = "".join(json.dumps(row) + "\n" for row in each)
        (tmp_path / f"{name}.jsonl").write_text(text)
    return tmp_path


@pytest.mark.long
def test_each_set_has_its_own_counts(here: Path) -> None:
    """In a table and in JSON, also where the check is resumed; one set alone has none."""
    printed = check(here, "first", "second", "--repeat", "1", status=1)
    summary = printed[printed.index("\nset ") :].splitlines()
    assert [line.split() for line in summary[1:4]] == [
        ["set", "tasks", "proven", "unproven", "failed"],
        ["first", "2", "1", "0", "1"],
        ["second", "1", "0", "0", "1"],
    ]
    [job] = re.findall(r"Job (job-\w+)", printed)
    whole = json.loads(check(here, "--resume", job, "--json", status=1))
    assert whole["sets"] == {
        "first": {"proven": 1, "unproven": 0, "failed": 1},
        "second": {"proven": 0, "unproven": 0, "failed": 1},
    }
    assert whole["counts"] == {"proven": 1, "unproven": 0, "failed": 2}
    alone = json.loads(check(here, "first", "--only", "good", "--json", status=0))
    assert alone["sets"] == {}


def test_a_split_is_taken_of_the_sets_that_have_it() -> None:
    """By either name of it; one that none has is told with what there is."""
    found = find_wanted(["first", "second"], (), None, split="hard")
    assert dict(found.sets) == {"first": ("bad",), "second": ("unfit",)}
    assert [task.id for task in found.wanted.tasks] == ["bad"]
    only = find_wanted(["first", "second"], (), None, split="easy")
    assert [task.id for task in only.wanted.tasks] == ["good"]
    with pytest.raises(InvalidTask, match=r"first, second has no split 'esy'.*It has: hard, easy"):
        find_wanted(["first", "second"], (), None, split="esy")
    with pytest.raises(click.UsageError, match="letter_count is an environment"):
        find_wanted(["first", "letter_count"], (), None, split="easy")


def test_all_is_the_rows_of_the_sets_and_says_what_it_leaves_out() -> None:
    """Where an environment has the name of a set, the set is meant."""
    found = find_wanted(["all"], (), None)
    assert list(found.sets) == [path.stem for path in ready_sets()]
    assert found.name == "all"
    assert found.wanted.judged == []
    assert sum(map(len, found.sets.values())) == len(found.wanted.tasks)
    assert [line.startswith("Left out: ") for line in found.said] == [True]
    with_mine = find_wanted(["first", "all", "first"], (), "good")
    assert list(with_mine.sets)[:2] == ["first", "quickstart"]
    assert [task.id for task in with_mine.wanted.tasks] == ["good"]

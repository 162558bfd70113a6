"""Sets are found by one name, by several, or by `all`; and what is said of them is read."""

import json
from pathlib import Path

import pytest

from hud_mcp import load_taskset
from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.loading.sets import (
    NOTES,
    SetNotes,
    find_sets,
    list_sets,
    read_notes,
    ready_sets,
    shipped_sets,
)
from hud_mcp.loading.source import shipped_folder

ROW = {"id": "one", "prompt": "Which?", "evaluate": [["response_is", "x"]]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, *ids: str, **metadata: str) -> None:
    """Write a set of tasks."""
    rows = [{**ROW, "id": each, "metadata": metadata} for each in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.anyio
async def test_all_is_what_needs_nothing_more_and_repeats_nothing() -> None:
    """Each row is of the set that has it alone, and the line names every set that is left out."""
    found = find_sets(["all"])
    tasks = await load_taskset("all")
    left_out = [name for name, notes in shipped_sets().items() if not notes.is_ready]
    assert tasks.name == "all"
    assert tuple(found.paths) == tuple(ready_sets())
    assert not {"miniwob", "quickstart_calls", "contextual_pendulum"} - set(left_out)
    assert all(name in found.left_out for name in left_out)
    assert "(need hud-mcp[miniwob])" in found.left_out
    for path in ready_sets():
        alone = await load_taskset(path)
        assert [tasks.set_of(row.id) for row in alone] == [path.stem] * len(alone)
        assert tasks.place_of(alone[0].id) == f"{path}:1"


@pytest.mark.anyio
async def test_a_file_called_all_is_nearer_than_the_word(here: Path) -> None:
    """As with every name."""
    write(here / "all.jsonl", "mine")
    assert (await load_taskset("all")).ids == ("mine",)


def test_several_sets_are_one_and_each_is_read_once(here: Path) -> None:
    """By name and path, in the order in which they are given."""
    write(here / "a.jsonl", "a-1", "a-2")
    write(here / "b.jsonl", "b-1")
    found = find_sets(["b", "a.jsonl", "./b.jsonl"])
    read = found.read()
    assert (found.name, read.tasks.ids) == ("b, a.jsonl, ./b.jsonl", ("b-1", "a-1", "a-2"))
    assert [read.tasks.set_of(each) for each in read.tasks.ids] == ["b", "a", "a"]
    assert read.files == {"b": Path("b.jsonl"), "a": Path("a.jsonl")}
    assert find_sets(["a"]).read().tasks.name == "a"
    with pytest.raises(SourceNotFound, match="'c'"):
        find_sets(["a", "c"])
    with pytest.raises(InvalidTask, match="Name a set of tasks"):
        find_sets([])


def test_every_shipped_set_is_described() -> None:
    """In a sentence, and what it repeats is a set; so is every set that is described there."""
    folder = shipped_folder("taskset_data")
    notes = read_notes(folder)
    assert not {path.stem for path in folder.glob("*.jsonl")} - set(notes)
    for name, told in notes.items():
        assert told.description[0].isupper(), name
        assert told.description.endswith("."), name
        assert told.repeats is None or told.repeats in notes
    assert next(iter(shipped_sets())) == "quickstart"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mine", "this file is not TOML"),
        ("[mine]\nneed = []", r"mine\.need: .*A set has: description, needs, repeats\."),
        ("mine = 3", "mine: "),
        ("[mine]\nneeds = 'network'", r"mine\.needs: "),
    ],
)
def test_a_mistake_in_what_is_said_of_sets_names_file_and_field(
    here: Path, text: str, said: str
) -> None:
    """As a row's mistake does."""
    (here / NOTES).write_text(text)
    with pytest.raises(InvalidTask, match=rf"tasksets\.toml: {said}"):
        read_notes(here)


def test_the_sets_of_the_working_folder_are_listed_too(here: Path) -> None:
    """Files of tasks alone, with what is said of them; one hides the shipped set of its name."""
    write(here / "mine.jsonl", "a", "b", difficulty="hard", split="train")
    write(here / "quickstart.jsonl", "c")
    (here / "broken.jsonl").write_text(f"{json.dumps(ROW)}\n{{\n")
    (here / "capitals.json").write_text(json.dumps({"description": "Towns.", "tasks": [ROW]}))
    (here / "mine.json").write_text(json.dumps([ROW]))
    (here / "package.json").write_text('{"name": "app"}')
    (here / "steps.jsonl").write_text('{"step": 1}\n')
    (here / "list.json").write_text("[]")
    (here / "text.json").write_text("no JSON")
    (here / NOTES).write_text('[mine]\ndescription = "Mine."\nneeds = ["network"]')
    listed = {each.name: each for each in list_sets()}
    assert [name for name, each in listed.items() if each.kind == "here"] == [
        "broken", "capitals", "mine", "quickstart",
    ]  # fmt: skip
    mine = listed["mine"]
    assert (mine.tasks, mine.description, mine.needs) == (2, "Mine.", ("network",))
    assert (mine.difficulties, mine.splits) == ({"hard": 2}, {"train": 2})
    assert (mine.environments, mine.in_all) == (("qa",), False)
    assert listed["capitals"].description == "Towns."
    assert "broken.jsonl:2" in (listed["broken"].problem or "")
    assert (listed["quickstart"].tasks, listed["quickstart"].in_all) == (1, False)
    assert listed["quickstart_calls"].repeats == "quickstart"
    assert SetNotes().is_ready

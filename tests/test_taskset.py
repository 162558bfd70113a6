"""A taskset is a file of rows, read with the line of each mistake."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hud_mcp.errors import InvalidTask, SourceNotFound
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset


def task(name: str, **fields: Any) -> Task:
    """A row."""
    return Task.model_validate({"id": name, "env": "e", "template": "t", **fields})


SET = Taskset([task("a"), task("b", env="f"), task("c", template="u")], name="letters")

finite = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | finite | st.text()
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
rows = st.builds(
    Task,
    id=st.text(min_size=1, max_size=10),
    env=st.just("e"),
    template=st.text(min_size=1, max_size=5),
    args=st.dictionaries(st.text(max_size=4), json_values, max_size=2),
    description=st.text(max_size=20),
)


@settings(max_examples=30)
@given(st.lists(rows, max_size=4, unique_by=lambda t: t.id))
def test_what_is_saved_is_what_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[Task]
) -> None:
    """Line ends, quotes and any other character in a row survive, in order."""
    path = tmp_path_factory.mktemp("rows") / "set.jsonl"
    Taskset(tasks).save(path)
    loaded = Taskset.load(path)
    assert list(loaded) == tasks
    assert loaded.name == "set"


def test_a_saved_row_is_one_short_line(tmp_path: Path) -> None:
    """What equals its default is not written."""
    path = tmp_path / "set.jsonl"
    Taskset([task("a"), task("b", seed=3)]).save(path)
    assert path.read_bytes().splitlines() == [
        b'{"id":"a","env":"e","template":"t"}',
        b'{"id":"b","env":"e","template":"t","seed":3}',
    ]


GOOD = b'{"id": "a", "env": "e", "template": "t"}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (GOOD + b"{", ":2: this line is not JSON"),
        (GOOD + b"\n\n[1]\n", ":4: a task is an object, not list"),
        (b'"a"', ":1: a task is an object, not str"),
        (
            GOOD + b'{"id": "b"}',
            ":2: a task has a 'prompt' or a 'template', and this row has neither",
        ),
        (
            GOOD + b'{"id": "b", "env": "e", "tempalte": "t"}',
            ":2: tempalte: there is no such field. ",
        ),
        (
            b'{"id": "b", "env": "e", "template": "t", "arg": {}}',
            ":1: arg: there is no such field. Did you mean 'args'?",
        ),
        (
            b'{"id": "b", "env": "e", "template": "t", "reward": 1}',
            ":1: reward: there is no such field. The fields are:",
        ),
        (
            b'{"id": "b", "env": "e", "template": "t", "validation": {"oracel": 1}}',
            ":1: validation.oracel: there is no such field. Did you mean 'oracle'?",
        ),
        (b'{"id": 5, "env": "e", "template": "t"}', ":1: id: input should be a valid string."),
        (GOOD + b"\n" + GOOD, ":3: the id 'a' is taken by line 1; give each row an id of its own"),
    ],
)
def test_a_bad_row_is_named_by_file_line_and_field(
    tmp_path: Path, content: bytes, said: str
) -> None:
    """The text is enough to correct the file."""
    path = tmp_path / "set.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidTask) as caught:
        Taskset.load(path)
    assert str(caught.value).startswith(f"{path}:")
    assert said in str(caught.value)


@settings(max_examples=50)
@given(st.binary(max_size=80) | st.lists(json_values, max_size=2).map(orjson.dumps))
def test_any_bytes_are_rows_or_an_invalid_task(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """A file of anything else gets a sentence, not a traceback."""
    path = tmp_path_factory.mktemp("rows") / "set.jsonl"
    path.write_bytes(content)
    try:
        loaded = Taskset.load(path)
    except InvalidTask:
        return
    assert len(loaded) == 0 or all(isinstance(t, Task) for t in loaded)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    """A folder is no taskset either."""
    with pytest.raises(SourceNotFound, match="There is no taskset at"):
        Taskset.load(tmp_path / name)


def test_two_rows_of_one_id_are_refused() -> None:
    """An id names one row."""
    with pytest.raises(InvalidTask, match="letters: two tasks have the id 'a'; ids are distinct"):
        Taskset([task("a"), task("a", seed=1)], name="letters")


@pytest.mark.parametrize("given", ["quickstart", [{"id": "one"}], [None]])
def test_what_is_no_task_is_refused(given: Any) -> None:
    """A name or rows in the place of tasks, with what makes them."""
    with pytest.raises(InvalidTask, match="a taskset is made of tasks, not of"):
        Taskset(given)


def test_tasks_are_found_by_place_by_id_and_by_slice() -> None:
    """A taskset is a sequence with names."""
    assert SET[0] == SET["a"] == task("a")
    assert SET[-1].id == "c"
    assert SET[1:].ids == ("b", "c")
    assert SET[1:].name == "letters"
    assert len(SET) == 3
    assert SET.index(task("c", template="u")) == 2
    assert SET.environment_names == ("e", "f")


def test_membership_is_of_ids_and_of_whole_tasks() -> None:
    """A task that shares only its id is another task."""
    assert "a" in SET
    assert task("a") in SET
    assert task("a", seed=1) not in SET
    assert "z" not in SET
    assert 0 not in SET


def test_an_unknown_id_gets_the_closest_one() -> None:
    """The text says how to see them all."""
    with pytest.raises(InvalidTask, match=r"has no task 'alpah'. Did you mean 'alpha'\?"):
        Taskset([task("alpha")])["alpah"]
    with pytest.raises(IndexError):
        SET[3]


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [("a", ("a",)), ("*", ("a", "b", "c")), ("f", ("b",)), ("u", ("c",)), ("A", ()), ("x*", ())],
)
def test_a_pattern_matches_ids_environments_and_templates(
    pattern: str, ids: tuple[str, ...]
) -> None:
    """Case counts, and nothing else of a row is matched."""
    assert SET.filter(pattern).ids == ids


def test_a_predicate_filters_too() -> None:
    """The smaller set keeps the name and the order."""
    smaller = SET.filter(lambda t: t.id != "b")
    assert (smaller.ids, smaller.name) == (("a", "c"), "letters")

"""Contexts reach the tasks of a set: from a file, drawn, in turn or at random."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.carl import CustomSelector
from hud_mcp.errors import InvalidContext, InvalidTask, SourceNotFound
from hud_mcp.loading.contexts import (
    NamedContext,
    base_task,
    contexts_for,
    parse_sample,
    read_contexts,
    sample_contexts,
    split_of,
    spread,
)
from hud_mcp.loading.provenance import UNUSED, UnusedContexts, recorded_unused, unused_contexts
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset
from hud_mcp.values.context import ContextFeature, ContextSpace

SPACE = ContextSpace(
    [
        ContextFeature(name="width", default=1280, lower=200, upper=3840),
        ContextFeature(name="scale", default=1.0, lower=0.5, upper=4),
        ContextFeature(name="locale", default="en-US"),
        ContextFeature(name="scheme", default="light", choices=("light", "dark")),
        ContextFeature(name="offline", default=False),
    ]
)
EARTH, MOON = (NamedContext(name="earth", split="train"),
               NamedContext(name="moon", split="test", context={"scale": 2.0}))  # fmt: skip


def tasks(*ids: str, env: str = "shop") -> Taskset:
    """Some rows."""
    return Taskset([Task(id=i, env=env, template="find") for i in ids], name="set")


def written(folder: Path, text: str) -> Path:
    """A file of contexts."""
    path = folder / "contexts.jsonl"
    path.write_text(text)
    return path


ROWS = [
    {"name": "a", "split": "train", "context": {"width": 900}},
    {"name": "b", "context": {"locale": "de-DE", "offline": True}},
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS),
        "\n\n".join(json.dumps(row) for row in ROWS) + "\n",
    ],
)
def test_contexts_are_read_from_json_and_json_lines(tmp_path: Path, text: str) -> None:
    """A list and lines say the same; types stay as they were written."""
    first, second = read_contexts(written(tmp_path, text))
    assert first == NamedContext(name="a", split="train", context={"width": 900})
    assert (second.name, second.split) == ("b", None)
    assert second.context == {"locale": "de-DE", "offline": True}
    assert second.context["offline"] is True


def test_a_file_may_be_one_object_from_name_to_context(tmp_path: Path) -> None:
    """Which is how contextual reinforcement learning writes them; a lone row is a row."""
    path = written(tmp_path, json.dumps({"earth": {}, "moon": {"scale": 2}}))
    assert [(c.name, c.context) for c in read_contexts(path)] == [
        ("earth", {}),
        ("moon", {"scale": 2}),
    ]
    path = written(tmp_path, json.dumps(ROWS[0]))
    assert [c.name for c in read_contexts(path)] == ["a"]
    path = written(tmp_path, json.dumps([{"context": {}}, {"context": {}}]))
    assert [c.name for c in read_contexts(path)] == ["context-0", "context-1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no contexts"),
        ("[]", "holds no contexts"),
        ("3", "contexts are objects, not int"),
        ('{"name": "a", "context": {}}\n{"name"', r"contexts.jsonl:2: this line is not JSON"),
        ('[{"name": "a", "contxt": {}}]', r"item 0: there is no field 'contxt'. Did you mean 'con"),
        ('[{"name": "a@b", "context": {}}]', "item 0: name: string should match"),
        ('[{"name": "a", "context": {"x": [1]}}]', "item 0: context.x: input should be"),
        ('[{"name": "a", "context": {}}, {"name": "a", "context": {}}]', "two contexts are called"),
        ("[3]", "a context is an object, not int"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """The text names the file, the row and the field."""
    with pytest.raises(InvalidContext, match=said) as caught:
        read_contexts(written(tmp_path, text))
    assert "contexts.jsonl" in str(caught.value)


def test_a_file_that_is_not_there_is_told_with_what_else_may_be_given(tmp_path: Path) -> None:
    """A path and a sample are the two ways."""
    with pytest.raises(SourceNotFound, match="or sample:N"):
        read_contexts(tmp_path / "none.json")


def test_a_sample_stays_within_its_ranges_and_names_what_it_drew() -> None:
    """Numbers between two ends, values of a list; features that are not named are not bound."""
    ranges = {"width": "800..1600", "locale": "de-DE|en-US", "scale": "1|2"}
    drawn = sample_contexts(SPACE, 40, ranges=ranges, seed=3, split="train")
    assert [c.name for c in drawn][:2] == ["sample-00", "sample-01"]
    assert {c.split for c in drawn} == {"train"}
    widths = [c.context["width"] for c in drawn]
    assert all(type(w) is int and 800 <= w <= 1600 for w in widths)
    assert len(set(widths)) > 20
    assert {c.context["locale"] for c in drawn} == {"de-DE", "en-US"}
    assert {c.context["scale"] for c in drawn} == {1.0, 2.0}
    assert all(set(c.context) == set(ranges) for c in drawn)


def test_a_sample_without_ranges_draws_all_that_has_bounds_or_choices() -> None:
    """Text without choices keeps its default, as nothing says what it may be."""
    drawn = sample_contexts(SPACE, 30, seed=1)
    assert set(drawn[0].context) == {"width", "scale", "scheme", "offline"}
    assert {c.context["offline"] for c in drawn} == {True, False}
    assert all(SPACE.problems(c.context) == [] for c in drawn)


@pytest.mark.long
def test_a_sample_is_the_same_in_another_process() -> None:
    """A seed is all that it takes to run the same contexts again."""
    here = [c.context for c in sample_contexts(SPACE, 3, ranges={"width": "", "scheme": ""})]
    script = (
        "import json, test_contexts as t\n"
        "drawn = t.sample_contexts(t.SPACE, 3, ranges={'width': '', 'scheme': ''})\n"
        "print(json.dumps([c.context for c in drawn]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, check=True,
        timeout=PATIENCE_S, env={"PYTHONPATH": ":".join(p for p in sys.path if p)},
    )  # fmt: skip
    assert json.loads(done.stdout) == here
    others = [c.context for c in sample_contexts(SPACE, 3, ranges={"width": ""}, seed=1)]
    assert [c["width"] for c in others] != [c["width"] for c in here]


@each_of(
    ("ranges", "said"),
    [
        ({"widht": "1..2"}, "no feature 'widht'. Did you mean 'width'"),
        ({"width": "1..900"}, r"width=1..900: 1 is not within \[200.0, 3840.0\]"),
        ({"width": "900..800"}, "the lower end is not below 800"),
        ({"width": "a..b"}, "'a' is not a value of width"),
        ({"width": "800.5..900"}, "800.5 is not an integer"),
        ({"scheme": "light..dark"}, "it has no order; write its values as a|b"),
        ({"scheme": "blue"}, "'blue' is not one of"),
        ({"locale": ""}, "nothing to draw from"),
    ],
)
def test_a_range_that_the_space_does_not_have_is_refused(ranges: dict[str, str], said: str) -> None:
    """Before anything is drawn, and naming the feature."""
    with pytest.raises(InvalidContext, match=said):
        sample_contexts(SPACE, 2, ranges=ranges)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("contexts.json", None),
        ("sample:8", (8, {})),
        ("sample:2:width=1..2, locale=a|b,scale", (2, {"width": "1..2", "locale": "a|b",
                                                       "scale": ""})),
    ],
)  # fmt: skip
def test_what_the_option_means(text: str, meaning: Any) -> None:
    """A number alone, or with features and their ranges; anything else is a file."""
    assert parse_sample(text) == meaning


@each_of("text", ["sample:", "sample:0", "sample:x", "sample:3:", "sample:-1"])
def test_a_sample_of_nothing_is_refused(text: str) -> None:
    """It is not a file's name either."""
    with pytest.raises(InvalidContext, match=r"Write sample:N, or sample:N:feature=low\.\.high"):
        parse_sample(text)


def test_contexts_are_checked_against_each_environment(tmp_path: Path) -> None:
    """A file is for all; a sample is drawn from each one's own space."""
    other = ContextSpace([ContextFeature(name="gravity", default=9.8, lower=1, upper=20)])
    path = written(tmp_path, json.dumps(ROWS))
    assert list(contexts_for(str(path), {"shop": SPACE})) == ["shop"]
    with pytest.raises(InvalidContext, match=r"'a' does not fit the environment 'pole': .*'width'"):
        contexts_for(str(path), {"shop": SPACE, "pole": other})
    drawn = contexts_for("sample:3", {"shop": SPACE, "pole": other}, seed=5)
    assert "width" in drawn["shop"][0].context
    assert all(set(c.context) == {"gravity"} for c in drawn["pole"])


def test_tasks_get_contexts_in_turn() -> None:
    """Ids say which; rows say the split and the row that they come from; the order stays."""
    made = spread(tasks("a", "b", "c"), [EARTH, MOON])
    assert made.ids == ("a@earth", "b@moon", "c@earth")
    assert made.name == "set"
    assert made["b@moon"].context == {"scale": 2.0}
    assert made["b@moon"].metadata == {"context": "moon", "split": "test", "base_task": "b"}
    assert [split_of(task) for task in made] == ["train", "test", "train"]
    assert [base_task(task) for task in made] == ["a", "b", "c"]


def test_each_environment_has_a_turn_of_its_own() -> None:
    """Tasks of another one between them change nothing."""
    mixed = Taskset([*tasks("a"), *tasks("x", env="pole"), *tasks("b"), *tasks("y", env="pole")])
    made = spread(mixed, {"shop": [EARTH, MOON], "pole": [MOON, EARTH]})
    assert made.ids == ("a@earth", "x@moon", "b@moon", "y@earth")
    with pytest.raises(InvalidContext, match="no contexts for the tasks of environment 'pole'"):
        spread(mixed, {"shop": [EARTH]})


def test_the_other_selectors() -> None:
    """Every context for each task, the first for all, drawn by a seed, or an author's own."""
    rows = tasks(*"abcdefgh")
    assert len(spread(rows, [EARTH, MOON], selector="every")) == 16
    assert {t.metadata["context"] for t in spread(rows, [EARTH, MOON], selector="static")} == {
        "earth"
    }
    drawn = [spread(rows, [EARTH, MOON], selector="random", seed=s).ids for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    last = spread(
        rows, [EARTH, MOON], selector=lambda c: CustomSelector(c, lambda s: (s.contexts["moon"], 1))
    )
    assert {t.metadata["context"] for t in last} == {"moon"}
    with pytest.raises(InvalidContext, match=r"no selector 'randm'\. Did you mean 'random'"):
        spread(rows, [EARTH], selector="randm")


def test_what_a_row_has_stays_where_the_context_says_nothing() -> None:
    """The context wins over the row's, and arguments, seed, validation and metadata stay."""
    row = Task.model_validate(
        {"id": "a", "env": "shop", "template": "find", "args": {"x": 1}, "seed": 4,
         "context": {"scale": 3.0, "width": 500}, "metadata": {"difficulty": "easy"},
         "validation": {"oracle": 0.5}}
    )  # fmt: skip
    (made,) = spread(Taskset([row]), [MOON])
    assert made.context == {"scale": 2.0, "width": 500}
    assert (made.args, made.seed, made.validation) == ({"x": 1}, 4, row.validation)
    assert made.metadata["difficulty"] == "easy"
    assert row.context == {"scale": 3.0, "width": 500}
    (again,) = spread(Taskset([made]), [EARTH])
    assert (again.id, base_task(again)) == ("a@moon@earth", "a")


def test_a_split_does_not_outlive_its_context() -> None:
    """A row of `train` under a context that names no split is no longer of `train`."""
    row = Task(id="a", env="shop", template="find", context={"scale": 3.0},
               metadata={"split": "train", "difficulty": "easy"})  # fmt: skip
    drawn = sample_contexts(SPACE, 3, ranges={"scale": ""})
    made = spread(Taskset([row]), drawn, selector="every")
    assert [split_of(task) for task in made] == [None, None, None]
    assert {task.metadata["difficulty"] for task in made} == {"easy"}
    (named,) = spread(Taskset([row]), [MOON])
    assert split_of(named) == "test"
    # What changes nothing leaves the row what it was.
    for same in ({}, {"scale": 3.0}):
        (kept,) = spread(Taskset([row]), [NamedContext(name="same", context=same)])
        assert split_of(kept) == "train"


def test_contexts_that_no_row_got_are_known() -> None:
    """In turn, three contexts reach two rows; with several environments each is named."""
    three = [EARTH, MOON, NamedContext(name="mars")]
    made = spread(tasks("a", "b"), three)
    names = [named.name for named in three]
    assert unused_contexts({"shop": names}, made) == UnusedContexts(count=1, names=("mars",))
    assert unused_contexts({"shop": names}, spread(tasks("a"), three, selector="every")) is None
    both = unused_contexts({"shop": names, "pole": names}, made)
    assert both is not None
    assert both.names == ("mars (shop)", "earth (pole)", "moon (pole)", "mars (pole)")
    many = unused_contexts({"shop": [f"c{i}" for i in range(900)]}, made)
    assert many is not None
    assert (many.count, len(many.names)) == (900, 100)
    assert recorded_unused({UNUSED: many.model_dump(mode="json")}) == many
    assert recorded_unused({}) is recorded_unused({UNUSED: "?"}) is None


def test_an_id_that_grows_too_long_is_told() -> None:
    """It is the context's name that is to become shorter."""
    with pytest.raises(InvalidTask, match=r"@earth' cannot be a task: .*at most 200"):
        spread(tasks("a" * 198), [EARTH])

"""A taskset is a file of rows, read with the line of each mistake."""

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_of

from hud_mcp import TaskSet
from hud_mcp.errors import HudMcpError, InvalidTask, Replaced, SourceNotFound
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
            ":2: a task has a 'prompt' or a 'template', and this row has neither of them",
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
        (GOOD + b"\n" + GOOD, ":3: the id 'a' is taken by line 1; give each row its own id"),
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


@each_of(
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


# ------------------------------------------------------------------------------- the documents


def test_a_set_is_made_as_hud_s_documents_make_one() -> None:
    """By keywords, by the name first, and by the tasks first; both names are one class."""
    one, two = task("a"), task("b")
    by_keyword = TaskSet(tasks=[one, two], description="My set")
    assert by_keyword.tasks == [one, two]
    assert (by_keyword.id, by_keyword.description) == (None, "My set")
    hud = Taskset("mine", [one, two])
    assert (hud.name, hud.tasks) == ("mine", [one, two])
    assert Taskset("mine", tasks=[one, two]).tasks == [one, two]
    assert Taskset(name="mine", tasks=[one]).name == "mine"
    assert Taskset(name="empty").tasks == []
    assert Taskset([one], "mine").name == "mine"
    assert TaskSet([one], id="set-1").id == "set-1"
    assert TaskSet is Taskset


def test_a_set_acts_like_a_list() -> None:
    """As the documents say, and as HUD's newer ones do by name."""
    assert next(reversed(SET)) == SET[2]
    assert (SET.index(SET[1]), SET.count(SET[1])) == (1, 1)
    assert [t.id for t in SET] == list(SET.ids)
    assert dict(SET.items())["b"] == SET["b"]
    SET.tasks.clear()
    assert len(SET) == 3


def test_exclude_is_what_filter_leaves() -> None:
    """By pattern, predicate or, as HUD has it, by ids; in order."""
    assert SET.exclude("f").ids == ("a", "c")
    assert SET.exclude(lambda t: t.id == "a").ids == ("b", "c")
    assert SET.filter(["c", "a"]).ids == ("a", "c")
    assert SET.exclude({"c", "a"}).ids == ("b",)


def test_a_sample_is_drawn_by_its_seed() -> None:
    """The same seed draws the same tasks, in their order; no more than there are."""
    many = Taskset([task(f"t{i}") for i in range(50)], name="many")
    drawn = many.sample(10, seed=4)
    assert drawn.ids == many.sample(10, seed=4).ids != many.sample(10, seed=5).ids
    assert list(drawn.ids) == sorted(drawn.ids, key=many.ids.index)
    assert len(set(drawn.ids)) == 10
    assert many.sample(99).ids == many.ids
    with pytest.raises(InvalidTask, match="0 or more tasks, not -1"):
        many.sample(-1)


def test_splits_are_those_that_metadata_names() -> None:
    """Each with its count; an unknown one gets the closest."""
    rows = [task(f"t{i}", metadata={"split": "train" if i < 3 else "test"}) for i in range(5)]
    both = Taskset([*rows, task("none")], description="two")
    assert both.splits == {"train": 3, "test": 2}
    assert both.split("test").ids == ("t3", "t4")
    assert both.split("test").description == "two"
    with pytest.raises(InvalidTask, match=r"no split 'tset'. Did you mean 'test'\? It has: train"):
        both.split("tset")


def test_a_set_s_digest_is_of_its_tasks_in_order() -> None:
    """A name is not a part of it."""
    assert SET.digest == Taskset(list(SET), name="other").digest
    assert SET.digest != Taskset(list(reversed(SET))).digest != SET[:2].digest


def prompt_row(name: str, **fields: Any) -> dict[str, Any]:
    """A row with a prompt."""
    return {"id": name, "prompt": "Ask.", "gym": "qa", **fields}


BOTH = Taskset([
    task("a", args={"x": [1]}),
    Task.model_validate(prompt_row("p", setup=[("goto", "/"), "b"], evaluate=("response_is", "x"))),
])  # fmt: skip


@pytest.mark.parametrize("name", ["set.json", "set.jsonl"])
def test_what_is_written_to_a_file_is_read_from_it(tmp_path: Path, name: str) -> None:
    """Rows of both shapes, in both kinds of file."""
    path = BOTH.to_file(tmp_path / name)
    again = Taskset.from_file(path)
    assert again.tasks == BOTH.tasks
    assert (again.name, again.digest) == ("set", BOTH.digest)


def test_a_file_of_another_kind_is_not_written(tmp_path: Path) -> None:
    """The text says which kinds there are."""
    with pytest.raises(InvalidTask, match=r"a \.jsonl or a \.json file"):
        BOTH.to_file(tmp_path / "set.csv")
    assert list(tmp_path.iterdir()) == []


SPREAD = (
    b'\n{\n"id": "n", "tasks": [\n\n{"env": "e", "template": "[{"}\n,\n'
    b'{"env": "e", "template": "a\\"]}"}], "description": "d"}'
)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b'[{"id": "a", "env": "e", "template": "t"},\n {"env": "e",\n "template": "u"}]', (1, 2)),
        (b'{"id": "a", "env": "e", "template": "t"}', (1,)),
        (SPREAD, (5, 7)),
        (b'{"id": "tasks", "tasks":[{"env":"e","template":"t","metadata":{"tasks":[{}]}}]}', (1,)),
        (b"[]", ()),
        (b'{"description": "none", "tasks": []}', ()),
    ],
)  # fmt: skip
def test_json_is_a_list_one_row_or_a_named_set_and_each_row_keeps_its_line(
    tmp_path: Path, content: bytes, lines: tuple[int, ...]
) -> None:
    """Whatever stands in the texts."""
    path = tmp_path / "set.json"
    path.write_bytes(content)
    found = Taskset.from_file(path)
    assert [found.place_of(t.id) for t in found] == [f"{path}:{line}" for line in lines]


@settings(max_examples=60)
@given(
    st.lists(rows, max_size=4, unique_by=lambda t: t.id),
    st.sampled_from(["", "named"]),
    st.sampled_from(["", "indented"]),
)
def test_any_rows_of_json_keep_their_lines(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[Task], named: str, indented: str
) -> None:
    """The line of a row is where its object begins, in any layout."""
    path = tmp_path_factory.mktemp("rows") / "set.json"
    whole: Any = [t.row for t in tasks]
    option = orjson.OPT_INDENT_2 if indented else 0
    path.write_bytes(orjson.dumps({"id": "i", "tasks": whole} if named else whole, option=option))
    found = Taskset.from_file(path)
    assert found.tasks == tasks
    written = path.read_bytes().split(b"\n")
    for each in found:
        line = int((found.place_of(each.id) or "").rpartition(":")[2])
        begins = written[line - 1].strip() if indented else written[0]
        assert begins.startswith(b"{" if indented else (b"[", b"{"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.json", b'[\n{"id": "a", "env": "e", "template": "t"},\n{"prompt": 5}]', ":3: prompt: "),
        ("s.json", b"[1]", ":1: a task is an object, not int"),
        ("s.json", b'["\\n", 1]', ":1: a task is an object, not str"),
        ("s.json", b"{", ": this file is not JSON"),
        ("s.json", b'{"tasks": [], "nmae": "x"}', ": nmae: a set of tasks has no such field."),
        ("s.json", b'{"tasks": [], "description": 5}', ": description: this is a text, not int."),
        ("s.json", b'[{"prompt": "a"},\n{"prompt": "a"}]', ":2: the id 'prompt-"),
        ("s.jsonl", b'{"prompt": "a", "template": "b"}', ":1: a task has a 'prompt' or a"),
        ("s.jsonl", b'{"prompt": "a", "setup": {"functon": "x"}}', ":1: setup: a call has no "),
        ("s.jsonl", b'{"prompt": "a", "gym": {"location": "x"}}', ":1: gym.location: input"),
        ("s.jsonl", b'{"prompt": "a", "setpu": "x"}', ":1: setpu: there is no such field. Did you"),
        ("s.jsonl", b'{"prompt": "a", "target": ' + b"[" * 200 + b"]" * 200 + b"}", ":1: target: "),
        ("s.py", b"tasks = 5", " declares no tasks"),
        ("s.py", b"from hud_mcp import Task\n\nt = Task(prompt='a', setup=5)", ":3: "),
        ("s.py", b"from hud_mcp import Task\nx = [Task(prompt='a'), Task(prompt='a')]", ":2: the"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_line_and_field(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    """Of every kind of file."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(HudMcpError) as caught:
        Taskset.from_file(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_a_python_file_s_public_tasks_are_taken_with_their_places(tmp_path: Path) -> None:
    """Tasks, lists and sets of them, each once, in order."""
    path = tmp_path / "some.py"
    path.write_text(
        "from hud_mcp import Task, TaskSet\n"
        "_hidden = Task(id='h', prompt='a')\n"
        "one = Task(id='one', prompt='a')\n"
        "more = [Task(id=f'm{i}', prompt='a') for i in range(2)]\n\n"
        "whole: TaskSet = TaskSet(tasks=[one, Task(id='last', prompt='a')])\n"
        "other = [5, 'x']\n"
    )
    found = Taskset.from_file(path)
    assert found.ids == ("one", "m0", "m1", "last")
    assert [found.place_of(i) for i in found.ids] == [
        f"{path}:3: one", f"{path}:4: more[0]", f"{path}:4: more[1]", f"{path}:6: whole[1]"
    ]  # fmt: skip


def test_a_folder_is_its_env_py_or_its_files_of_rows(tmp_path: Path) -> None:
    """Files in the order of their names; two rows of one id are refused with both places."""
    (tmp_path / "b.jsonl").write_bytes(GOOD)
    (tmp_path / "a.json").write_bytes(b'[{"id": "z", "env": "e", "template": "t"}]')
    (tmp_path / "notes.txt").write_text("not rows")
    assert Taskset.from_file(tmp_path).ids == ("z", "a")
    (tmp_path / "c.jsonl").write_bytes(b"\n" + GOOD)
    with pytest.raises(InvalidTask) as caught:
        Taskset.from_file(tmp_path)
    assert str(caught.value).startswith(
        f"{tmp_path}/c.jsonl:2: the id 'a' is taken by {tmp_path}/b.jsonl:1;"
    )
    (tmp_path / "env.py").write_text("from hud_mcp import Task\nt = Task(id='e', prompt='a')\n")
    assert Taskset.from_file(tmp_path).ids == ("e",)


def test_a_smaller_set_remembers_where_its_rows_were(tmp_path: Path) -> None:
    """Slices, filters and samples too."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(GOOD + b'{"id": "b", "env": "e", "template": "t"}\n')
    found = Taskset.from_file(path)
    assert found[1:].place_of("b") == found.filter("b").place_of("b") == f"{path}:2"
    assert SET.place_of("a") is None


HUD_ROW = {
    "env": "e",
    "id": "count",
    "args": {"word": "lamp"},
    "slug": "count-lamp",
    "validation": [{"name": "x"}],
    "columns": {"difficulty": "easy"},
    "agent_config": {"timeout_seconds": 5},
    "runtime_config": {"limits": {"run_timeout_s": 60}},
    "verifier": {"env": "e", "id": "check"},
}


def test_a_row_of_hud_s_sdk_is_read_and_written_back(tmp_path: Path) -> None:
    """Its template is `id`, its name `slug`; what only HUD knows is kept."""
    path = tmp_path / "hud.jsonl"
    path.write_bytes(orjson.dumps(HUD_ROW) + b'\n{"env": "e", "id": "bare", "columns": null}\n')
    one, bare = Taskset.from_file(path)
    assert (one.id, one.env, one.template, one.args) == (
        "count-lamp",
        "e",
        "count",
        HUD_ROW["args"],
    )
    assert (bare.id, bare.template, bare.metadata) == ("bare", "bare", {})
    written = Taskset([one, bare]).to_file(tmp_path / "again.jsonl", form="hud")
    again = [orjson.loads(line) for line in written.read_bytes().splitlines()]
    assert again == [HUD_ROW, {"env": "e", "id": "bare", "args": {}, "slug": "bare"}]


def test_hud_s_rows_have_no_prompts(tmp_path: Path) -> None:
    """Which is said of the first task that cannot be one; nothing is written."""
    with pytest.raises(
        InvalidTask, match="The task 'p' has a prompt and its own calls, but HUD's rows"
    ):
        BOTH.to_file(tmp_path / "hud.json", form="hud")
    assert list(tmp_path.iterdir()) == []


WRITES = """
import sys
from hud.eval import Task, Taskset
rows = [
    Task(env="e", id="count", args={"word": "l\u00e4mp", "n": [1, 2.5]}),
    Task(env="e", id="count", args={}, slug="mine", columns={"d": "easy"},
         runtime_config={"limits": {"run_timeout_s": 60}}, verifier=Task(env="e", id="check")),
    Task(env="other", id="bare"),
]
Taskset("set", rows).to_file(sys.argv[1])
print(*[t.slug for t in rows])
"""
READS = """
import sys
from hud.eval import Taskset
for path in sys.argv[1:]:
    found = Taskset.from_file(path)
    print([(t.env, t.id, t.args, t.slug, t.columns) for t in found])
"""


@pytest.mark.parametrize("name", ["set.json", "set.jsonl"])
def test_hud_s_sdk_and_this_one_read_each_other_s_files(
    tmp_path: Path, hud_python: Path, name: str
) -> None:
    """The SDK itself writes and reads: names, arguments and columns are the same on both sides."""
    theirs, ours = tmp_path / name, tmp_path / f"ours-{name}"
    slugs = run_python(hud_python, WRITES, theirs).split()
    found = Taskset.from_file(theirs)
    assert list(found.ids) == slugs
    found.to_file(ours, form="hud")
    first, second = run_python(hud_python, READS, theirs, ours).splitlines()
    assert first == second


def run_python(python: Path, program: str, *arguments: Path) -> str:
    """Run a program with another interpreter; return what it printed."""
    command = [str(python), "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@each_of("name", ["upload", "from_api", "from_module", "load_from_inspect", "fit"])
def test_calls_of_hud_s_cloud_say_what_to_use(name: str) -> None:
    """On the class and on a set."""
    for owner in (TaskSet, SET):
        with pytest.raises(Replaced, match=rf"^Taskset\.{name} was of HUD's cloud"):
            getattr(owner, name)("name", api_key="x")


def test_joined_sets_keep_where_each_task_is_from() -> None:
    """Smaller sets of it and rows under a context know it too; a set alone is its own."""
    town, land = (
        Taskset([Task(id="Rome", prompt="?")], "towns"),
        Taskset([Task(prompt="!")], "lands"),
    )
    joined = Taskset.joined([town, land])
    assert (joined.name, list(joined)) == ("towns, lands", [*town, *land])
    assert [joined.set_of(task_id) for task_id in joined.ids] == ["towns", "lands"]
    assert joined.filter("Rome").set_of("Rome@tall") == "towns"
    assert Taskset.joined([joined], "all").set_of("Rome") == "towns"
    assert town.set_of("Rome") == "towns"


def test_sets_that_cannot_be_told_apart_are_not_joined() -> None:
    """Neither two of one name, nor two with a task of one id; the text names them."""
    towns = Taskset([Task(id="Rome", prompt="?")], "towns")
    with pytest.raises(InvalidTask, match="called 'towns'"):
        Taskset.joined([towns, Taskset([], "towns")])
    with pytest.raises(InvalidTask, match="books and towns both have a task 'Rome'"):
        Taskset.joined([towns, Taskset(towns, "books")])


def test_a_split_is_a_difficulty_too() -> None:
    """Rows are taken by either key of their metadata, and a name of neither tells those of both."""
    rows = [{"split": "train", "difficulty": "easy"}, {"difficulty": "hard"}, {"split": "hard"}]
    tasks = Taskset([Task(id=str(n), prompt="?", metadata=m) for n, m in enumerate(rows)], "mine")
    assert tasks.split("easy").ids == ("0",)
    assert tasks.split("hard").ids == ("1", "2")
    assert (tasks.splits, tasks.difficulties) == ({"train": 1, "hard": 1}, {"easy": 1, "hard": 1})
    with pytest.raises(InvalidTask, match=r"Did you mean 'train'\? It has: train, hard, easy\."):
        tasks.split("trian")
    with pytest.raises(InvalidTask, match="Its rows name none"):
        tasks[:0].split("hard")

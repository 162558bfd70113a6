"""A task is one row of data."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tables import each_of

from hud_mcp import CustomGym, FunctionConfig
from hud_mcp.errors import Replaced
from hud_mcp.loading.sets import find_taskset
from hud_mcp.task import Task, Validation
from hud_mcp.taskset import Taskset
from hud_mcp.types import why_remote

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
words = st.text(min_size=1, max_size=12)
scalars = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.text(max_size=5)
)
tasks = st.builds(
    Task,
    id=words,
    env=words,
    template=words,
    args=objects,
    context=st.dictionaries(words, scalars, max_size=3),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    description=st.text(max_size=12),
    metadata=objects,
    validation=st.none()
    | st.builds(
        Validation,
        oracle=st.none() | st.floats(0, 1),
        nop=st.none() | st.floats(0, 1),
        wrong_answer=st.none() | st.text(max_size=5),
    ),
)


@settings(max_examples=50)
@given(tasks)
def test_a_row_round_trips_through_json(task: Task) -> None:
    """Nothing is lost or changes its type, whether defaults are written or not."""
    whole = Task.model_validate_json(task.model_dump_json())
    short = Task.model_validate(task.model_dump(mode="json", exclude_defaults=True))
    assert whole == task == short
    assert {k: type(v) for k, v in whole.context.items()} == {
        k: type(v) for k, v in task.context.items()
    }
    assert whole.digest == task.digest == short.digest


def test_a_digest_is_of_the_content_and_not_of_the_order() -> None:
    """Two rows are the same task where their digests are."""
    one = Task(id="a", env="e", template="t", args={"x": 1, "y": 2})
    other = Task(id="a", env="e", template="t", args={"y": 2, "x": 1})
    assert one.digest == other.digest
    assert len(one.digest) == 64
    assert one.digest != one.model_copy(update={"seed": 1}).digest


def test_a_row_without_an_id_is_named_by_its_template_and_arguments() -> None:
    """The id is the same each time, and short."""
    row: dict[str, Any] = {"env": "e", "template": "count", "args": {"word": "a"}}
    assert Task.model_validate(row).id == Task.model_validate(row).id
    assert Task.model_validate(row).id.startswith("count-")
    assert Task.model_validate({**row, "args": {}}).id == "count"


@each_of(
    ("change", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"env": ""}, "env"),
        ({"template": ""}, "template"),
        ({"args": []}, "args"),
        ({"context": {"a": [1]}}, "context"),
        ({"seed": "x"}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"seed": -(2**63) - 1}, "seed"),
        ({"reward": 1}, "reward"),
        ({"validation": {"oracel": 1}}, "validation.oracel"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    """No field is dropped in silence, and none is coerced into nonsense."""
    with pytest.raises(ValidationError) as caught:
        Task.model_validate({"id": "a", "env": "e", "template": "t"} | change)
    assert ".".join(map(str, caught.value.errors()[0]["loc"])).startswith(field)


def test_validation_expects_full_reward_of_the_oracle_and_none_of_the_nop() -> None:
    """These are the defaults of every row that has a validation."""
    assert Validation() == Validation(oracle=1.0, nop=0.0, wrong_answer=None)


@pytest.mark.parametrize("value", [2**70, "\ud800"])
def test_a_row_of_any_json_has_a_digest(value: Any) -> None:
    """Integers beyond 64 bits and half of a surrogate pair are JSON too."""
    one, same, other = (
        Task(env="shop", template="buy", args={"value": v}, metadata={"value": v})
        for v in (value, value, 2**71)
    )
    assert one.digest == same.digest != other.digest
    assert one.id == same.id != other.id


DIGESTS = {
    "count-r-strawberry": "7dcc13cea7b2c7b037fa8fbaf3805b208fdc616583cdb98af5d355f674e9f0f6",
    "count-s-mississippi": "8368b7de6d2040909452ae1dc856c8b0bb2c8661f12eec363972aeca69674259",
    "shop-cart-mug@train-0": "3e2ce3cf4ceacc831fbb6e656724eebae206982cbafd9bda6ef7f0d66ac51c48",
    "cartpole@train-00": "5cb7076cecbeab866108e7ada39a3134881b01467bc39f993a75ed6a073d6372",
}
SETS = {
    "contextual_acrobot": "24bbfea94b78319f57e77b648e4dec20e96440b75880025bcc62283ade9a5d29",
    "contextual_browser": "1dcae279fc697a23b281994b56227d461fcc0b88ad4abe4512f14d65160f3dac",
    "contextual_cartpole": "dd32419e703a3fc37270f1be0755ba3bcb0e80286b1975901f8c3352e6f5b06b",
    "contextual_mountain_car": "13a486464c1b3ba64ae7dfa6fffce59de7cd376d06fcaf41298bd74e23253070",
    "contextual_pendulum": "0a780f53d8c9477c1b07cd9dd3294ae73c60f8c4320615997c1879cb6741e43e",
    "quickstart": "167552520e8230cfd8b26e5ec8fc061e1292ddce343bf10b41cee65915607fe2",
}
"""What release 0.1 computed: of rows, and of the digests of whole sets, a line each."""


def test_a_template_row_s_digest_is_that_of_release_0_1() -> None:
    """What was recorded then is still the same task."""
    found = {
        name: Taskset.load(find_taskset(name)).filter(lambda task: task.prompt is None)
        for name in SETS
    }
    assert {name: tasks.digest for name, tasks in found.items()} == SETS
    rows = {task.id: task.digest for tasks in found.values() for task in tasks}
    assert {name: rows[name] for name in DIGESTS} == DIGESTS
    odd = Task(
        env="shop",
        template="buy",
        args={"n": 2**70, "s": "\ud800"},
        seed=7,
        context={"g": 9.5},
        metadata={"k": [1]},
    )
    assert odd.digest == "7964a28b93d80aa9af9346d7ecd2213d1e49cc12fe90023142d335a5b5f3d082"
    bare = Task(id="a", env="e", template="t")
    assert bare.digest == "7da13b5c01d045581edfac8e1bfab9ff73436c49160663056d815eccaed5dfc7"


# ------------------------------------------------------------------------------- prompts


def prompt(**fields: Any) -> Task:
    """A task with a prompt."""
    return Task.model_validate({"prompt": "Buy a lamp.", **fields})


def test_the_tasks_of_the_documents_are_made_as_they_are_written() -> None:
    """The first has a browser to be set up; the second is a question."""
    task = Task(
        prompt="Log in to example.com with username 'test'",
        gym="hud-browser",
        setup=[("goto", "https://example.com/login")],  # type: ignore[arg-type]
        evaluate={"function": "page_contains", "args": ["test"]},  # type: ignore[arg-type]
    )
    assert (task.env, task.gym) == ("hud-browser", "hud-browser")
    assert [str(c) for c in task.setup] == ["goto('https://example.com/login')"]
    assert task.evaluate == (FunctionConfig(function="page_contains", args=("test",)),)
    question = Task(
        prompt="What is the powerhouse of the cell?",
        gym="hud-browser",
        setup=(),
        evaluate=("response_includes", "mitochondria"),  # type: ignore[arg-type]
    )
    assert question.setup == ()
    assert question.id != task.id


def test_a_prompt_without_a_gym_is_a_question() -> None:
    """`env` names the gym as well as `gym` does."""
    assert prompt().env == "qa"
    assert prompt(env="shop").env == prompt(gym="shop").env == "shop"


def test_id_metadata_config_and_description_may_be_none() -> None:
    """As in HUD's rows."""
    task = prompt(id=None, metadata=None, config=None, description=None, target=None)
    assert (task.metadata, task.config, task.description) == ({}, None, "")
    assert task == prompt()


def test_a_prompt_without_an_id_is_named_by_a_hash_of_its_row() -> None:
    """The same row has the same id however it is written; another row has another."""
    forms: list[Any] = [
        ("goto", "/"), [("goto", "/")], {"function": "goto", "args": "/"}, [["goto", "/"]],
    ]  # fmt: skip
    ids = {prompt(setup=form).id for form in forms}
    assert len(ids) == 1
    assert ids.pop().startswith("prompt-")
    assert prompt(setup=[None]).id == prompt(setup=()).id == prompt().id
    others = [prompt(setup=("goto", "/b")), prompt(gym="b"), prompt(target="x"), prompt(seed=1)]
    assert len({task.id for task in [prompt(), *others]}) == 5


@each_of(
    ("fields", "said"),
    [
        ({"template": "buy"}, "this row has 'prompt' and 'template'"),
        ({"args": {"a": 1}}, "this row has 'prompt' and 'args'"),
        ({"gym": "a", "env": "b"}, "'gym' and 'env' name one environment: 'a' is not 'b'"),
        ({"gym": 5}, "a gym is a name, such as 'hud-browser', or a CustomGym, not 5"),
        ({"gym": {"location": "local"}}, "gym.image_or_build_context: field required"),
        ({"gym": {"image_or_build_context": "i", "location": "x"}}, "gym.location: input should"),
        ({"config": {"combine": "most"}}, "'combine' is 'most'; it is one of all, any, mean"),
        ({"config": {"allow": "a.com"}}, "'allow' is a list of hosts"),
        ({"prompt": None, "env": "e", "template": "t", "setup": "f"}, "belongs to a task with a"),
        ({"prompt": None, "gym": "e"}, "a task has a 'prompt' or a 'template'"),
    ],
)
def test_a_row_of_no_one_shape_is_refused(fields: dict[str, Any], said: str) -> None:
    """The text names the field, and what it is to be."""
    with pytest.raises(ValidationError) as caught:
        prompt(**fields)
    assert said in str(caught.value)


def test_a_prompt_s_row_is_short_and_reads_back() -> None:
    """What follows from the rest is not written; calls are in their one form."""
    task = prompt(
        gym="shop",
        setup=("goto", "/"),
        evaluate=["done", ("response_is", "x")],
        config={"combine": "any"},
        target={"a": [1]},
        metadata={"split": "test"},
        seed=3,
    )
    assert task.row == {
        "id": task.id,
        "gym": "shop",
        "prompt": "Buy a lamp.",
        "setup": [{"function": "goto", "args": ["/"]}],
        "evaluate": [
            {"function": "done", "args": []}, {"function": "response_is", "args": ["x"]}
        ],
        "config": {"combine": "any"},
        "target": {"a": [1]},
        "metadata": {"split": "test"},
        "seed": 3,
    }  # fmt: skip
    for again in (
        Task.model_validate(task.row),
        Task.model_validate_json(task.model_dump_json()),
        copy.deepcopy(task),
        pickle.loads(pickle.dumps(task)),
    ):
        assert again == task
        assert again.digest == task.digest


@each_of("named", [{}, {"env": "shop"}, {"gym": "shop"}, {"gym": "qa"}])
def test_a_row_reads_back_whichever_way_its_gym_was_named(named: dict[str, Any]) -> None:
    """A gym that was left out stays left out, and the digest is the same."""
    task = prompt(**named)
    assert set(task.row) == {"id", "prompt", *named}
    again = Task.model_validate(task.row)
    assert (again, again.digest) == (task, task.digest)


def test_each_field_of_a_prompt_counts_in_its_digest() -> None:
    """Two tasks that grade or begin differently are not the same task."""
    base = {"id": "one", "gym": "shop"}
    changes: list[dict[str, Any]] = [
        {}, {"prompt": "Other"}, {"gym": "b"}, {"setup": "a"}, {"evaluate": "a"},
        {"setup": ("a", 1)}, {"config": {"combine": "any"}}, {"target": "x"}, {"source": "y"},
    ]  # fmt: skip
    assert len({prompt(**{**base, **change}).digest for change in changes}) == len(changes)


@pytest.mark.parametrize("place", ["an-image", Path("folder")])
def test_a_gym_of_the_user_s_own_reads_back(place: str | Path) -> None:
    """An image and a folder stay what they are, and equal gyms are one environment."""
    gym = CustomGym(image_or_build_context=place)
    task = prompt(gym=gym)
    again = Task.model_validate_json(task.model_dump_json())
    assert again == task
    assert isinstance(again.gym, CustomGym)
    assert type(again.gym.image_or_build_context) is type(place)
    assert task.env == prompt(gym=gym.model_dump()).env == gym.name


def test_gyms_that_only_hud_s_cloud_had_say_what_to_use() -> None:
    """Others may be started here."""
    remote = CustomGym(image_or_build_context="i", location="remote")
    assert "write location='local'" in (why_remote(remote) or "")
    assert "ran in HUD's cloud alone" in (why_remote("OSWorld-Ubuntu") or "")
    for gym in ("qa", "hud-browser", "CartPole-v1", None, CustomGym(image_or_build_context="i")):
        assert why_remote(gym) is None


def test_a_title_is_the_description_or_how_the_prompt_begins() -> None:
    """One line, for lists."""
    assert prompt(description="Lamps").title == "Lamps"
    assert prompt(prompt="\nOne.\nTwo.").title == "One."
    assert prompt(prompt="x" * 200).title == "x" * 79 + "…"
    assert Task(env="e", template="t").title == ""


@each_of("name", ["from_dict", "from_serialized", "serialize", "from_inspect_sample", "fit"])
def test_calls_of_hud_s_older_sdk_say_what_to_use(name: str) -> None:
    """Whatever they are given."""
    with pytest.raises(
        Replaced, match=rf"^Task\.{name} was of HUD's cloud or of its older SDK\. \w"
    ):
        getattr(prompt(), name)({}, api_key="x")

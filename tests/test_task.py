"""A task is one row of data."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hud_mcp.task import Task, Validation

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


@pytest.mark.parametrize(
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

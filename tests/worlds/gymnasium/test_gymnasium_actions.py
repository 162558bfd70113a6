"""What an agent may send for each kind of action space."""

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.errors import ActionFailed, InvalidEnvironment
from hud_mcp.plugins.gymnasium.actions import ActionForm

UNEVEN = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 0.7], np.float32))
SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(4),
    "from five": spaces.Discrete(3, start=5),
    "box": UNEVEN,
    "one": spaces.Box(-2, 2, (1,)),
    "scalar": spaces.Box(-2, 2, ()),
    "grid": spaces.Box(0, 9, (2, 3), np.int64),
    "endless": spaces.Box(-np.inf, np.inf, (2,)),
    "many": spaces.MultiDiscrete([2, 5]),
    "many from": spaces.MultiDiscrete([2, 5], start=[1, -2]),
    "bits": spaces.MultiBinary(3),
    "dict": spaces.Dict({"move": spaces.Discrete(2), "aim": UNEVEN}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Text(3, charset="ab"))),
    "pair": spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))),
    "sequence": spaces.Sequence(spaces.Discrete(3)),
    "text": spaces.Text(5, min_length=2, charset="abc"),
}


def as_json(value: Any) -> Any:
    """An action as an agent writes it."""
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


@each_of("name", SPACES)
def test_what_a_space_holds_is_read_back(name: str) -> None:
    """Through JSON, every sample is an action of the space again, and equal."""
    space = SPACES[name]
    form = ActionForm(space)
    space.seed(1)
    for _ in range(30):
        sample = space.sample()
        read = form.read(json.loads(json.dumps(as_json(sample))))
        assert space.contains(read), (sample, read)
        assert str(as_json(read)) == str(as_json(sample))


@each_of("name", SPACES)
def test_a_schema_is_flat_and_has_an_example_that_is_read(name: str) -> None:
    """No unions, references or lists of types; the example is an action."""
    form = ActionForm(SPACES[name])
    text = json.dumps(form.schema)
    assert not any(word in text for word in ("$ref", "oneOf", "anyOf", "allOf", "Infinity", "NaN"))
    assert form.description.endswith(".")
    assert SPACES[name].contains(form.read(json.loads(form.example)))


WRONG = [
    ("discrete", 4, "action: 4 is above its upper bound 3."),
    ("discrete", -1, "action: -1 is below its lower bound 0."),
    ("discrete", 1.5, "action: expected a whole number, got 1.5."),
    ("discrete", True, "action: expected a whole number, got True."),
    ("discrete", None, "action: expected a whole number, got None."),
    ("from five", 4, "action: 4 is below its lower bound 5."),
    ("box", [0.0, 0.8], "action[1]: 0.8 is above its upper bound 0.7."),
    ("box", [-1.5, 0.0], "action[0]: -1.5 is below its lower bound -1."),
    ("box", [0.0], "action: expected a list of 2, got 1 items."),
    ("box", 0.0, "action: expected a list of 2, got 0.0."),
    ("box", [0.0, "x"], "action[1]: expected a finite number, got 'x'."),
    ("box", [0.0, float("nan")], "action[1]: expected a finite number, got nan."),
    ("endless", [0.0, float("inf")], "action[1]: expected a finite number, got inf."),
    ("endless", [0.0, 1e39], "action[1]: 1e+39 is too large for a float32 number."),
    ("grid", [[0, 1, 2], [3, 4, 10]], "action[1][2]: 10 is above its upper bound 9."),
    ("grid", [[0, 1, 2], [3, 4]], "action[1]: expected a list of 3, got 2 items."),
    ("many", [1, 5], "action[1]: 5 is above its upper bound 4."),
    ("many from", [0, 0], "action[0]: 0 is below its lower bound 1."),
    ("bits", [0, 1, 2], "action[2]: 2 is above its upper bound 1."),
    ("dict", {"move": 2, "aim": [0, 0]}, "action.move: 2 is above its upper bound 1."),
    ("dict", {"move": 1, "aim": [0, 1]}, "action.aim[1]: 1 is above its upper bound 0.7."),
    ("dict", {"move": 1}, "action: aim is missing."),
    ("dict", {"mov": 1}, "action: there is no 'mov'. Did you mean 'move'? It takes aim, move."),
    ("dict", [1], "action: expected an object with aim, move, got [1]."),
    ("tuple", [1, "abc"], "action[1]: 'c' is not one of its characters: ab."),
    ("tuple", [2, "a"], "action[0]: 2 is above its upper bound 1."),
    ("sequence", [0, 3], "action[1]: 3 is above its upper bound 2."),
    ("text", "a", "action: its length: 1 is below its lower bound 2."),
    ("text", "abcabc", "action: its length: 6 is above its upper bound 5."),
    ("text", 5, "action: expected a text, got 5."),
]


@each_of(("name", "raw", "said"), WRONG)
def test_a_bad_action_names_the_bound_that_it_breaks(name: str, raw: Any, said: str) -> None:
    """And where in the action; nothing is clipped."""
    with pytest.raises(ActionFailed) as caught:
        ActionForm(SPACES[name]).read(raw)
    assert str(caught.value) == said


@settings(max_examples=100)
@given(
    st.sampled_from(sorted(SPACES)),
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.text("abc", max_size=6),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["move", "aim", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
)
def test_whatever_is_sent_is_an_action_or_refused(name: str, raw: Any) -> None:
    """Nothing else is raised, and nothing outside of the space gets through."""
    try:
        read = ActionForm(SPACES[name]).read(raw)
    except ActionFailed:
        return
    assert SPACES[name].contains(read)


def test_actions_with_names_are_described_and_taken_by_name() -> None:
    """However they are written; a wrong one gets the nearest."""
    form = ActionForm(SPACES["from five"], ["do nothing", "fire left", "fire right"])
    assert form.description == "a whole number: 5 do nothing; 6 fire left; 7 fire right."
    for name in ("fire left", "FIRE_LEFT", " fire-left "):
        assert form.read(name) == 6
    with pytest.raises(ActionFailed, match=r"no 'fire lef'. Did you mean 'fire left'\?"):
        form.read("fire lef")
    assert form.read_list([5, "fire right", 6.0]) == [5, 7, 6]


def test_numbers_with_names_are_named_where_they_are_wrong() -> None:
    """Beside their place."""
    form = ActionForm(UNEVEN, ["steering", "gas"])
    assert form.description == "a list of 2 numbers: steering from -1 to 1; gas from 0 to 0.7."
    with pytest.raises(ActionFailed, match=r"action\[1\] \(gas\): 2 is above its upper bound 0.7"):
        form.read([0, 2])
    assert form.read([0, 0.7]) in UNEVEN, "0.7 is what 0.7 is in 32 bits"
    assert ActionForm(SPACES["one"]).read(1.5).tolist() == [1.5]


def test_a_list_says_which_of_its_actions_is_wrong() -> None:
    """Also where there are many."""
    form = ActionForm(SPACES["discrete"])
    assert form.read_list([0, 1] * 500) == [0, 1] * 500
    for wrong, said in (
        (4, "actions\\[999\\]: 4 is above"),
        ("x", "actions\\[999\\]: there is no"),
    ):
        with pytest.raises(ActionFailed, match=said):
            form.read_list([0] * 999 + [wrong])
    with pytest.raises(ActionFailed, match="expected a list of actions, got 3"):
        form.read_list(3)


def test_a_space_that_json_cannot_write_is_refused_where_it_is_declared() -> None:
    """With what could be done."""
    graph = spaces.Graph(spaces.Discrete(2), None)
    with pytest.raises(
        InvalidEnvironment, match=r"action\.g: actions of a Graph space have no JSON form. Wrap"
    ):
        ActionForm(spaces.Dict({"g": graph}))


@each_of("env_id", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "Taxi-v4"])
def test_gymnasium_s_own_spaces_have_schemas(env_id: str) -> None:
    """With the bounds of the space."""
    env = gymnasium.make(env_id)
    assert env.action_space.contains(
        ActionForm(env.action_space).read(as_json(env.action_space.sample()))
    )
    env.close()

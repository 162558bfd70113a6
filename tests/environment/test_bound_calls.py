"""Where a task meets its environment, its calls are checked; then they set up and grade it."""

from typing import Any

import pytest
from tables import each_of

from hud_mcp import Answer, Environment, FunctionConfig, Grade, History, Task
from hud_mcp.environment.calls import measure, task_hosts
from hud_mcp.environment.function import Situation
from hud_mcp.environment.rows import read_row
from hud_mcp.errors import GradingFailed, InvalidEnvironment, InvalidTask

pytestmark = pytest.mark.anyio

env = Environment("shop")


@env.function(use="setup")
async def visit(path: str, times: int = 1) -> None:
    """Go somewhere."""


@env.function(name="till.open", use="setup")
async def open_till() -> None:
    """Open it."""


@env.function
async def look(*places: str) -> None:
    """Look at places."""


@env.function(use="evaluate")
async def bought(item: str, prices: list[float] | None = None) -> float:
    """Whether it was bought."""
    return float(item == "lamp" and prices in (None, [1.5]))


@env.function(use="evaluate")
async def said(answer: Answer[str], history: History) -> float:
    """Whether the answer is how many actions there were."""
    return float(answer.raw == str(len(history)))


@env.function(use="evaluate")
async def returned(value: Any = None) -> Any:
    """Whatever it is given."""
    return value


@env.function(use="evaluate")
async def broken() -> float:
    """Raise."""
    raise KeyError("its own bug")


def bind(*, json: bool = False, **calls: Any) -> Task:
    """A task of these calls, as its environment reads it."""
    row = {"prompt": "Buy a lamp.", "gym": "shop", **calls}
    return env.bind(read_row(row, "rows.jsonl:7") if json else Task.model_validate(row))


def shown(task: Task) -> list[str]:
    """Its setup, as Python writes it."""
    return [str(call) for call in task.setup]


@each_of(
    ("calls", "said"),
    [
        ({"setup": ("vist", "/")}, "setup: environment 'shop' has no function 'vist'. Did you "),
        ({"setup": "till.opn"}, "Did you mean 'till.open'?"),
        ({"evaluate": ("bougth", "lamp")}, "environment 'shop' has no function 'bougth'. Did"),
        ({"evaluate": ("visit", "/")}, "evaluate: 'visit' is a function for 'setup' and not"),
        ({"setup": ("bought", "lamp")}, "setup: 'bought' is a function for 'evaluate'"),
        ({"setup": "visit"}, "setup: visit(path, times=1) takes 1 to 2 arguments, got 0."),
        ({"setup": ("visit", "/", 1, 2)}, "takes 1 to 2 arguments, got 3."),
        ({"setup": ("till.open", 1)}, "setup: till.open() takes no arguments, got 1."),
        ({"setup": ("visit", 5)}, "path: expected a string such as '5', got 5."),
        ({"setup": ("visit", "/", "2")}, "times: expected a whole number such as 10"),
        ({"setup": ("visit", "/", True)}, "times: expected a whole number such as 10"),
        ({"setup": ("look", "a", 3)}, "places: expected a string such as '3', got 3."),
        ({"evaluate": ("bought", "lamp", ["x"])}, "prices[0]: expected a number such as 10"),
        (
            {"evaluate": [("bought", "lamp"), ("response_includes", {"a": 1})]},
            "evaluate: response_incl",
        ),
    ],
)  # fmt: skip
async def test_a_wrong_name_or_argument_is_told_by_field(calls: dict[str, Any], said: str) -> None:
    """With what there is and what is close; nothing was called."""
    with pytest.raises(InvalidTask) as caught:
        bind(**calls)
    assert said in str(caught.value)


async def test_calls_that_fit_are_bound_as_they_are() -> None:
    """Defaults, any number of the last, numbers for floats, and none at all."""
    task = bind(
        setup=[("visit", "/"), ("visit", "/", 3), "till.open", "look", ("look", "a", "b")],
        evaluate=[("bought", "lamp"), ("bought", "lamp", [1, 2.5])],
    )
    assert shown(task) == [
        "visit('/')", "visit('/', 3)", "till.open()", "look()", "look('a', 'b')"
    ]  # fmt: skip
    assert bind().evaluate == ()


@each_of(
    ("given", "wanted"),
    [
        (["visit", "/a"], ["visit('/a')"]),
        (["visit", "home"], ["visit('home')"]),
        (["visit", "look"], ["visit('look')"]),
        (["till.open", "look"], ["till.open()", "look()"]),
        (["till.open", "till.open"], ["till.open()", "till.open()"]),
        (["look", "a", "visit"], ["look('a', 'visit')"]),
        ([["look", "till.open"]], ["look('till.open')"]),
        ([["look"], ["till.open"]], ["look()", "till.open()"]),
    ],
)
async def test_a_flat_list_of_names_is_what_its_environment_can_make_of_it(
    given: Any, wanted: list[str]
) -> None:
    """One call, unless each is a function and the first does not take the others."""
    task = bind(json=True, setup=given)
    assert shown(task) == wanted
    assert not any(call.is_flat for call in task.setup)
    assert env.bind(task) == task


async def test_a_flat_list_that_may_be_both_is_refused_with_both_readings() -> None:
    """Nothing is guessed: the author says which."""
    with pytest.raises(InvalidTask) as caught:
        bind(json=True, setup=["look", "till.open"])
    assert str(caught.value) == (
        "setup: ['look', 'till.open'] may be one call of 'look', or 2 calls. Write "
        "[['look', 'till.open']] for one, [['look'], ['till.open']] for several."
    )


async def test_a_flat_list_keeps_both_readings_in_a_file_until_it_is_bound() -> None:
    """Writing and reading a row decides nothing; binding does."""
    task = read_row({"prompt": "p", "gym": "shop", "setup": ["till.open", "look"]}, "a:1")
    assert task.row["setup"] == ["till.open", "look"]
    assert shown(env.bind(read_row(task.row, "b:1"))) == ["till.open()", "look()"]
    assert env.bind(task).row["setup"] == [
        {"function": "till.open", "args": []}, {"function": "look", "args": []}
    ]  # fmt: skip


async def of(
    *calls: FunctionConfig | tuple[Any, ...], combine: str = "all", **situation: Any
) -> Any:
    """What calls amount to."""
    task = Task(prompt="p", gym="shop", evaluate=list(calls))  # type: ignore[arg-type]
    named = env.bind(task).evaluate
    return await measure(named, env.functions, Situation(world=None, **situation), combine=combine)


@each_of(
    ("value", "reward"),
    [
        (1, 1.0), (0.5, 0.5), (True, 1.0), (False, 0.0), ({"score": 0.25}, 0.25),
        ({"reward": 0.75}, 0.75), (None, None), ("yes", None), ([1], None), ({"a": 1}, None),
    ],
)  # fmt: skip
async def test_what_a_function_returns_is_the_measurement(value: Any, reward: Any) -> None:
    """One call's value is that; a reward is only what is a number, or holds one."""
    measured = await of(("returned", value))
    assert measured.value == value
    assert (measured.grade.reward if measured.grade else None) == reward


@pytest.mark.parametrize(("combine", "reward"), [("all", 0.0), ("any", 1.0), ("mean", 0.5)])
async def test_several_rewards_become_one_as_the_task_says(combine: str, reward: float) -> None:
    """The list is what is returned; the subscores say which was which."""
    measured = await of(("returned", 1), ("returned", 0), combine=combine)
    assert measured.value == [1, 0]
    assert measured.grade == Grade(
        reward=reward,
        subscores=measured.grade.subscores,
        info={"combine": combine},
    )
    assert [(s.name, s.value) for s in measured.grade.subscores] == [
        ("part 1", 1.0), ("part 2", 0.0)
    ]  # fmt: skip


async def test_one_call_without_a_number_leaves_the_whole_without_a_reward() -> None:
    """A missing number is no zero."""
    measured = await of(("returned", 1), ("returned", "yes"))
    assert (measured.value, measured.grade) == ([1, "yes"], None)
    assert (await of()).value == []


async def test_functions_are_given_the_answer_and_what_was_done() -> None:
    """By the annotations of their parameters; a call's arguments are the others."""
    history = History(({"type": "click"}, {"type": "wait"}))
    assert (await of(("said",), answer="2", history=history)).value == 1.0
    assert (await of(("said",), answer="3", history=history)).value == 0.0
    assert env.functions["said"].signature == "said()"


async def test_a_function_that_raises_is_named_with_its_file_and_line() -> None:
    """Grading failed; it is not a reward of 0."""
    with pytest.raises(
        GradingFailed, match=r"test_bound_calls\.py:\d+: broken: KeyError: 'its own bug'"
    ):
        await of(("returned", 1), ("broken",))


class NoJson:
    """What no argument can be."""


@each_of("function", ["sync", "by_name", "no_type", "taken", "space"])
async def test_what_cannot_be_a_function_is_refused_where_it_is_declared(function: str) -> None:
    """Its file and line are named, and nothing is registered."""
    declared = Environment("other")

    def sync() -> None:
        """Not async."""

    async def by_name(**places: str) -> None:
        """Takes names."""

    async def no_type(place: NoJson) -> None:
        """Takes what no JSON is."""

    async def plain() -> None:
        """Fine."""

    given: dict[str, tuple[Any, dict[str, Any], str]] = {
        "sync": (sync, {}, "must be an async function"),
        "by_name": (by_name, {}, "arguments have no names here"),
        "no_type": (no_type, {}, "'place'"),
        "taken": (plain, {"name": "response_includes"}, "is declared already"),
        "space": (plain, {"name": "a b"}, "this is not a name"),
    }
    made, options, said = given[function]
    with pytest.raises(InvalidEnvironment) as caught:
        declared.function(**options)(made)
    assert said in str(caught.value)
    assert "test_bound_calls.py:" in str(caught.value) or "answers.py:" in str(caught.value)
    assert set(declared.functions) == set(Environment("bare").functions)


@each_of(
    ("row", "hosts"),
    [
        ({"setup": ("goto", "https://example.com/login")}, ("example.com", "www.example.com")),
        ({"setup": ("goto", "www.example.com")}, ("www.example.com", "example.com")),
        ({"setup": ("goto", "http://127.0.0.1:8000/a")}, ("127.0.0.1:8000",)),
        ({"setup": ("goto", "http://[::1]:80/")}, ("[::1]:80",)),
        ({"setup": ("goto", "/cart")}, ()),
        ({"setup": ("goto", "http://[broken")}, ()),
        ({"setup": ("click", "example.com")}, ()),
        ({"evaluate": ("goto", "https://example.com")}, ()),
        ({"config": {"allow": ["a.example:81"]}}, ("a.example:81",)),
        ({}, ()),
    ],
)
async def test_only_setup_and_config_of_a_row_open_hosts(
    row: dict[str, Any], hosts: tuple[str, ...]
) -> None:
    """What `evaluate` names opens nothing, and neither does anything but `goto`."""
    assert task_hosts(Task.model_validate({"prompt": "p", **row})) == hosts

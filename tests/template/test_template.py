"""A template is declared, mints tasks, and has run nothing by then."""

import inspect
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from waiting import PATIENCE_S

from hud_mcp.environment import Environment
from hud_mcp.environment.prompt import Answer
from hud_mcp.environment.spec import EmptyWorld
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidEnvironment, InvalidTask, InvalidTemplate
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio

Steps = AsyncGenerator[Any, Any]
ran: list[str] = []


async def count(word: str, letter: str = "r") -> Steps:
    """Count letters.

    The second paragraph is the author's own business.
    """
    ran.append(word)
    answer = yield f"How many {letter} are in {word}?"
    yield float(answer == str(word.count(letter)))


def template(function: Any, **options: Any) -> Template:
    """Declare a template."""
    return Template(function, env="e", **options)


COUNT = template(count)


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    """Each test sees what ran in it alone."""
    ran.clear()


def test_a_template_takes_its_name_and_description_from_its_function() -> None:
    """The first line of the docstring is the description."""
    assert (COUNT.id, COUNT.env, COUNT.description) == ("count", "e", "Count letters.")
    assert COUNT.where == f"{__file__}:{count.__code__.co_firstlineno}"
    other = template(count, id="letters", description="Letters.")
    assert (other.id, other.description) == ("letters", "Letters.")


def test_calling_a_template_mints_a_task_and_runs_nothing() -> None:
    """A task is data: the arguments are checked and bound, and the generator is not begun."""
    task = COUNT("strawberry", letter="b")
    assert (task.env, task.template) == ("e", "count")
    assert task.args == {"word": "strawberry", "letter": "b"}
    assert ran == []


def test_a_task_keeps_only_the_arguments_that_were_given() -> None:
    """Defaults stay the template's, so that a row says what its author chose."""
    assert COUNT("a").args == {"word": "a"}


def test_equal_arguments_mint_equal_ids_and_others_do_not() -> None:
    """Ids are stable, whatever the order of the arguments."""
    assert COUNT(word="a", letter="b").id == COUNT(letter="b", word="a").id
    assert COUNT("a").id != COUNT("b").id
    assert COUNT("a").id.startswith("count-")


def test_a_minted_task_round_trips_through_json() -> None:
    """What a template mints can be written to a row and read back."""
    task = COUNT("a")
    assert Task.model_validate_json(task.model_dump_json()) == task
    assert Task.model_validate(task.model_dump(mode="json", exclude_defaults=True)) == task


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "template 'count': argument 'word' is required."),
        ((1,), {}, "word: expected a string such as '1', got 1"),
        (("a", "b", "c"), {}, "template 'count' takes 2 arguments, got 3."),
        (("a",), {"word": "b"}, "template 'count': argument 'word' was given twice."),
        (("a",), {"leter": "b"}, "no argument 'leter'. Did you mean 'letter'? It takes: word, le"),
    ],
)
def test_a_task_with_wrong_arguments_cannot_be_minted(
    args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> None:
    """The error says which argument, what came and what the template takes."""
    with pytest.raises(InvalidTask) as caught:
        COUNT(*args, **kwargs)
    assert said in str(caught.value)
    assert ran == []


async def test_a_run_begins_at_the_first_send() -> None:
    """Creating the generator runs nothing; the session resumes it in a task of its own."""
    generator = COUNT.run({"word": "bob", "letter": "b"}, None)
    assert ran == []
    with anyio.fail_after(PATIENCE_S):
        assert await anext(generator) == "How many b are in bob?"
        assert await generator.asend("2") == 1.0
        assert await anext(generator, "over") == "over"
    assert ran == ["bob"]


async def test_the_world_reaches_the_parameter_that_asks_for_it() -> None:
    """It is handed over by annotation, whatever the parameter is called."""

    async def look(place: EmptyWorld, word: str) -> Steps:
        yield (place, word)
        yield 1

    world = EmptyWorld()
    generator = template(look).run({"word": "w"}, world)
    assert await anext(generator) == (world, "w")
    await generator.aclose()


# Everything that an author can write wrong.


def not_async(word: str) -> Any:
    """Yields, and is not async."""
    yield word
    yield 1


async def a_coroutine(word: str) -> Any:
    """Is async, and does not yield."""
    return word


async def only_a_prompt(word: str) -> Steps:
    """It never grades."""
    yield word


async def one_yield_and_a_nested_one(word: str) -> Steps:
    """The yield of an inner function is not the template's."""

    def inner() -> Any:
        yield 1

    inner()
    yield word


async def variadic(*words: str) -> Steps:
    """Takes what has no name."""
    yield words
    yield 1


async def no_schema(thing: EmptyWorld | None) -> Steps:
    """Takes what is not JSON."""
    yield thing
    yield 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (not_async, "is not an async generator. Write `async def`, yield the prompt,"),
        (a_coroutine, "is not an async generator"),
        (only_a_prompt, "yields once. Yield twice: first the prompt"),
        (one_yield_and_a_nested_one, "yields once"),
        (variadic, "takes *words: str (variadic positional)"),
        (no_schema, "an argument's type has no JSON schema"),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_its_line(function: Any, said: str) -> None:
    """The mistake is found where it is declared, before anything runs."""
    with pytest.raises(InvalidTemplate) as caught:
        template(function)
    where = f"{__file__}:{inspect.unwrap(function).__code__.co_firstlineno}"
    assert str(caught.value).startswith(f"{where}: template {function.__name__!r}")
    assert said in str(caught.value)


async def yields_in_a_loop(word: str) -> Steps:
    """Yields twice by one yield."""
    for value in (word, 1):
        yield value


async def yields_in_branches(word: str) -> Steps:
    """Yields twice by three."""
    if word:
        yield "a"
    else:
        yield "b"
    yield 1


@pytest.mark.parametrize("function", [yields_in_a_loop, yields_in_branches])
def test_a_template_that_may_yield_twice_is_taken(function: Any) -> None:
    """Only what certainly cannot grade is refused."""
    assert template(function).id == function.__name__


@pytest.mark.parametrize("option", ["input", "returns"])
def test_a_type_without_a_schema_is_refused(option: str) -> None:
    """`input` and `returns` are shown to agents as schemas."""
    with pytest.raises(InvalidTemplate, match="has no JSON schema") as caught:
        template(count, **{option: EmptyWorld})
    assert str(caught.value).startswith(f"{COUNT.where}: template 'count'")


def test_a_function_that_is_no_function_is_an_error_of_the_declaration() -> None:
    """Even a built-in gets a sentence, not an attribute error."""
    with pytest.raises(InvalidEnvironment, match="is not an async generator"):
        template(print)


# Oracles.


async def solve(agent: Any, word: str) -> str:
    """Solve it."""
    return f"{agent}{word}"


def test_an_oracle_belongs_to_its_template() -> None:
    """It is registered and returned as it is, and may take fewer arguments."""
    made = template(count)
    assert made.oracle(solve) is solve
    assert made.oracle_function is solve


async def asks_for_more(_agent: Any, _word: str, _colour: str) -> None:
    """Asks for arguments that there are not."""


def not_a_coroutine(_agent: Any) -> None:
    """Cannot be awaited."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (asks_for_more, "the oracle of template 'count' asks for '_word'; the template takes: wo"),
        (not_a_coroutine, "the oracle of template 'count' must be an async function."),
    ],
)
def test_an_oracle_that_does_not_fit_is_refused_with_its_line(function: Any, said: str) -> None:
    """The line is the oracle's own."""
    made = template(count)
    with pytest.raises(InvalidTemplate) as caught:
        made.oracle(function)
    assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno}: ")
    assert said in str(caught.value)
    assert made.oracle_function is None


def test_a_second_oracle_is_refused() -> None:
    """One solution is checked; two would leave one unchecked."""
    made = template(count)
    made.oracle(solve)
    with pytest.raises(InvalidTemplate, match="has an oracle already"):
        made.oracle(solve)


# Typed answers.


class Total(BaseModel):
    """A typed answer."""

    amount: float
    currency: str = "EUR"


@pytest.mark.parametrize(
    ("returns", "raw", "content"),
    [
        (int, "5", 5),
        (int, " 5 ", 5),
        (int, "five", "five"),
        (float, "2", 2.0),
        (str, "plain text", "plain text"),
        (str, '"quoted"', "quoted"),
        (bool, "true", True),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "[1, 2", "[1, 2"),
        (Total, '{"amount": 3}', Total(amount=3)),
        (Total, "three", "three"),
        (Total, "", ""),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
)
def test_an_answer_is_read_as_the_declared_type_or_kept_as_text(
    returns: Any, raw: str, content: Any
) -> None:
    """Reading never fails: what does not fit reaches the template as it came."""
    answer = template(count, returns=returns).read_answer(raw)
    assert answer == Answer(content=content, raw=raw)
    assert type(answer.content) is type(content)


@pytest.mark.parametrize(
    ("returns", "raw", "said"),
    [
        (float, "2.5", None),
        (float, "abc", "The answer should be a number such as 10 (JSON), got 'abc'."),
        (bool, "perhaps", "The answer should be true or false (JSON), got 'perhaps'."),
        (Total, '{"amount": "x"}', "In it, amount: expected a number such as 10, got 'x'."),
        (list[int], '[1, "x"]', "In it, [1]: expected a whole number such as 10, got 'x'."),
        (float, "x" * 999, "x" * 80 + "…'."),
        (None, "abc", None),
    ],
)
def test_an_answer_of_another_type_is_told_what_was_expected(
    returns: Any, raw: str, said: str | None
) -> None:
    """The sentence is for the agent, and `is_valid` tells the template the same."""
    made = template(count, returns=returns)
    problem = made.answer_problem(raw)
    assert (problem is None) if said is None else said in (problem or "")
    if returns is not None:
        assert made.read_answer(raw).is_valid is (said is None)


def test_an_answer_without_a_declared_type_is_the_string() -> None:
    """The template receives exactly what was submitted."""
    assert COUNT.read_answer(' "5"\n') == ' "5"\n'


def test_the_schemas_of_input_and_answer_are_published() -> None:
    """They are JSON schemas, and absent where nothing was declared."""
    made = template(count, input=list[str], returns=Total)
    assert made.input_schema == {"items": {"type": "string"}, "type": "array"}
    assert made.returns_schema is not None
    assert made.returns_schema["properties"]["amount"]["type"] == "number"
    assert COUNT.input_schema is None
    assert COUNT.returns_schema is None


def test_a_template_of_an_environment_is_named_by_it() -> None:
    """The decorator returns the template, which mints tasks of that environment."""
    env = Environment("shop")
    made = env.template(id="letters")(count)
    assert isinstance(made, Template)
    assert made("a").env == "shop"


def test_what_is_asked_without_awaiting_anything_is_known_beforehand() -> None:
    """Only where it is certain: no await, in whatever form, and no branch before the prompt."""
    env = Environment("e")

    async def ready() -> None: ...

    async def words() -> AsyncGenerator[str]:
        yield "a"

    @env.template()
    async def plain(n: int = 1) -> AsyncGenerator[Any, Any]:
        total = sum(range(n))
        answer = yield f"Say {total}."
        await ready()
        yield float(answer == str(total))

    @env.template()
    async def awaits() -> AsyncGenerator[Any, Any]:
        await ready()
        yield "Go."
        yield 1.0

    @env.template()
    async def comprehends() -> AsyncGenerator[Any, Any]:
        found = [word async for word in words()]
        yield found[0]
        yield 1.0

    @env.template()
    async def branches(n: int = 1) -> AsyncGenerator[Any, Any]:
        if n:
            yield "Go."
        yield 1.0

    @env.template()
    async def inside() -> AsyncGenerator[Any, Any]:
        async with AsyncExitStack():
            yield "Go."
            yield 1.0

    found = {name: t.prompts_at_once for name, t in env.templates.items()}
    assert found == {
        "plain": True, "awaits": False, "comprehends": False, "branches": False, "inside": False,
    }  # fmt: skip

"""A call is read from every form that people write, and held in one."""

import copy
import gc
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tables import each_of

from hud_mcp import FunctionConfig
from hud_mcp.values.call import HudStyleConfig, read_calls, read_json_calls

GOTO = {"function": "goto", "args": ["/"]}
CLICK = {"function": "click", "args": ["#next"]}
MAXIMIZE = {"function": "browser.maximize", "args": []}

names = st.from_regex(r"[a-z_]\w{0,5}(\.[a-z_]\w{0,5}){0,2}", fullmatch=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)
calls = st.builds(FunctionConfig, function=names, args=st.lists(values, max_size=3).map(tuple))


def rows(read: tuple[FunctionConfig, ...]) -> list[dict[str, Any]]:
    """The form that files and the record hold."""
    return [call.model_dump(mode="json") for call in read]


@each_of(
    ("given", "wanted"),
    [
        (None, []),
        ((), []),
        ([], []),
        ({}, []),
        ([(), None, {}, []], []),
        ("browser.maximize", [MAXIMIZE]),
        (["browser.maximize"], [MAXIMIZE]),
        (("goto", "/"), [GOTO]),
        ({"function": "goto", "args": ["/"]}, [GOTO]),
        ({"function": "goto", "args": ("/",)}, [GOTO]),
        ({"function": "goto", "args": "/"}, [GOTO]),
        ({"function": "browser.maximize"}, [MAXIMIZE]),
        ({"function": "browser.maximize", "args": None}, [MAXIMIZE]),
        (FunctionConfig(function="goto", args=("/",)), [GOTO]),
        ([("goto", "/"), ("click", "#next")], [GOTO, CLICK]),
        ([("goto", "/"), GOTO, "browser.maximize", FunctionConfig.model_validate(CLICK)],
         [GOTO, GOTO, MAXIMIZE, CLICK]),
        (["browser.maximize", "browser.maximize"], [MAXIMIZE, MAXIMIZE]),
        ([["goto", "/"], ["click", "#next"]], [GOTO, CLICK]),
        ([("goto", "/"), None], [GOTO]),
        (("wait", 5, 1.5, True, None, {"a": (1,)}),
         [{"function": "wait", "args": [5, 1.5, True, None, {"a": [1]}]}]),
    ],
)  # fmt: skip
def test_python_writes_calls_in_any_form_and_mix(given: Any, wanted: list[Any]) -> None:
    """A tuple is one call, a list a sequence of calls, and what is empty none."""
    assert rows(read_calls(given)) == wanted


@each_of(
    ("given", "wanted"),
    [
        (None, []),
        ([], []),
        ({}, []),
        ("browser.maximize", [MAXIMIZE]),
        ({"function": "goto", "args": "/"}, [GOTO]),
        ([["goto", "/"], ["click", "#next"]], [GOTO, CLICK]),
        ([GOTO, ["click", "#next"], "browser.maximize"], [GOTO, CLICK, MAXIMIZE]),
        (["browser.maximize", ["goto", "/"]], [MAXIMIZE, GOTO]),
        (["goto", "/"], [GOTO]),
        (["wait", 5], [{"function": "wait", "args": [5]}]),
        (["page_contains", "Example"], [{"function": "page_contains", "args": ["Example"]}]),
        (["cookie_match", "a", "1", "b", "2"],
         [{"function": "cookie_match", "args": ["a", "1", "b", "2"]}]),
    ],
)  # fmt: skip
def test_json_writes_them_too_where_a_flat_list_is_one_call(given: Any, wanted: list[Any]) -> None:
    """JSON has no tuples: HUD's lists of lists are calls, and a flat list is one."""
    assert rows(read_json_calls(given)) == wanted


@given(st.lists(calls, max_size=4))
def test_the_one_form_reads_back_as_itself(given: list[FunctionConfig]) -> None:
    """In Python and from JSON alike, so a record and a file mean the same."""
    written = rows(tuple(given))
    assert read_calls(written) == read_json_calls(written) == tuple(given)


async def coroutine() -> None:
    """Never run."""


@each_of(
    ("given", "said"),
    [
        (5, "5 is not a call; write a name, a tuple"),
        ([5], "5 is not a call"),
        ((5,), "a call begins with its function's name, not with 5"),
        ((("goto", "/"), ("click", "x")), "write several calls in a list"),
        ("page contains", "'page contains' cannot name a function"),
        ("", "'' cannot name a function"),
        ("os.system('x')", "cannot name a function"),
        ({"fn": "goto"}, "a call has no 'fn'"),
        ({"function": "goto", "arg": "/"}, "a call has no 'arg'. Did you mean 'args'?"),
        ({"function": None}, "a call's 'function' is its name, not None"),
        (coroutine, "a function is called by its name; write 'coroutine' and register it"),
        (["goto", "https://example.com"], "a list is a sequence of calls"),
        (["goto", "https://example.com"], "write [['goto', 'https://example.com']] for one call"),
        (("goto", float("nan")), "an argument must have finite numbers"),
        (("goto", {"a": [float("inf")]}), "an argument must have finite numbers"),
        (("goto", object()), "an argument is a JSON value"),
        (b"goto", "b'goto' is not a call"),
    ],
)
def test_what_is_no_call_says_what_one_is(given: Any, said: str) -> None:
    """What was given, and what to write instead."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # its text is what is tested
        read_calls(given)
    assert said in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda c: c, lambda c: [c], lambda c: ("goto", c)])
def test_a_coroutine_is_refused_and_leaves_no_warning(wrap: Any) -> None:
    """`evaluate=page_contains("x")` forgets that tasks name functions and do not call them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="a coroutine was given; name the function"):
            read_calls(wrap(coroutine()))
        gc.collect()


def test_length_and_items_are_those_of_the_arguments() -> None:
    """As HUD's FunctionConfig has them."""
    call = FunctionConfig(function="goto", args=("a", "b"))
    assert (len(call), call[1], list(call)) == (2, "b", ["a", "b"])
    assert str(call) == "goto('a', 'b')"
    assert HudStyleConfig is FunctionConfig


def test_a_call_keeps_hud_s_id_and_metadata_and_cannot_be_changed() -> None:
    """Both are written only where they are set."""
    call = FunctionConfig(function="f", id="one", metadata={"k": 1})
    assert call.model_dump() == {"function": "f", "args": [], "id": "one", "metadata": {"k": 1}}
    with pytest.raises(ValidationError):
        call.function = "g"  # type: ignore[misc]


def test_arguments_are_the_call_s_own() -> None:
    """What the author changes in a list later is not what is called."""
    given = ["a"]
    call = FunctionConfig(function="f", args=(given,))
    given.append("b")
    assert call.args == (["a"],)
    assert copy.deepcopy(call) == call

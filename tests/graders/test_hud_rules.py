"""HUD's own graders beside ours: the same by `compat="hud"`, and stricter without."""

import asyncio
import inspect
import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from tables import each_of

from hud_mcp import graders
from hud_mcp.graders.combination import EvaluationResult, SubScore

RULES = Path(__file__).resolve().parent / "hud_rules.py"

CASES: list[tuple[str, list[Any], dict[str, Any], Any, Any]] = [
    # A name, its arguments, its keywords, what HUD gives, what we give.
    ("exact_match", ["Paris", "paris"], {}, 1, 1),
    ("exact_match", ["  PARIS. ", "Paris"], {}, 1, 1),
    ("exact_match", ["New  York", "new york"], {}, 1, 1),
    ("exact_match", ["-5", "5"], {}, 1, 0),
    ("exact_match", ["3.5", "3 5"], {}, 1, 0),
    ("exact_match", ["", "the"], {}, 1, 0),
    ("exact_match", ["50%", "50"], {}, 1, 0),
    ("exact_match", ["C", "C++"], {}, 1, 0),
    ("exact_match", ["Hague", "The Hague"], {}, 1, 0),
    ("exact_match", ["!?", ""], {}, 1, 0),
    ("exact_match", ["Stra\u00dfe", "STRASSE"], {}, 0, 1),
    ("exact_match", ["Paris.", "Paris"], {"normalize_text": False}, 0, 0),
    ("exact_match", [" PARIS ", "paris"], {"normalize_text": False}, 1, 1),
    ("exact_match", [42, "42"], {}, 1, 1),
    ("contains", ["The capital is Paris.", "paris"], {}, 1, 1),
    ("contains", ["Parisian", "Paris"], {}, 1, 0),
    ("contains", ["15 apples", "5"], {}, 1, 0),
    ("contains", ["anything", ""], {}, 1, "ValueError"),
    ("contains", ["in paris", "Paris"], {"case_sensitive": True}, 0, 0),
    ("contains", ["in Paris", "Paris"], {"case_sensitive": True}, 1, 1),
    ("contains_any", ["a red hat", ["red", "blue"]], {}, 1, 1),
    ("contains_any", ["a reddish hat", ["red", "blue"]], {}, 1, 0),
    ("contains_any", ["a hat", []], {}, 0, "ValueError"),
    ("contains_any", ["a hat", ["", "blue"]], {}, 1, "ValueError"),
    ("contains_any", ["RED", ["red"]], {"case_sensitive": True}, 0, 0),
    ("contains_all", ["red and blue", ["red", "blue"]], {}, 1, 1),
    ("contains_all", ["red", ["red", "blue"]], {}, 0, 0),
    ("contains_all", ["infrared and bluebird", ["red", "blue"]], {}, 1, 0),
    ("contains_all", ["a hat", []], {}, 1, "ValueError"),
    ("numeric_match", ["42", 42], {}, 1, 1),
    ("numeric_match", ["Step 1: add. The result is 42.", 42], {}, 0, 1),
    ("numeric_match", ["Step 1: add. The result is 42.", 1], {}, 1, 0),
    ("numeric_match", ["1,234", 1234], {}, 0, 1),
    ("numeric_match", ["1,234", 1], {}, 1, 0),
    ("numeric_match", ["\u22125", -5], {}, 0, 1),
    ("numeric_match", ["\u22125", 5], {}, 1, 0),
    ("numeric_match", ["-$5", 5], {}, 1, 0),
    ("numeric_match", ["1/2", 0.5], {}, 0, 1),
    ("numeric_match", ["1/2", 1], {}, 1, 0),
    ("numeric_match", ["2\u00bd", 2.5], {}, 0, 1),
    ("numeric_match", ["1\u00a0234", 1234], {}, 0, 1),
    ("numeric_match", ["H2O", 2], {}, 1, 0),
    ("numeric_match", ["10^6", 10], {}, 1, 0),
    ("numeric_match", ["0,5", 0.5], {}, 0, 1),
    ("numeric_match", ["2024-05-12", 2024], {}, 1, 0),
    ("exact_match", ["O\u2019Brien", "O'Brien"], {}, 1, 1),
    ("numeric_match", ["50 %", 50], {}, 1, 1),
    ("numeric_match", ["0.30000000000000004", 0.3], {}, 0, 1),
    ("numeric_match", ["3.2", 3], {"tolerance": 0.25}, 1, 1),
    ("numeric_match", ["none", 0], {}, 0, 0),
    ("f1_score", ["The capital is Paris, France", "Paris"], {}, 0.4, 0.4),
    ("f1_score", ["Paris", "Paris"], {}, 1, 1),
    ("f1_score", ["-5", "5"], {}, 1, 0),
    ("f1_score", ["3.5", "5.3"], {}, 1, 0),
    ("f1_score", ["C#", "C"], {}, 1, 0),
    ("f1_score", ["", "Paris"], {}, 0, 0),
    ("f1_score", ["the", "the"], {}, 0, 1),
    ("normalize", ["  The Answer is: 42! "], {}, "answer is 42", "answer is 42"),
    ("normalize", ["-3.5"], {}, "3 5", "-3.5"),
    ("normalize", ["well-known"], {}, "well known", "well known"),
    ("normalize", ["the"], {}, "", "the"),
]

PART = {"name": "a", "value": 1.0}
COMBINED: list[tuple[str, list[Any], dict[str, Any], bool]] = [
    # A name, its arguments, its keywords, whether ours is the same without compat.
    ("combine", [[{**PART, "weight": 0.5}, {"name": "b", "value": 0.5, "weight": 0.5}]], {}, True),
    ("combine", [[{**PART, "weight": 3}, {"name": "b", "value": 0, "weight": 1}]], {}, True),
    ("combine", [[PART, PART, {"name": "a-1", "value": 0}]], {}, True),
    ("combine", [[PART, {"name": "p", "value": 1.0, "weight": -0.25}]], {}, True),
    ("combine", [[PART, {"name": "p", "value": 1.0, "weight": -2.0}]], {}, False),
    ("combine", [[{**PART, "weight": 0}, {"name": "b", "value": 0.2}]], {}, True),
    ("combine", [[{**PART, "weight": -1}]], {}, True),
    ("combine", [[{**PART, "weight": 0}]], {}, True),
    ("combine", [[]], {}, True),
    ("combine_any", [[PART, {"name": "b", "value": 0.5}]], {"weight": 0.3}, True),
    ("combine_all", [[PART, {"name": "b", "value": 0.5}]], {"weight": 0.3}, True),
    ("combine_all", [[PART, PART]], {"weight": 1, "name": "both"}, True),
    ("combine_all", [[]], {"weight": 1}, True),
]


@pytest.fixture(scope="module")
def hud_gives(hud_python: Path) -> list[Any]:
    """What HUD's own functions give for every case, in one process of its own."""
    cases = [case[:3] for case in (*CASES, *COMBINED)]
    done = subprocess.run(
        [str(hud_python), str(RULES)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
        env={"HUD_TELEMETRY_ENABLED": "false", "HOME": "/nonexistent"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def give(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What ours gives, or the name of what it raises."""
    try:
        given = getattr(graders, name)(*args, **kwargs)
        if inspect.iscoroutine(given):
            given = asyncio.run(given)
    except (ValueError, TypeError) as exc:
        return type(exc).__name__
    return plain(given) if isinstance(given, EvaluationResult | SubScore) else given


def plain(given: EvaluationResult | SubScore) -> dict[str, Any]:
    """A result as HUD's JSON has it: nothing is None there."""
    return with_none(json.loads(given.model_dump_json()))


def with_none(given: dict[str, Any]) -> dict[str, Any]:
    """The same, with None where we have nothing."""
    for name in ("children", "subscores"):
        if name in given:
            given[name] = [with_none(each) for each in given[name]] or None
    if "value" in given:
        given["info"] = given["info"] or None
    return given


def combined(name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What ours gives for parts that are written as JSON."""
    parts = [SubScore.model_validate(each) for each in args[0]]
    rest = dict(kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if name == "combine":
            return give(name, parts, rest)
        return give(name, [rest.pop("weight"), parts], rest)


def test_each_function_gives_what_hud_s_gives_where_that_is_asked_for(
    hud_gives: list[Any],
) -> None:
    """Every case of the table, on HUD's real functions and on ours with compat='hud'."""
    for (name, args, kwargs, by_hud, _), real in zip(CASES, hud_gives, strict=False):
        assert real == pytest.approx(by_hud), (name, args, "the table is wrong about HUD")
        ours = give(name, args, {**kwargs, "compat": "hud"})
        assert ours == pytest.approx(by_hud), (name, args)


@each_of(("name", "args", "kwargs", "by_hud", "strict"), CASES)
def test_each_function_is_strict_where_nothing_is_asked_for(
    name: str, args: list[Any], kwargs: dict[str, Any], by_hud: Any, strict: Any
) -> None:
    """No wrong answer of the table has full marks."""
    assert give(name, args, kwargs) == pytest.approx(strict)


def test_combinations_are_hud_s_with_names_weights_and_children(hud_gives: list[Any]) -> None:
    """The whole result, field by field; only a reward below 0 asks for compat."""
    for (name, args, kwargs, same), real in zip(COMBINED, hud_gives[len(CASES) :], strict=True):
        compat = {"compat": "hud"} if name == "combine" else {}
        assert rounded(combined(name, args, {**kwargs, **compat})) == rounded(real), (name, args)
        assert (rounded(combined(name, args, kwargs)) == rounded(real)) is same, (name, args)


def rounded(given: Any) -> Any:
    """The same with numbers that binary fractions do not tell apart."""
    if isinstance(given, float):
        return round(given, 12)
    if isinstance(given, list):
        return [rounded(each) for each in given]
    return {k: rounded(v) for k, v in given.items()} if isinstance(given, dict) else given


def test_penalties_take_a_reward_to_nothing_and_say_what_it_would_have_been() -> None:
    """A reward below 0 is had by HUD's rule alone; ours keeps the number in its info."""
    parts = [SubScore(name="a", value=0.5), SubScore(name="rude", value=1, weight=-0.75)]
    ours = asyncio.run(graders.combine(*parts))
    assert (ours.reward, ours.info) == (0.0, {"reward_before_floor": -0.25})
    theirs = asyncio.run(graders.combine(*parts, compat="hud"))
    assert (theirs.reward, theirs.info) == (-0.25, {})


def test_every_name_of_hud_s_list_is_here_with_hud_s_keywords(hud_python: Path) -> None:
    """Each public function and class of HUD's graders exists, and takes its parameters."""
    program = (
        "import inspect, json; from hud import graders as g\n"
        "said = {n: list(inspect.signature(getattr(g, n)).parameters) for n in g.__all__\n"
        "        if inspect.isroutine(getattr(g, n)) and not n.startswith('_')}\n"
        "said |= {n + '.compute_score': list(inspect.signature(getattr(g, n).compute_score)"
        ".parameters) for n in ('BashGrader', 'LLMJudgeGrader')}\n"
        "fields = {n: list(getattr(g, n).model_fields) for n in ('EvaluationResult', 'SubScore')}\n"
        "print(json.dumps([g.__all__, said, fields]))"
    )
    done = subprocess.run(
        [str(hud_python), "-c", program], capture_output=True, text=True, timeout=240, check=True
    )
    names, parameters, fields = json.loads(done.stdout.splitlines()[-1])
    assert {n for n in names if not n.startswith("_")} <= set(graders.__all__)
    for name, wanted in parameters.items():
        target: Any = graders
        for part in name.split("."):
            target = getattr(target, part)
        assert set(wanted) - {"kwargs"} <= set(inspect.signature(target).parameters), name
    for name, wanted in fields.items():
        assert set(wanted) <= set(getattr(graders, name).model_fields), name

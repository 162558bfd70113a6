"""Asks other people's graders, and prints what they give as JSON. For the interpreter of peers.

Inspect's are called as they are. Of the others, whose packages load a desktop or a browser, the
functions are taken out of the installed source, unchanged, and run without the rest of it.
"""

import ast
import asyncio
import importlib.util
import json
import re
import string
import sys
import tempfile
import urllib.parse
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from difflib import SequenceMatcher
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Pattern, Protocol, Union  # noqa: UP035  # the names in their sources

from inspect_ai.model import ModelName, ModelOutput  # pyright: ignore[reportMissingImports]
from inspect_ai.scorer import (  # pyright: ignore[reportMissingImports]
    Target,
    choice,
    includes,
    match,
)
from inspect_ai.solver import TaskState  # pyright: ignore[reportMissingImports]
from inspect_ai.solver._multiple_choice import (  # pyright: ignore[reportMissingImports]
    parse_answers,
    set_choices_based_on_generated_response,
)
from nltk.tokenize import word_tokenize  # pyright: ignore[reportMissingImports]
from textdistance import levenshtein  # pyright: ignore[reportMissingImports]

SILENT = SimpleNamespace(info=print, warning=print, error=print)
SHARED = {
    "re": re, "json": json, "string": string, "urllib": urllib, "logger": SILENT, "Any": Any,
    "Dict": dict, "List": list, "Pattern": Pattern, "Union": Union, "Path": Path,
    "collections": SimpleNamespace(defaultdict=defaultdict), "beartype": lambda given: given,
    "SequenceMatcher": SequenceMatcher, "EvaluationResult": SimpleNamespace, "Protocol": Protocol,
}  # fmt: skip
"""What their functions use beside each other."""


def taken(package: str, file: str, **given: Any) -> SimpleNamespace:
    """The functions and classes of a file of an installed package, without what it imports."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0]) / file
    parsed = ast.parse(path.read_text())
    kept = [n for n in parsed.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    kept = [n for n in kept if not any("scorer" in ast.unparse(d) for d in n.decorator_list)]
    future = ast.parse("from __future__ import annotations").body
    names = {**SHARED, **given}
    module = ast.Module(body=[*future, *kept], type_ignores=[])
    exec(compile(module, str(path), "exec"), names)  # a peer's own functions
    return SimpleNamespace(**names)


def with_files(function: Callable[..., Any], *places: int) -> Callable[..., Any]:
    """A function of files as one of their texts."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            given = list(args)
            for place in places:
                path = Path(folder, str(place))
                path.write_text(given[place], encoding="utf-8", newline="")
                given[place] = str(path)
            return function(*given, **kwargs)

    return call


def inspect_rules() -> dict[str, Callable[..., Any]]:
    """Inspect's three scorers, over a text, its targets and what each takes besides."""

    def state(text: str, choices: list[str] | None = None) -> Any:
        output = ModelOutput.from_content("mockllm/m", text)
        return TaskState(
            model=ModelName("mockllm/m"), sample_id=1, epoch=1, input="q", messages=[],
            output=output, choices=choices, target=Target("B"),
        )  # fmt: skip

    def scored(scorer: Any, given: Any, targets: list[str]) -> float:
        return float(asyncio.run(scorer(given, Target(targets))).value == "C")

    def chosen(text: str, target: str, count: int, several: bool) -> float:  # noqa: FBT001
        given = state(text, [str(number) for number in range(count)])
        answers = parse_answers(given, several)
        if answers:
            set_choices_based_on_generated_response(given, answers)
        return scored(choice(), given, [target])

    return {
        "inspect_match": lambda text, targets, location, numeric: scored(
            match(location=location, numeric=numeric), state(text), targets
        ),
        "inspect_includes": lambda text, targets: scored(includes(), state(text), targets),
        "inspect_choice": chosen,
    }


def webarena_rules() -> dict[str, Callable[..., Any]]:
    """WebArena's comparisons of an answer and of an address."""

    def words(text: str) -> list[str]:
        return word_tokenize(text, preserve_line=True)  # what parts sentences is a download

    names = dict.fromkeys(("Action", "StateInfo", "PseudoPage", "Page", "CDPSession"))
    file = "evaluation_harness/evaluators.py"
    theirs = taken("webarena", file, word_tokenize=words, **names)

    def address_fits(address: str, references: list[str]) -> Any:
        row = json.dumps({"eval": {"reference_url": " |OR| ".join(references)}})
        page = SimpleNamespace(url=address)
        asked = with_files(lambda config: theirs.URLEvaluator()([], config, page), 0)
        return asked(row)

    return {
        "webarena_exact": theirs.StringEvaluator.exact_match,
        "webarena_include": lambda wanted, text, alone: theirs.StringEvaluator.must_include(
            wanted, text, tokenize=alone
        ),
        "webarena_address": address_fits,
    }


def osworld_rules() -> dict[str, Callable[..., Any]]:
    """OSWorld's comparisons of texts, lists and JSON."""
    general = taken("desktop_env", "evaluators/metrics/general.py", _Element=Any, Number=Any)
    system = taken("desktop_env", "evaluators/metrics/basic_os.py")
    editor = taken("desktop_env", "evaluators/metrics/vscode.py")
    plain = ("exact_match", "literal_match", "is_in_list", "check_include_exclude",
             "check_direct_json_object")  # fmt: skip
    return {
        **{f"osworld_{name}": getattr(general, name) for name in plain},
        "osworld_check_list": with_files(general.check_list, 0),
        "osworld_check_json_settings": with_files(editor.check_json_settings, 0),
        "osworld_compare_text_file": with_files(editor.compare_text_file, 0, 1),
        "osworld_is_utc_0": system.is_utc_0,
        "osworld_check_text_enlarged": system.check_text_enlarged,
        "osworld_check_gnome_favorite_apps": system.check_gnome_favorite_apps,
    }


def hud_rules() -> dict[str, Callable[..., Any]]:
    """The comparisons of HUD 0.2."""
    theirs = taken("hud", "evaluators/match.py", levenshtein=levenshtein)
    names = ("match_single", "match_all", "match_fuzzy", "match_regex", "match_diff")

    def score(name: str) -> Callable[..., float]:
        return lambda *args: getattr(theirs, name)(*args).score

    return {name: score(name) for name in names}


def gaia_match(answer: str, truth: str) -> float:
    """The scorer of GAIA, as it stands in Inspect's collection."""
    scorer = taken("inspect_evals", "gaia/scorer.py")
    return float(scorer.question_scorer(answer, truth)[0])


def give(rule: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What a rule gave, or the name of what it raised."""
    try:
        return float(rule(*args, **kwargs))
    except Exception as exc:  # noqa: BLE001  # whatever a peer raises is a fact about it
        return type(exc).__name__


with redirect_stdout(sys.stderr):
    rules = {
        "gaia_match": gaia_match, **inspect_rules(), **webarena_rules(), **osworld_rules(),
        **hud_rules(),
    }  # fmt: skip
    given = [give(rules[name], args, kwargs) for name, args, kwargs in json.load(sys.stdin)]
print(json.dumps(given))

"""Rules that are copied from peers, held against the peers' own newest functions.

Inspect's scorers, GAIA's, WebArena's and OSWorld's comparisons, and those of HUD 0.2, of which no
newer version has them. `test_hud_rules` asks HUD's newest.
"""

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from other_python import ROOT, OtherPython

from hud_mcp.graders import (
    gaia_match,
    match_all,
    match_diff,
    match_fuzzy,
    match_regex,
    match_single,
)
from hud_mcp.graders.inspect_scorers import choice, includes, match

NEWEST = ("inspect-ai", "nltk", "textdistance")
ALONE = ("inspect-evals", "desktop-env", "libwebarena")
PEERS = OtherPython(
    name=".venv-graders",
    requirements=NEWEST,
    check="import inspect_ai, nltk, textdistance; print(inspect_ai.__version__)",
    version="",
    what="other people's graders",
    install_s=600,
    alone=(*ALONE, "hud-python==0.2.10"),
)
RULES = Path(__file__).resolve().parent / "peer_rules.py"

NUMBERS = [
    # An answer, and the number that is the target.
    ("The answer is 42!", "42"), ("The answer is (42).", "42"), ("The answer is [42]", "42"),
    ("42:", "42"), ("42?", "42"), ("`42`", "42"), ("'42'", "42"), ('"42"', "42"), ("{42}", "42"),
    ("42; done", "42"), ("**42**", "42"), ("_42_", "42"), ("~42", "42"), (">=42", "42"),
    ("<42>", "42"), ("20%", "20"), ("20% of 100", "20"), ("\\$460", "460"), ("$9{,}500", "9500"),
    ("$1,250.00.", "1250"), ("9'500", "9500"), ("9.500,25", "9500.25"), ("0,5", "0.5"),
    ("0,5", "5"), ("1 234", "1234"), ("1 234", "234"), ("2\u00bd", "2.5"), ("\u22123", "-3"),
    ("--3", "3"), ("5\u00b2", "25"), ("\u00b2", "2"), ("1.5\u207b\u00b2", "0.4444"),
    ("-2\u00b2", "4"), ("10^6", "6"), ("10^6", "1000000"), ("1e3", "1000"), ("1.2.3", "1.2"),
    ("\u5341\u4e8c", "12"), ("\u4e00\u4e07\u4e8c\u5343", "12000"), ("\u8d1f\u4e94", "-5"),
    ("\u4e8c\u3007\u4e8c\u4e94", "2025"), ("\u4e09\u70b9\u4e94", "3.5"),
    ("\u5341\u4e8c\u2153", "12.333"),
    ("3\u4e07", "30000"), ("\u0663\u0664", "34"), ("\uff14\uff12", "42"), ("\u216b", "12"),
    ("\u00bd\u00b2", "0.25"), ("nan", "nan"), ("inf", "inf"), ("123456", "123457"),
    ("first 3 then 4", "3"), ("first 3 then 4", "4"), ("forty two", "42"), ("", "42"),
    ("5 some text", "5"), ("\u00bd\u00bd", "1"), ("1\u066b5", "1.5"), ("1\u066c000", "1000"),
    ("1_000", "1000"), ("0x1F", "31"), ("\u5eff", "20"), ("1e400", "42"), ("42", "(42)"),
    ("5e", "5"), ("e5", "5"), ("1,5e3", "1500"), ("\uff0b5", "5"), ("2\u00bd,", "2.5"),
]  # fmt: skip
TEXTS = [
    ("It is Bern.", "bern"), ("Bern it is", "bern"), ("'Bern'.", "bern"), ("It is 25", "5"),
    ("\u201cBern\u201d", "Bern"), ("It is Bern\u3002", "Bern"), ("(Bern)", "bern"), ("", "x"),
    ("Stra\u00dfe", "STRASSE"), ("60%", "60%"), ("C++", "C"), ("", "."),
]  # fmt: skip
CHOICES = [
    "ANSWER: B", "ANSWER: $B$", "ANSWER: **B**", "ANSWER: (B)", "**ANSWER: B**", "answer: b",
    "ANSWER: B)", "ANSWER: B) Jupiter", "ANSWER: B. Jupiter", "ANSWER: B Jupiter",
    "ANSWER: B, because...", "ANSWER: \\boxed{B}", "B", "(B)", "The answer is B.", "ANSWER\uff1aB",
    "ANSWER: A\nno wait\nANSWER: B", "ANSWER: B\nANSWER: A", "ANSWER: `B`", "> ANSWER: B",
    "ANSWER: [B]", "ANSWER:\nB", "ANSWER: *B*", "ANSWER: \\(B\\)", "ANSWER: \\text{B}",
    "ANSWER: __B__", 'ANSWER: "B"', "ANSWER: 2", "ANSWER: B or C", "**ANSWER:** B",
    "ANSWER: **B) Jupiter**", "ANSWER: $$B$$", "ANSWER: $ B $", "ANSWER: ( B )", "ANSWER: B,",
    "ANSWER: A,C", "ANSWER: A and C", "ANSWER: A, and C", "ANSWER: A & C", "ANSWER: AC",
    "ANSWER: [A, C]", "ANSWER: $A, C$", "ANSWER: **A**, **C**", "ANSWER: (A), (C)", "ANSWER: C A",
    "ANSWER: $A$, $C$", "ANSWER: ", "ANSWER: B\nANSWER:   \n", "ANSWER:        \n       B",
    "ANSWER: $A           ,           C$", "", "ANSWER: 1", "ANSWER: 27",
]  # fmt: skip
ANSWERS = [
    # An answer and the truth, for GAIA.
    ("42", "42"), ("$42", "42"), ("42%", "42"), ("1,000", "1000"), ("\u20ac42", "42"),
    ("42 apples", "42"), ("1000", "1,000"), ("1,000", "1,000"), ("banana", "inf"), ("nan", "nan"),
    ("Hello, World", "hello world"), ("hello world", "Hello, World"), ("a, b; c", "A,B,C"),
    ("b, a", "a, b"), ("a, 2.0", "a,2"), ("a., b", "a, b"), ("", "x"), ("None", "none"),
    ("sea gull", "Seagull"), ("O\u2019Brien", "O'Brien"), ("1e3", "1000"), ("", ""), ("a;", "a;"),
]  # fmt: skip
PAIRS = [
    ("Hello, World!", " world "), ("Hello", "world"), ("", ""), ("Kitten", "sitting"), ("", "abc"),
    ("abcd", "bcde"), ("a\nb", "a.b"), ("A", "a"), ("x", "("), ("Stra\u00dfe", "STRASSE"),
]  # fmt: skip
ADDRESSES = [
    ("http://shop/lamps/", ["http://shop/lamps"]), ("http://shop/lamps/7?x=1", ["http://shop/lamps"]),
    ("http://other/?u=http://shop/lamps", ["http://shop/lamps"]),
    ("http://shop/lamps?sort=a&sort=b", ["http://shop/lamps?sort=b"]),
    ("http://shop/lamps?sort=ab", ["http://shop/lamps?sort=b"]),
    ("http://shop/sofas?sort=a", ["http://shop/lamps?sort=b", "http://shop/sofas?sort=a"]),
]  # fmt: skip
WORDS = [
    ("0", "there are 10"), ("0", "there are 0"), ("0", "$0"), ("0", "1,000"), ("0", "0 lamps"),
    ("Quest Band", "the quest band, I think"), ("'Quest'", "QUEST"), ('"a"', "a"), ("a", "a b"),
    ("", "x"), ("42.50", "'42.50' "), ("5", "(5)"), ("x", "x-ray"),
]  # fmt: skip
OSWORLD: list[tuple[str, list[Any], dict[str, Any]]] = [
    *(("exact_match", [text, {"expected": "a\n"}], {}) for text in ("a\n", "a", "A\n")),
    *(("literal_match", ["A", "a"], {"ignore_case": each}) for each in (True, False)),
    ("literal_match", [["a", "B"], ["A", "b"]], {"type": "list", "ignore_case": True}),
    ("literal_match", [["a"], ["a", "b"]], {"type": "list"}),
    ("is_in_list", [["a", "b"], {"expected": "a"}], {}),
    ("is_in_list", ["abc", {"expected": "b"}], {}),
    ("check_include_exclude", ["a b", {"include": ["a"], "exclude": ["c"]}], {}),
    ("check_include_exclude", ["a c", {"include": ["a"], "exclude": ["c"]}], {}),
    ("check_list", ["one\ntwo\n", {"expect": ["^o", "o$"], "unexpect": ["x"]}], {}),
    ("check_list", ["one\nx\n", {"expect": ["^o"], "unexpect": ["x"]}], {}),
    ("check_direct_json_object", ['{"a": 1}', {"expected": {"a": 1}}], {}),
    ("check_direct_json_object", ["{'a': '1'}", {"expected": {"a": 1}}], {}),
    ("check_direct_json_object",
     [{"a": "x y"}, {"expected": {"a": "x"}, "expect_in_result": True}], {}),
    ("check_direct_json_object",
     [{"a": ["x"]}, {"expected": {"a": ["y", "x"]}, "expect_in_result": True}], {}),
    ("check_json_settings", ['{"a": 1, "b": 2}', {"expected": {"a": 1}}], {}),
    ("check_json_settings", ["no JSON", {"expected": {"a": 1}}], {}),
    *(("compare_text_file", ["A  b\n\n", "a b"], {"ignore_blanks": one, "ignore_case": other})
      for one in (True, False) for other in (True, False)),
    ("compare_text_file", ["a\r\nb\n", "a\nb\n"], {}),
    ("is_utc_0", ["a\nb\nc\nTime zone: x (WET, +0000)\n"], {}),
    ("is_utc_0", ["a\nb\nc\nTime zone: x (CET, +0100)\n"], {}),
    *(("check_text_enlarged", [each], {}) for each in ("1.25", "1.0")),
    ("check_gnome_favorite_apps", ["['a', 'b']", {"expected": ["b", "a"]}], {}),
    ("check_gnome_favorite_apps", ["['a']", {"expected": ["b", "a"]}], {}),
]  # fmt: skip


def rules_of(environment: str, module: str) -> ModuleType:
    """The rules of a shipped environment, loaded as its own file loads them."""
    folder = ROOT / "environments" / environment
    spec = importlib.util.spec_from_file_location(f"{module}_beside_peers", folder / f"{module}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def cases(osworld: ModuleType, webarena: ModuleType) -> list[tuple[str, list[Any], Any, Any]]:
    """Each peer's rule with its arguments, its keywords, and what ours gives."""
    found: list[tuple[str, list[Any], Any, Any]] = []
    for location in ("begin", "end", "any", "exact"):
        for numeric in (True, False):
            found += [
                ("inspect_match", [text, [target], location, numeric], {},
                 match(text, [target], location=location, numeric=numeric))
                for text, target in (*NUMBERS, *TEXTS)
            ]  # fmt: skip
    found += [
        ("inspect_includes", [text, [target]], {}, includes(text, [target]))
        for text, target in TEXTS
    ]
    found += [
        ("inspect_choice", [text, target, count, several], {},
         choice(text, target, count, several=several))
        for text in CHOICES
        for target, count in (("B", 4), ("AC", 4), ("A,C", 4), ("1", 30))
        for several in (True, False)
    ]  # fmt: skip
    found += [("gaia_match", [*pair], {}, gaia_match(*pair)) for pair in ANSWERS]
    for function in (match_single, match_fuzzy, match_regex, match_diff):
        found += [(function.__name__, [*pair], {}, function(*pair).score) for pair in PAIRS]
    numbers = [(8, 10), (-10, 10), (0, 0.0), (1e300, -1e300)]
    found += [("match_diff", [*pair], {}, match_diff(*pair).score) for pair in numbers]
    lists = [("a red hat", ["RED", "blue"]), ("x", []), ("red red", ["red", "red"])]
    found += [("match_all", [*pair], {}, match_all(*pair).score) for pair in lists]
    found += [
        ("webarena_include", [wanted, text, alone], {},
         float(webarena.is_included(wanted, text, alone=alone)))
        for wanted, text in WORDS
        for alone in (True, False)
    ]  # fmt: skip
    found += [
        (
            "webarena_exact",
            [*pair],
            {},
            float(webarena.cleaned(pair[0]) == webarena.cleaned(pair[1])),
        )
        for pair in WORDS
    ]
    found += [
        ("webarena_address", [*pair], {}, float(webarena.address_fits(*pair))) for pair in ADDRESSES
    ]
    found += [
        (f"osworld_{name}", args, kwargs, osworld.METRICS[name](*args, **kwargs))
        for name, args, kwargs in OSWORLD
    ]
    return found


@pytest.fixture(scope="module")
def peers_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of peers in their newest versions, made once and brought up to date."""
    python = PEERS.find(tmp_path_factory)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-U"]
    for wanted in (NEWEST, ("--no-deps", *ALONE)):  # without a network, what is there is asked
        subprocess.run([*pip, *wanted], check=False, capture_output=True, timeout=600)
    return python


def test_each_copied_rule_gives_what_its_newest_peer_gives(
    peers_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every case of every table; a peer that moves is named with what it gives now."""
    monkeypatch.syspath_prepend(str(ROOT / "environments" / "osworld"))
    table = cases(rules_of("osworld", "osworld_metrics"), rules_of("webarena", "webarena_rules"))
    done = subprocess.run(
        [str(peers_python), str(RULES)],
        input=json.dumps([case[:3] for case in table]),
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    given = json.loads(done.stdout.splitlines()[-1])
    moved = [
        (*case[:3], f"the peer gives {theirs}, ours {case[3]}")
        for case, theirs in zip(table, given, strict=True)
        if theirs != pytest.approx(case[3])
    ]
    assert moved == []

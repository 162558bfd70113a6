"""Written numbers: read whole, in one reading; a part of one is never taken for it."""

import math
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from waiting import PATIENCE_S

from hud_mcp.graders.answers import response_includes
from hud_mcp.graders.reading import read_number
from hud_mcp.graders.text import contains, numeric_match

READ = {
    "5": 5,
    "the answer is 5.": 5,
    "-5": -5,
    "+5": 5,
    "12,345.67": 12345.67,
    "$1,234.50": 1234.5,
    "0.5": 0.5,
    "$9{,}500": 9500,
    "$9\\,500$": 9500,
    "9 500": 9500,
    "9'500": 9500,
    "9\u2019500": 9500,
    "9.500.000": 9500000,
    "9.500,25 \u20ac": 9500.25,
    "0,5": 0.5,
    "12,34,567": 1234567,
    "\\frac{1}{2}": 0.5,
    "-\\frac{3}{4}": -0.75,
    "3.5 \xd7 10^3": 3500,
    "3.5 \\times 10^3": 3500,
    "3.5 \xd7 10\xb3": 3500,
    "10^6": 1000000,
    "10\u2076": 1000000,
    "2^10": 1024,
    "1.5 million": 1500000,
    "20k": 20000,
    "- 5": -5,
    "minus 5": -5,
    "negative 5": -5,
    "9.8 m/s^2": 9.8,
    "5 m^2": 5,
    "The answer is $\\boxed{\\frac{1}{2}}$.": 0.5,
    "1\\frac{1}{2}": 1.5,
    "\\frac12": 0.5,
    "2\xbd": 2.5,
    "1 1/2": 1.5,
    "=> 5": 5,
    "x -> 5": 5,
    "<b>5</b>": 5,
    "10<sup>6</sup>": 1000000,
    "10^{-3}": 0.001,
    "10\u207b\xb3": 0.001,
    "10**6": 1000000,
    "**42**": 42,
    "*42*": 42,
    "__42__": 42,
    "`42`": 42,
    '"42"': 42,
    "(5)": 5,
    "(-5)": -5,
    "x = -5": -5,
    "Answer -5": -5,
    "Answer: - 5": -5,
    "Answer -- 5": 5,
    "Answer \u2014 5": 5,
    "2 + 3 = 5": 5,
    "6 \xd7 7 = 42": 42,
    "1/2": 0.5,
    "1 / 2": 0.5,
    "COVID-19 killed 5": 5,
    "5 in COVID-19": 5,
    "3, 5": 5,
    "Step 1: 5": 5,
    "Q1 2024": 2024,
    "$5M": 5000000,
    "5m": 5,
    "5 m": 5,
    "$5m": 5000000,
    "5 M\u20ac": 5000000,
    "20 K": 20,
    "20 k\u20ac": 20000,
    "20 kEUR": 20000,
    "$20K": 20000,
    "5 bn": 5000000000,
    "5 billion dollars": 5000000000,
    "3 Milliarden": 3000000000,
    "3 Mio. Euro": 3000000,
    "1,5 Millionen": 1500000,
    "2 millones": 2000000,
    "5 thousand million": 5000000000,
    "5 hundred thousand": 500000,
    "5 millionaires": 5,
    "3\u4e07": 30000,
    "3\u5343\u4e07": 30000000,
    "1.5\u4ebf": 150000000,
    "50%": 50,
    "50 %": 50,
    "5\xb0C": 5,
    "-5 \xb0C": -5,
    "30^\\circ": 30,
    "5 feet 3 inches": 3,
    "1e3": 1000,
    "1E-3": 0.001,
    "-US$5": -5,
    "-$5": -5,
    "$-5": -5,
    "\u20ac 5": 5,
    "5 \u20ac": 5,
    "5x": 5,
    "5kg": 5,
    "5 kg/m^3": 5,
    "5 m\xb7s\u207b\xb2": 5,
    "5 m s^{-2}": 5,
    "5 (m/s)^2": 5,
    "5 m2": 5,
    "5m2": 5,
    "x^2 = 9": 9,
    "2^-1": 0.5,
    "-2^2": -4,
    "1,234": 1234,
    "1.234": 1.234,
    "1,234.5": 1234.5,
    "1.234,5": 1234.5,
    "1'234.50": 1234.5,
    "1 234,567": 1234.567,
    "1,23": 1.23,
    "0,500": 0.5,
    "1_000": 1000,
    "1 000 000": 1000000,
    ".5": 0.5,
    "-.25 m": -0.25,
    "5.": 5,
    "5,": 5,
    "5th": 5,
    "#5": 5,
    "No. 5": 5,
    "~5": 5,
    "\u2248 5": 5,
    "5!": 5,
    "42?": 42,
    "[42]": 42,
    '{"a": 5}': 5,
    "5-year": 5,
    "5 or 6": 6,
    "\\$460": 460,
    "US$ 5": 5,
    "USD 5M": 5000000,
    "1/0": math.nan,
    "\u0663": 3,
    "\uff11\uff12": 12,
    "5\\%": 5,
    "5\\text{ m}": 5,
    "10^{6} \\text{ kg}": 1000000,
    "1.5e6 km": 1500000,
    "5-": 5,
    "1,000,000.": 1000000,
    "The total is 1,234,567 people": 1234567,
    "5 dozen": 60,
    "5 hundred": 500,
    "2^{10}": 1024,
    "2^(10)": 1024,
    "= 3.14, roughly": 3.14,
    "5 \\text{m}^2": 5,
    "5\\,\\text{m}^2": 5,
    "5 C++ files": 5,
    "C++ 5": 5,
    "1 2/3": 1.6666666666666667,
    "-1 1/2": -1.5,
    "\u22125": -5,
    "\xad5": 5,
    "5\u200b0": 50,
    "1 234": 1234,
}
NOT_READ = [
    "2024-05-12",
    "12:30",
    "5 and a half",
    "5 and 1/2",
    "2\u03c0",
    "2\\pi",
    "2 pi",
    "\\sqrt{2}",
    "sqrt(2)",
    "\u221a2",
    "5 \xb1 0.1",
    "<5",
    ">= 5",
    "Answer - 5",
    "10 - 5",
    "10-5",
    "2 + 3",
    "6*7",
    "6 x 7",
    "5\u201310",
    "12/05/2024",
    "24/7/365",
    "H2O",
    "COVID-19",
    "v1.2",
    "1.2.3",
    "192.168.0.1",
    "3 5",
    "Step 1:5",
    "5M",
    "20K",
    "1 million 200 thousand",
    "2 million five hundred",
    "5 millionths",
    "3 tenths",
    "3\u4e075000",
    "20% of 100",
    "3 out of 5",
    "5 degrees below zero",
    "5 \xb0C below zero",
    "5\xb030'",
    "6'2\"",
    "0x1F",
    "0xFF",
    "--5",
    "5+",
    "5 + x",
    "5x^2",
    "m^2",
    "x^2",
    "f(3)",
    "a[5]",
    "x_5",
    "x_{5}",
    "10^6^2",
    "(-2)^2",
    "3.5 \xd7 103",
    "10 to the 6th",
    "5 squared",
    "2,3,5,7",
    "12 34",
    "p.5",
    "...5",
    "1..5",
    "5~10",
    "2024-W05",
    "between 3 and 5",
    "A-5",
    "3:1",
    "10 -5",
    "2 \xd7 10",
    "five",
    "none",
    "\\log 5",
    "12abc3",
    "\\frac{\\pi}{2}",
    "\\frac{2}{3}\\pi",
]


def test_a_written_number_is_read_whole_or_not_at_all() -> None:
    """Notations of many countries, of LaTeX, of sums and of sentences: their value, or none."""
    wrong = [
        (text, number, read_number(text))
        for text, number in [*READ.items(), *((text, None) for text in NOT_READ)]
        if not is_same(read_number(text), number)
    ]
    assert wrong == []


def test_a_value_that_is_a_number_is_taken_as_it_is() -> None:
    """A truth value and nothing are none."""
    values = [5, 2.5, True, False, None, 10**400, -(10**400)]
    read = [5, 2.5, None, None, None, math.inf, -math.inf]
    assert list(map(read_number, values)) == read


def is_same(one: float | None, other: float | None) -> bool:
    """Whether two are the same number, or both none; binary fractions are not told apart."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-13) or (math.isnan(one) and math.isnan(other))


def test_no_digits_of_a_notation_pass_for_its_number() -> None:
    """Each run of digits in each text of the tables is tried as the expected number."""
    wrong = [
        (text, digits)
        for text, number in [*READ.items(), *((text, None) for text in NOT_READ)]
        for digits in re.findall(r"\d+", text)
        if number is None or not is_same(abs(number), float(digits))
        if numeric_match(text, float(digits)) or numeric_match(text, -float(digits))
    ]
    assert wrong == []


SIGN = st.sampled_from(["", "-", "\u2212", "minus ", "- "])
AROUND = st.sampled_from(["{}", "It is {}.", "= {} kg", "**{}**", "${}$", "\\boxed{{{}}}", "({})"])
NOTATION = st.sampled_from(
    ["{0},{1}", "{0}^{1}", "{0} \u00d7 10^{1}", "{0}/{1}", "\\frac{{{0}}}{{{1}}}", "{0}{1} million",
     "{0}.{1}", "{0}-{1}", "{0}:{1}", "{0}.{1}.{1}", "{0}e{1}", "{0} {1}"]
)  # fmt: skip


@given(SIGN, AROUND, NOTATION, st.integers(2, 99), st.integers(2, 99))
@example("", "{}", "{0},{1}", 2, 5)
def test_no_part_of_any_notation_passes(
    sign: str, around: str, notation: str, first: int, second: int
) -> None:
    """Neither half of two numbers that a sign joins is ever the number, whatever is around them."""
    text = around.format(sign + notation.format(first, second))
    for part in (first, second):
        if notation == "{0}/{1}" or "frac" in notation:
            continue  # 4/2 is 2
        if notation == "{0}^{1}" and first**second == part:
            continue
        assert numeric_match(text, part) == 0, (text, part)
        assert numeric_match(text, -part) == 0, (text, part)


def test_a_text_is_not_found_within_a_number() -> None:
    """By none of the functions that look for texts; where it stands alone, it is."""
    within = [
        ("15.5 apples", "15"), ("15.5 apples", "5"), ("-5 apples", "5"), ("1,234", "234"),
        ("1,234", "1"), ("9 500", "500"), ("9 500", "9"), ("9'500", "500"), ("10^6", "10"),
        ("10^6", "6"), ("10\u2076", "10"), ("1e3", "1"), ("3.5 \u00d7 10^3", "3.5"), ("1/2", "1"),
        ("1/2", "2"), ("2\u00bd", "1/2"), ("2\u00bd", "2"), ("2024-05-12", "12"), ("12:30", "30"),
        ("-$5", "5"), ("-$5", "$5"), ("2-5", "-5"), ("10**6", "6"), ("0.50", "0.5"),
    ]  # fmt: skip
    alone = [
        ("It is 15.", "15"), ("15, not 5", "5"), ("(5)", "5"), ("$5", "5"), ("5%", "5"),
        ("9 500 men", "9 500"), ("9\u00a0500 men", "9 500"), ("at 12:30.", "12:30"), ("x-5", "x-5"),
        ("10\u2076 men", "10^6"), ("on 2024-05-12", "2024-05-12"), ("2\u00bd", "2 1/2"),
    ]  # fmt: skip
    for find in (contains, response_includes):
        assert [each for each in within if find(*each)] == [], find
        assert [each for each in alone if not find(*each)] == [], find


@pytest.mark.long
@pytest.mark.timeout(PATIENCE_S)
def test_long_answers_are_read_in_time() -> None:
    """An agent cannot hold up the server: the time grows with its length alone."""
    pieces = ["1", "1 ", "1,", "- ", "1/", "10^", "\\frac{", "<sup>", "**5", "_", " ", "5 hundred",
              "minus ", "\\text{", "\u2076", "\u00bd", "$", "1e", "H2O "]  # fmt: skip
    for piece in pieces:
        times = []
        for count in (10_000, 40_000):
            began = time.process_time()
            read_number(piece * count + "x")
            times.append(time.process_time() - began)
        assert times[1] < 12 * max(times[0], 0.05), (piece, times)
    assert read_number("1" * 1_000_000 + "a1") is None
    assert read_number("1," * 500_000 + "x") is None
    assert read_number("H2O " * 10_000 + "is 5") == 5
    assert read_number("5 \u00d7 10^999999999") == math.inf

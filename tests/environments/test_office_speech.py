"""The office's customer reads what agents write, whatever letters they write it with."""

import importlib.util
import sys
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from other_python import ROOT

PLACE = ROOT / "environments" / "office" / "office_speech.py"
OTHERS = (
    "\u017fep", "\u017fept", "augu\u017ft", "4", "11", " ", "-", ".", ":", "/", "pm", "may", "EUR",
    "\u20ac", "points", "of", ",", "K\u212a-12", "2026", "\u0131", "\u0130",
)  # fmt: skip


@st.deferred
def pieces() -> st.SearchStrategy[str]:
    """Every sign that an expression which ignores case, or a change of case, takes for plain."""
    folding = [
        chr(point)
        for point in range(128, sys.maxunicode + 1)
        if any(each.isascii() for each in f"{chr(point).lower()}{chr(point).upper()}")
        or chr(point).isdecimal()
    ]
    return st.sampled_from([*folding, *OTHERS])


@pytest.fixture(scope="module")
def speech() -> ModuleType:
    """The office's own module, loaded as the environment's file loads it."""
    spec = importlib.util.spec_from_file_location("office_speech_alone", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(st.lists(pieces, max_size=8).map("".join))
@example("4 \u017fep")
@example("\u017feptember 4")
def test_no_letter_stops_the_reading_of_a_message(speech: ModuleType, text: str) -> None:
    """Each reader returns, and a long s is an s."""
    for read in ("dates_in", "times_in", "money_in", "points_in", "ids_in", "sentences_of"):
        getattr(speech, read)(text)
    assert speech.dates_in("4 \u017fep") == {(9, 4, None)}

"""Which tests `make test` runs, and which a lane."""

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

HERE = Path(__file__).resolve().parent

FILE = """
import pytest
@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", range(10))
def test_of_many(case): pass
@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", [pytest.param(0, marks=pytest.mark.prove), 1, 2])
def test_of_a_few(case): pass
@pytest.fixture
def hud_python(): pass
def test_of_another_python(hud_python): pass
def test_of_none(): pass
@pytest.fixture(params=["sqlite", "postgresql"])
def url(request): return request.param
@pytest.mark.parametrize("case", range(20))
def test_of_each(url, case): pass
"""


MARKS = """
def tell(items, *more):
    for item in items:
        print("MARKED", item.name, *{mark.name for mark in item.iter_markers()}, *more)
def pytest_deselected(items):
    tell(items, "left out")
def pytest_collection_finish(session):
    tell(session.items)
"""
OF_TEST = "not long and not prove and not peers"


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The marks of each test of a file, by the test's name."""
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "test_file.py").write_text(FILE)
    (folder / "conftest.py").write_text(MARKS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lanes", "-p", "no:cacheprovider",
         "--collect-only", "-q", "-m", OF_TEST, "test_file.py"],
        cwd=folder, env={"PYTHONPATH": str(HERE)}, capture_output=True, text=True,
        timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("MARKED ")]
    return {name: set(marks) for _, name, *marks in lines}


def chosen(marked: dict[str, set[str]], lane: str) -> list[str]:
    """The tests that are of a lane, by name; without its name, those of `make test`."""
    return [name for name, own in marked.items() if (lane in own if lane else "out" not in own)]


def test_a_sample_is_spread_over_its_cases_and_a_lane_has_the_others(
    marked: dict[str, set[str]],
) -> None:
    """Of ten cases three stay; every case is run by one of the two commands, and none by both."""
    stays, goes = chosen(marked, ""), chosen(marked, "long")
    assert [each for each in stays if "many" in each] == [f"test_of_many[{n}]" for n in (0, 3, 6)]
    assert [each for each in goes if "each" not in each] == [
        f"test_of_many[{n}]" for n in (1, 2, 4, 5, 7, 8, 9)
    ] + ["test_of_a_few[2]"]
    assert [each for each in stays if "few" in each] == ["test_of_a_few[1]"], "0 is of a lane"
    assert chosen(marked, "prove") == ["test_of_a_few[0]"]


def test_what_needs_another_python_is_of_the_lane_peers(marked: dict[str, set[str]]) -> None:
    """By its fixture: nobody has to remember a mark."""
    assert chosen(marked, "peers") == ["test_of_another_python"]
    assert "test_of_none" in chosen(marked, "")


def test_a_test_runs_over_one_database_and_others_over_another(marked: dict[str, set[str]]) -> None:
    """Every case once in `make test`, over either, and over the other one in the lane."""
    stays, goes = (
        [each for each in chosen(marked, lane) if "each" in each] for lane in ("", "long")
    )
    assert len(stays) == len(goes) == 20
    assert {each.partition("[")[2].partition("-")[0] for each in stays} == {"sqlite", "postgresql"}
    assert sorted(stays + goes) == sorted(
        f"test_of_each[{url}-{case}]" for url in ("sqlite", "postgresql") for case in range(20)
    )

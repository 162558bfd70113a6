"""Which tests `make test` runs, and which a lane."""

import subprocess
import sys
from pathlib import Path

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


def chosen(folder: Path, lane: str) -> list[str]:
    """The tests of a file that are of a lane, by name."""
    (folder / "test_file.py").write_text(FILE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lanes", "-p", "no:cacheprovider",
         "--collect-only", "-q", "-m", lane, "test_file.py"],
        cwd=folder, env={"PYTHONPATH": str(HERE)}, capture_output=True, text=True,
        timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_a_sample_is_spread_over_its_cases_and_a_lane_has_the_others(tmp_path: Path) -> None:
    """Of ten cases three stay; every case is run by one of the two commands, and none by both."""
    stays, goes = chosen(tmp_path, "not long and not prove"), chosen(tmp_path, "long")
    assert [each for each in stays if "many" in each] == [f"test_of_many[{n}]" for n in (0, 3, 6)]
    assert [each for each in goes if "each" not in each] == [
        f"test_of_many[{n}]" for n in (1, 2, 4, 5, 7, 8, 9)
    ] + ["test_of_a_few[2]"]
    assert [each for each in stays if "few" in each] == ["test_of_a_few[1]"], "0 is of a lane"
    assert chosen(tmp_path, "prove") == ["test_of_a_few[0]"]


def test_what_needs_another_python_is_of_the_lane_peers(tmp_path: Path) -> None:
    """By its fixture: nobody has to remember a mark."""
    assert chosen(tmp_path, "peers") == ["test_of_another_python"]
    assert "test_of_none" in chosen(tmp_path, "not peers")


def test_a_test_runs_over_one_database_and_others_over_another(tmp_path: Path) -> None:
    """Every case once in `make test`, over either, and over the other one in the lane."""
    stays, goes = (
        [each for each in chosen(tmp_path, lane) if "each" in each]
        for lane in ("not long and not prove", "long")
    )
    assert len(stays) == len(goes) == 20
    assert {each.partition("[")[2].partition("-")[0] for each in stays} == {"sqlite", "postgresql"}
    assert sorted(stays + goes) == sorted(
        f"test_of_each[{url}-{case}]" for url in ("sqlite", "postgresql") for case in range(20)
    )

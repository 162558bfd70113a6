"""What becomes of a skipped test where everything was to be installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

HERE = Path(__file__).resolve().parent

FILE = """
import pytest
def test_that_passes(): pass
def test_for_want(): pytest.skip("NO DATABASE")
@pytest.mark.skipif(True, reason="no ssh here")
def test_marked(): pass
@pytest.fixture
def machine(): pytest.skip("no desktop")
def test_of_a_fixture(machine): pass
@pytest.mark.skipif(True, reason="not on this machine: signals of POSIX")
def test_elsewhere(): pass
@pytest.mark.xfail(reason="known", strict=True)
def test_known(): raise AssertionError
"""
WHOLE_FILE = """
import pytest
pytest.importorskip("no_such_module_at_all")
def test_nothing(): pass
"""
STRICT = [{"HUD_MCP_TEST_ALL": "1"}, {"CI": "true"}]


def run(folder: Path, file: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests with the rule, under some variables."""
    (folder / "test_file.py").write_text(file)
    kept = {k: v for k, v in os.environ.items() if k not in {"CI", "HUD_MCP_TEST_ALL"}}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "skips", "-p", "no:cacheprovider", "."],
        cwd=folder, env={**kept, "PYTHONPATH": str(HERE), **variables},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("variables", STRICT)
def test_a_skip_for_want_of_something_fails_make_test(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    """Of a call, a mark and a fixture, with its reason; only what the machine is may skip."""
    done = run(tmp_path, FILE, **variables)
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 skipped, 1 xfailed, 2 errors" in done.stdout
    for reason in ("NO DATABASE", "no ssh here", "no desktop"):
        assert f"This test was skipped: {reason}" in done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("variables", STRICT)
def test_a_skipped_file_fails_make_test(tmp_path: Path, variables: dict[str, str]) -> None:
    """Its tests are not even counted, so nothing else would tell."""
    done = run(tmp_path, WHOLE_FILE, **variables)
    assert done.returncode != 0
    assert "This test was skipped: could not import 'no_such_module_at_all'" in done.stdout


def test_a_skip_is_a_skip_for_whoever_runs_pytest(tmp_path: Path) -> None:
    """Who cannot install everything runs the rest."""
    done = run(tmp_path, FILE)
    assert done.returncode == 0
    assert "1 passed, 4 skipped, 1 xfailed" in done.stdout

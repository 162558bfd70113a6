"""The page on checking is true: it has every field, every option and every probe."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from proving import ROOT, check

from hud_mcp.cli import main
from hud_mcp.rollout.checking.verdicts import ProbeResult, TaskVerdict

TEXT = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's file is."""
    folder = tmp_path_factory.mktemp("page")
    [program] = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    (folder / "env.py").write_text(program)
    return folder


@pytest.mark.long
def test_the_fields_of_the_page_are_those_of_the_object(folder: Path) -> None:
    """Of the whole, of a task and of a probe."""
    whole = json.loads(check(folder, "env.py", "--only", "country", "--json", status=1))
    table = TEXT.partition("## JSON")[2]
    named = set(re.findall(r"`(?:tasks\[\]|…)?\.?(\w+)`", table)) - {"proven", "unproven", "failed"}
    named -= {"unfinished", "not_begun"}
    assert named == {*whole, *TaskVerdict.model_fields, *ProbeResult.model_fields}


def test_the_page_names_every_option_and_every_probe() -> None:
    """None is added without a word."""
    said = CliRunner().invoke(main, ["check", "--help"]).output
    for option in set(re.findall(r"--[a-z-]+", said)) - {"--help", "--filter", "--live"}:
        assert option in TEXT, option
    assert "`attack-NAME`" in TEXT

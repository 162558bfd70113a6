"""What docs/hud.md shows is run here, as it stands there."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hud.md").read_text()


def blocks(language: str) -> list[str]:
    """The page's code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def run(folder: Path, *command: str) -> str:
    """Run a command of this checkout's in a folder, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", *command],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_of_the_page_is_served(tmp_path: Path) -> None:
    """Its template is listed, asks in HUD's messages, and grades a typed answer."""
    (source,) = blocks("python")
    (tmp_path / "env.py").write_text(source)
    placed = ("--source", "env.py", "--store", str(tmp_path / "store.sqlite3"))
    assert run(tmp_path, "task", "list", *placed) == "add\tAdd two numbers\n"
    started = json.loads(run(tmp_path, "task", "start", "add", "-a", '{"a": 2}', "--json", *placed))
    assert started["prompt"][0] == {"role": "system", "content": "Be brief."}
    assert run(tmp_path, "task", "grade", "--answer", "4", *placed) == "1.0\n"


@pytest.mark.parametrize("line", [x for b in blocks("console") for x in b.splitlines()])
def test_each_command_of_the_page_is_one(line: str) -> None:
    """Its help is printed; the tests of the channel and of serving run them."""
    words = line.removeprefix("$ ").partition("#")[0].split()
    module = words[2] if words[0] == "python" else "hud_mcp"
    inner = [w for w in words[1:3] if w in ("serve", "channel")] if words[0] == "hud-mcp" else []
    done = subprocess.run(
        [sys.executable, "-m", module, *inner, "--help"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for option in (w for w in words if w.startswith("--")):
        assert option in done.stdout


def test_each_name_that_the_page_says_is_here_can_be_imported() -> None:
    """The second column of the table of imports, but for what it says is not here."""
    table = PAGE.partition("## Imports")[2].partition("##")[0]
    cells = [row.split(" | ")[1] for row in table.splitlines() if row.startswith("| `hud")]
    names = [n for cell in cells for n in re.findall(r"`(hud_mcp\.[\w.]+)`", cell)]
    assert len(names) > 5
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            assert hasattr(importlib.import_module(module), attribute)
        except AssertionError:
            importlib.import_module(name)
    arguments = importlib.import_module("hud_mcp.environment")
    for name in ("PromptArg", "GradingArg", "DataFileArg", "DataFilesArg", "DataFileRef"):
        assert f"`{name}`" in table or f".{name}`" in table
        assert hasattr(arguments, name)

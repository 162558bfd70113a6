"""Text files that people give begin as Excel, Notepad and PowerShell write them."""

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hud_mcp.agents.model.options import read_system
from hud_mcp.cli import main
from hud_mcp.cli.tokens import read_operator_token, read_tokens
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.contexts import read_contexts
from hud_mcp.loading.sets import list_sets
from hud_mcp.plugins.hand.commands.by_hand import read_text
from hud_mcp.plugins.sets.inspect_sets import InspectChoice, read_inspect
from hud_mcp.taskset import Taskset

ROW = json.dumps({"id": "a", "prompt": "Say x.", "evaluate": ["response_is", "x"]})
SECRET = "0123456789abcdef" * 2
CSV = 'input,target,choices\n"Which?","B","[""x"", ""y""]"\n'
MARKS: dict[str, Callable[[str], bytes]] = {
    "none": str.encode,
    "Excel, Notepad": lambda text: codecs.BOM_UTF8 + text.encode(),
    "PowerShell": lambda text: codecs.BOM_UTF16_LE + text.replace("\n", "\r\n").encode("utf-16-le"),
    "big-endian": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
}
READERS: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    # What reads it: a file's name, its text, and what is read of it.
    "a taskset": ("t.jsonl", f"{ROW}\n", lambda path: Taskset.from_file(path).ids),
    "a taskset in JSON": ("t.json", f"[{ROW}]", lambda path: Taskset.from_file(path).ids),
    "the list of sets": ("t.jsonl", f"{ROW}\n", lambda _: [each.name for each in list_sets()]),
    "Inspect's rows": (
        "r.jsonl", '{"input": "x", "target": "y"}\n',
        lambda path: read_inspect(path, InspectChoice())[0].prompt,
    ),
    "Inspect's list": (
        "r.json", '[{"input": "x", "target": "y"}]',
        lambda path: read_inspect(path, InspectChoice())[0].prompt,
    ),
    "Inspect's table": (
        "r.csv", CSV, lambda path: read_inspect(path, InspectChoice(scorer="choice"))[0].prompt,
    ),
    "contexts": ("c.jsonl", '{"name": "moon", "context": {"gravity": 1.6}}\n', read_contexts),
    "tokens": ("tokens", f"ann={SECRET}\n", lambda path: read_tokens((), str(path))),
    "an operator's token": ("token", f"{SECRET}\n", lambda path: read_operator_token(str(path))),
    "an answer": ("answer.txt", "42", lambda path: read_text(str(path))),
    "a system prompt": ("system.txt", "Be short.", lambda path: read_system(path)[0]),
}  # fmt: skip


def test_a_byte_order_mark_is_no_part_of_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever reads the file, it reads what it reads of the file without a mark."""
    wrong: list[object] = []
    for number, (what, (name, text, read)) in enumerate(READERS.items()):
        found: dict[str, Any] = {}
        for mark, encode in MARKS.items():
            folder = tmp_path / f"{number}-{len(found)}"
            folder.mkdir()
            monkeypatch.chdir(folder)
            (folder / name).write_bytes(encode(text))
            (folder / name).chmod(0o600)
            try:
                found[mark] = read(folder / name)
            except Exception as exc:  # noqa: BLE001  # each is told, with what reads it
                found[mark] = exc
        wrong += [(what, mark, got) for mark, got in found.items() if got != found["none"]]
        if isinstance(found["none"], Exception) or not found["none"]:
            wrong.append((what, found["none"]))
    assert wrong == []


def test_the_command_imports_a_table_as_excel_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a row that has no `input` is told without a mark that nobody sees."""
    monkeypatch.chdir(tmp_path)
    Path("excel.csv").write_bytes(codecs.BOM_UTF8 + CSV.encode())
    done = CliRunner().invoke(
        main, ["taskset", "import-inspect", "excel.csv", "--scorer", "choice"]
    )
    assert done.exit_code == 0, done.output
    Path("other.csv").write_bytes(codecs.BOM_UTF8 + b"question,target\nx,y\n")
    with pytest.raises(InvalidTask) as told:
        read_inspect(Path("other.csv"), InspectChoice())
    assert "\ufeff" not in str(told.value)

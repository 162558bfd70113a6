"""Rows grade a server that is served by its command alone, without any Python."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from peers import stdio_peer

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

PLAIN_SERVER = Path(__file__).parent / "plain_server.py"

CALLS: list[tuple[list[Any], float]] = [
    (["called", "add", {"note": "tea"}], 1.0),
    (["called", "add", {"note": "jam"}], 0.0),
    (["never_called", "die", "hang"], 1.0),
    (["never_called", "die", "add"], 0.0),
    (["called_in_order", "add", "look"], 1.0),
    (["called_in_order", "look", "add"], 0.0),
    (["calls_at_most", 2], 1.0),
    (["calls_at_most", 0, "look"], 0.0),
    (["tool_errors_at_most", 1], 1.0),
    (["tool_errors_at_most", 0], 0.0),
    (["server_returns", "look", {"path": "notes.txt"}, "milk\ntea"], 1.0),
    (["server_returns", "look", {"path": "none.txt"}, "milk"], 0.0),
]
"""A call of `evaluate`, and its value after a note was added and a missing file was looked at."""


@pytest.mark.long
async def test_a_served_server_has_the_files_of_an_option(tmp_path: Path) -> None:
    """`--files` gives each session a copy of a folder."""
    shutil.copy(PLAIN_SERVER, tmp_path)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "notes.txt").write_text("milk\n")
    row = {"env": "notes", "id": "read", "prompt": "Read.", "evaluate": [["called", "look"]]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    source = f"mcp:name=notes /usr/bin/python3 {tmp_path / 'plain_server.py'}"
    files, rows = str(tmp_path / "documents"), str(tmp_path / "rows.jsonl")
    words = (source, "--files", files, "--taskset", rows)
    async with stdio_peer(tmp_path, words) as peer:
        session = (await peer.ok("start_task", task="read")).structured["session"]
        assert (await peer.ok("look", session=session, path="notes.txt")).text == "milk\n"


@pytest.mark.long
async def test_rows_grade_the_calls_of_an_agent(tmp_path: Path) -> None:
    """Each function tells right from wrong, over the same work."""
    shutil.copy(PLAIN_SERVER, tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.txt").write_text("milk\n")
    rows = [
        {"env": "notes", "id": f"row-{n}", "prompt": "Add tea.", "evaluate": [call]}
        for n, (call, _) in enumerate(CALLS)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = f"name=notes files={tmp_path / 'files'}"
    source = f"mcp:{place} /usr/bin/python3 {tmp_path / 'plain_server.py'}"
    told: dict[int, float] = {}
    async with stdio_peer(tmp_path, (source, "--taskset", str(tmp_path / "rows.jsonl"))) as peer:
        for number in range(len(CALLS)):
            started = await peer.ok("start_task", task=f"row-{number}")
            session = started.structured["session"]
            await peer.ok("add", session=session, note="tea")
            await peer.error("look", session=session, path="/none")
            graded = await peer.ok("response", session=session, answer="done")
            told[number] = graded.structured["reward"]
    wrong = [call for number, (call, reward) in enumerate(CALLS) if told[number] != reward]
    assert wrong == []


FILES: list[tuple[list[Any], float]] = [
    (["file_exists", "notes.txt", "made.txt", "own.txt"], 1.0),
    (["file_exists", "none.txt"], 0.0),
    (["file_contains", "notes.txt", "tea"], 1.0),
    (["prints", "cat made.txt own.txt", "milk\njam"], 1.0),
    (["prints", "cat notes.txt", "milk"], 0.0),
    (["run", "grep -q tea notes.txt"], 1.0),
]
"""A call of `evaluate`, and its value in a folder that a command has made once, and a setup."""


@pytest.mark.long
async def test_rows_set_up_and_grade_the_files_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions begin with the files of one command, and the shell's functions work on them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copy(PLAIN_SERVER, tmp_path)
    setup = [["write_file", "own.txt", "jam"], ["run", "cp made.txt notes.txt"]]
    rows = [
        {"env": "notes", "id": f"row-{n}", "prompt": "Go.", "setup": setup, "evaluate": [call]}
        for n, (call, _) in enumerate(FILES)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    make = "echo milk > made.txt; date +%N > when.txt"
    source = f"mcp:name=notes make={shlex.quote(make)} /usr/bin/python3 {tmp_path}/plain_server.py"
    told: list[float] = []
    seen: set[str] = set()
    async with stdio_peer(tmp_path, (source, "--taskset", str(tmp_path / "rows.jsonl"))) as peer:
        for number in range(len(FILES)):
            started = await peer.ok("start_task", task=f"row-{number}")
            session = started.structured["session"]
            await peer.ok("add", session=session, note="tea")
            seen.add((await peer.ok("look", session=session, path="when.txt")).text)
            graded = await peer.ok("response", session=session, answer="done")
            told.append(graded.structured["reward"])
    assert told == [reward for _, reward in FILES]
    assert len(seen) == 1

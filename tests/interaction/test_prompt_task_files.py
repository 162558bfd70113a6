"""Files of tasks of a prompt: run, shown, exported, and refused where they are wrong."""

import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from asked_tasks import ASKED, LIST, ROWS, command, write
from peers import (
    ENVIRONMENTS,
    child_environment,
    load_all,
    stdio_peer,
)
from runs import finish, query

pytestmark = pytest.mark.anyio

ANSWERS = ENVIRONMENTS.parent / "agents" / "answer.py"


def answering(text: str) -> tuple[str, str]:
    """The options for an agent that gives this answer to everything."""
    return "--agent-command", shlex.join([sys.executable, str(ANSWERS), text])


@pytest.mark.long
async def test_a_job_of_such_tasks_is_run_shown_exported_and_graded_again(tmp_path: Path) -> None:
    """`eval`, `jobs`, `trace`, `view`'s pages, `export` and `regrade`."""
    key = tmp_path / "key"
    key.write_text("plum")
    rows = [
        {"id": "by-file", "prompt": "Say plum.", "evaluate": ["in_file", str(key)], "gym": "asked"},
        {**LIST, "id": "by-world", "evaluate": ["pinned", "tea", "plum"]},
    ]
    status, printed = await finish(tmp_path, rows, *answering("plum"), "--env", ASKED)
    assert status == 0, printed
    store = tmp_path / "store.sqlite3"
    records = {r.task.id: r for r in await load_all(store)}
    assert {i: r.reward for i, r in records.items()} == {"by-file": 1.0, "by-world": 1.0}
    ((job,),) = query(store, "SELECT id FROM jobs")

    status, told = await command(tmp_path, "trace", records["by-world"].id)
    assert status == 0, told
    assert "Write milk below the notes" in told
    assert "setup        board.mark('right'), pin('tea', 'plum')" in told
    assert "evaluate     pinned('tea', 'plum')" in told
    for form in ("jsonl", "html", "atif"):
        status, told = await command(tmp_path, "export", job, "--to", form, "--out", f"out-{form}")
        assert status == 0, told
    exported = [orjson.loads(line) for line in (tmp_path / "out-jsonl").read_bytes().splitlines()]
    assert sorted(row["task"]["id"] for row in exported if "task" in row) == sorted(records)

    key.write_text("pear")
    status, told = await command(tmp_path, "regrade", job)
    assert status == 0, told
    words = [line.split() for line in told.splitlines()]
    assert ["by-file", "1", "0", "-1"] in words
    assert "Graded again: 2 of 2 runs; 1 changed." in told


async def test_the_oracle_says_that_it_has_no_solution(tmp_path: Path) -> None:
    """In one sentence, before anything runs."""
    status, printed = await finish(tmp_path, ROWS[:3], "--agent", "oracle", "--env", ASKED)
    assert status == 1
    assert printed == (
        "Error: Tasks with a prompt have no oracle: list and 2 more. Play them with --agent nop or "
        "--agent-command, or leave them out with --filter.\n"
    )
    assert not (tmp_path / "store.sqlite3").exists()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"evaluate": ["pined", "x"]},
     "evaluate: environment 'asked' has no function 'pined'. Did you mean 'pinned'?"),
    ({"evaluate": [["pin", "x"]]}, "evaluate: 'pin' is a function for 'setup' and not"),
    ({"evaluate": ["acted", "x"]}, "evaluate: acted(count): count: expected a whole number"),
    ({"evaluate": "acted"}, "evaluate: acted(count) takes 1 argument, got 0."),
    ({"evaluate": None}, "evaluate: it is empty"),
    ({"setup": ["fail", "fail"]}, "setup: ['fail', 'fail'] may be"),
    ({"setup": 5}, "setup: 5 is not a call"),
    ({"template": "total"}, "a task has a 'prompt' or a 'template', and this row has 'prompt'"),
    ({"gym": "askde"}, "'askde'"),
    ({"gym": "OSWorld-Ubuntu"}, "'OSWorld-Ubuntu' was a desktop with Ubuntu for the tasks of OSW"),
    ({"gym": {"image_or_build_context": "i", "location": "remote"}}, "write location='local'"),
    ({"id": "flat"}, "the id 'flat' is taken by line 1"),
    ({"context": {"gravity": 5}}, "gravity"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("change", "said"), BAD[:5] + BAD[6:], ids=str)
@pytest.mark.parametrize("what", ["eval", "serve"])
async def test_a_bad_row_stops_everything_with_its_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], said: str, what: str
) -> None:
    """One sentence, status 1; nothing has run, and nothing is recorded."""
    good = next(row for row in ROWS if row["id"] == "flat")
    rows = write(tmp_path / "rows.jsonl", [good, {**good, "id": "bad", **change}])
    if what == "eval":
        words = ("eval", "rows.jsonl", "--agent", "nop", "--env", ASKED)
    else:
        words = ("serve", ASKED, "--taskset", rows, "--http", "127.0.0.1:0")
    status, printed = await command(tmp_path, *words)
    assert status == 1, printed
    assert len(printed.splitlines()) == 1, printed
    assert "rows.jsonl:2: " in printed
    assert said in printed
    assert not (tmp_path / "store.sqlite3").exists()


@pytest.mark.long
async def test_files_of_every_kind_can_be_served_run_and_listed(tmp_path: Path) -> None:
    """`serve --taskset`, `eval` and `tasks` take .json and .py as well, and both at once.

    Of several sets, `--split` serves the rows of one split of each.
    """
    kept, other = ({"metadata": {"split": name}} for name in ("test", "train"))
    row = next(row for row in ROWS if row["id"] == "flat")
    rows = [{**row, **kept}, {**row, **other, "id": "other"}]
    (tmp_path / "a.json").write_bytes(orjson.dumps({"tasks": rows}))
    (tmp_path / "b.py").write_text(
        "from hud_mcp import Task\n"
        "t = Task(id='py', prompt='Say pear.', gym='asked', evaluate=('response_includes', 'pear'),"
        f" metadata={kept['metadata']})"
    )
    status, printed = await command(tmp_path, "eval", "b.py", "--env", ASKED, *answering("pear"))
    assert status == 0, printed
    done = await anyio.run_process(
        [sys.executable, "-m", "hud_mcp", "tasks", "a.json"], cwd=tmp_path,
        env=child_environment(COLUMNS="200"),
    )  # fmt: skip
    assert "Say plum." in done.stdout.decode()
    names = ("a.json", "b.py")
    options = [word for name in names for word in ("--taskset", str(tmp_path / name))]
    options += ["--split", "test"]
    async with stdio_peer(tmp_path / "server", (ASKED,), *options) as peer:
        listed = await peer.ok("list_tasks")
        assert [t["id"] for t in listed.structured["tasks"]] == ["flat", "py"]

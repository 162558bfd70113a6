"""Rows that ask by a prompt, and what is done with them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import orjson
from peers import (
    ENVIRONMENTS,
    child_environment,
)

ASKED = str(ENVIRONMENTS / "asked.py")
SECRET = "WHAT-ANSWERS-ARE-HELD-TO"
BOUND_S = 120
ROWS: list[dict[str, Any]] = [
    {
        "id": "list",
        "prompt": "Write milk below the notes, and say which fruit is there.\nBe exact.",
        "gym": "asked",
        "setup": [["board.mark", "right"], ["pin", "tea", "plum"]],
        "evaluate": [
            {"function": "pinned", "args": ["tea", "plum", "milk"]},
            ["response_includes", "plum"],
            ["acted", 3],
        ],
        "metadata": {"key": SECRET},
        "target": SECRET,
    },
    {
        "id": "any",
        "prompt": "Say it.",
        "gym": "asked",
        "evaluate": [["response_includes", SECRET], ["pinned", "nothing", SECRET]],
        "config": {"combine": "mean"},
    },
    {
        "id": "flat",
        "prompt": "Say plum.",
        "evaluate": ["response_includes", "plum"],
        "gym": "asked",
    },
    {"id": "no-number", "prompt": "Say it.", "gym": "asked", "evaluate": "words"},
    {"id": "broken", "prompt": "Say it.", "gym": "asked", "evaluate": ["broken", SECRET]},
    {"id": "not-set-up", "prompt": "Say it.", "gym": "asked", "setup": "fail", "evaluate": "words"},
    {"id": "templated", "env": "board", "template": "total"},
]
LIST = ROWS[0]


def write(path: Path, rows: list[dict[str, Any]] | None = None) -> str:
    """Rows in a file."""
    path.write_bytes(b"\n".join(orjson.dumps(row) for row in (ROWS if rows is None else rows)))
    return str(path)


async def command(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command on the store of a folder."""
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [sys.executable, "-m", "hud_mcp", *words, "--store", str(folder / "store.sqlite3")],
            check=False, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
            env=child_environment(COLUMNS="200"),
        )  # fmt: skip
    return done.returncode, done.stdout.decode()

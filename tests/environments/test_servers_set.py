"""The set `servers`: solutions get their reward through real servers, and doing nothing gets none.

Rows over SQLite need nothing, and those over PostgreSQL its programs; the others install packages
of npm and PyPI, once.
"""

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from hud_mcp import Taskset
from hud_mcp.loading.sets import find_taskset

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

ROWS = Taskset.load(find_taskset("servers"))
LEAST_ROWS = {
    "servers-files": 8, "servers-git": 7, "servers-memory": 5, "servers-time": 4, "servers-sql": 6,
    "servers-postgresql": 6,
}  # fmt: skip
EVAL_S = 3000


def test_each_server_has_its_rows() -> None:
    """Each row has a wrong answer, a trap in its metadata, and three to fifteen calls."""
    for name, least in LEAST_ROWS.items():
        rows = [row for row in ROWS if row.env == name]
        assert len(rows) >= least, name
        assert len({(row.template, str(row.args)) for row in rows}) == len(rows)
    for row in ROWS:
        assert row.validation is not None
        assert row.validation.wrong_answers, row.id
        assert row.metadata["trap"], row.id
        assert 3 <= row.metadata["steps"] - 1 <= 15, row.id  # the last one is the answer


@pytest.mark.parametrize(
    ("only", "agent"),
    [
        # That over PostgreSQL is left out where it is missing.
        pytest.param("servers-sql-stock servers-postgresql-tracks", "oracle", id="one-oracle"),
        *(
            pytest.param(only, agent, id=f"{name}-{agent}", marks=lane)
            for name, only, lane in (
                ("sql", "servers-*sql-*", pytest.mark.long),
                ("all", "servers-*", pytest.mark.peers),
            )
            for agent in ("oracle", "nop")
        ),
    ],
)
def test_rewards_are_as_the_rows_say(agent: str, only: str, tmp_path: Path) -> None:
    """Each by an agent that is a client of our server, which starts the row's own."""
    rows = [row for row in ROWS if any(fnmatch(row.id, each) for each in only.split())]
    Taskset(rows, name="some").save(tmp_path / "some.jsonl")
    words = ["eval", "some.jsonl", "--agent", agent]
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", *words, "--store", str(tmp_path / "store.sqlite3")],
        capture_output=True, text=True, check=False, timeout=EVAL_S, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

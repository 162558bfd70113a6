"""Several server processes share the runs of a job, and one of them may be killed."""

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp import JobProgress, Store, evaluate
from hud_mcp.agents.agent import Agent
from hud_mcp.errors import HudMcpError
from hud_mcp.rollout.options import read_workers

pytestmark = pytest.mark.anyio

ENV = """
import os

from hud_mcp import Environment

env = Environment("letters")


@env.template()
async def count(word: str = "lamp"):
    with open(os.environ["SERVERS"], "a") as seen:
        seen.write(f"{os.getpid()} {word}\\n")
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.0
"""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve rows beside the file of their environment."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("SERVERS", str(tmp_path / "pids"))
    (tmp_path / "env.py").write_text(ENV)
    lines = [
        {"id": f"w{i}", "env": "letters", "template": "count", "args": {"word": "a" * (i + 1)}}
        for i in range(12)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


async def counts(agent: Agent) -> str:
    """Counts, but for one word."""
    word = word_of(agent)
    return "none" if word == "aaa" else str(len(word))


def word_of(agent: Agent) -> str:
    """Whose letters it is to count."""
    return agent.prompt.split("'")[1]


def servers_of(folder: Path) -> dict[str, int]:
    """The process that was last given each word."""
    lines = (folder / "pids").read_text().splitlines()
    return {word: int(pid) for pid, word in map(str.split, lines)}


@pytest.mark.parametrize(
    "store_url",
    [
        pytest.param("sqlite", marks=pytest.mark.sample),
        pytest.param("postgresql", marks=pytest.mark.long),
    ],
    indirect=True,
)
async def test_each_run_is_graded_once_where_a_worker_is_killed(
    rows: Path, store_url: str, tmp_path: Path
) -> None:
    """Both workers take runs; what the killed one had goes on, and the rewards are those of one."""
    begun, killed = Counter[str](), threading.Event()
    told: list[str] = []

    def watch(progress: JobProgress) -> None:
        if progress.event == "server_died":
            told.append(progress.text)
        if progress.event == "began" and progress.run is not None:
            begun[progress.run.task.id] += 1

    async def counts_after_a_kill(agent: Agent) -> str:
        if not killed.is_set():
            killed.set()
            os.kill(servers_of(tmp_path)[word_of(agent)], signal.SIGKILL)
        return await counts(agent)

    with anyio.fail_after(2 * PATIENCE_S):
        job = await evaluate(
            str(rows), counts_after_a_kill, workers=2, store=store_url, on_progress=watch
        )

    assert killed.is_set()
    assert len(set(servers_of(tmp_path).values())) > 1
    assert told
    assert ": The server died" in told[0]
    assert told[0].startswith("Worker ")
    assert [run.reward for run in job.runs] == [float(i != 2) for i in range(12)]
    assert set(begun.values()) == {1}
    opened = Store(store_url)
    found = [t.task.id for t in (await opened.load_job(job.id))[1] if t.reward is not None]
    await opened.close()
    assert sorted(found) == sorted(begun)


def test_a_number_of_workers_is_read() -> None:
    """It is a number from 1, or `auto`; anything else is refused with what to write."""
    assert read_workers(3) == 3
    assert read_workers("auto") == len(os.sched_getaffinity(0))
    assert read_workers(None) is None
    with pytest.raises(HudMcpError, match="give a number from 1"):
        read_workers(0)

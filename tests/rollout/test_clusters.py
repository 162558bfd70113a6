"""Jobs whose servers are on several machines, or are killed: nothing is lost, or graded twice."""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from postgresql import Cluster
from scaled import rewards, works, write_tasks
from waiting import PATIENCE_S

from hud_mcp import JobProgress, Store, evaluate

pytestmark = [pytest.mark.anyio, pytest.mark.scale, pytest.mark.browser]

PROGRAM = Path(__file__).with_name("ray_program.py")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> str:
    """The URL of a PostgreSQL database."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HUD_MCP_PICTURES", str(tmp_path / "pictures"))
    return cluster.new_schema()


async def test_two_of_three_workers_are_killed_at_random_moments(
    tmp_path: Path, database: str
) -> None:
    """Each of 1,040 tasks is graded once, with the reward that one server gives."""
    rows = write_tasks(tmp_path)
    moments = sorted(random.sample(range(50, 900), 2))
    killed: list[int] = []

    def kill(progress: JobProgress) -> None:
        if len(killed) < len(moments) and progress.ended >= moments[len(killed)]:
            servers = [
                child
                for child in psutil.Process().children()
                if "serve" in child.cmdline() and child.pid not in killed
            ]
            victim = random.choice(servers)
            killed.append(victim.pid)
            victim.kill()

    with anyio.fail_after(5 * PATIENCE_S):
        job = await evaluate(
            str(rows), works, workers=3, store=database, max_concurrent=12, on_progress=kill
        )

    assert len(killed) == 2, f"at {moments}"
    assert {run.task.id: run.reward for run in job.runs} == rewards(), f"killed at {moments}"
    opened = Store(database)
    graded = [t.task.id for t in (await opened.load_job(job.id))[1] if t.reward is not None]
    await opened.close()
    assert sorted(graded) == sorted(rewards())


def run_on_ray(python: Path, rows: Path, database: str, kind: str) -> dict[str, Any]:
    """Run the tasks on a cluster of three nodes, one of which is killed; what became of them."""
    done = subprocess.run(
        [python, PROGRAM, rows, database, kind],
        capture_output=True, text=True, check=False, timeout=6 * PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parent), "RAY_USAGE_STATS_ENABLED": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["workers"] == 3
    assert told["killed"] == 1
    assert any("The server died" in line for line in told["told"])
    return told


def test_one_of_three_nodes_of_a_ray_cluster_is_killed(
    tmp_path: Path, database: str, ray_python: Path
) -> None:
    """Each of 1,040 tasks is graded once, with the same rewards."""
    told = run_on_ray(ray_python, write_tasks(tmp_path), database, "alike")

    assert told["rewards"] == rewards(), told["told"]
    assert sorted(told["graded"]) == sorted(rewards())


def test_the_node_is_killed_that_alone_has_room_for_a_server(
    tmp_path: Path, database: str, ray_python: Path
) -> None:
    """Its next server takes what room there is, and every task is graded once all the same."""
    few = {"letters": 200, "pages": 40}

    told = run_on_ray(ray_python, write_tasks(tmp_path, **few), database, "scarce")

    assert told["rewards"] == rewards(**few), told["told"]
    assert sorted(told["graded"]) == sorted(rewards(**few))

"""A store with sessions of different ages, for the tests of those who look after one."""

import hashlib
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from records import TASK, begin, picture, receipt, step

from hud_mcp.record.job import Job
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store
from hud_mcp.values.model_turn import ModelTurn, TokenUsage

NOW = datetime.now(UTC)


async def run_ended(
    store: Store, name: str, days: float, *, job: str | None = None, **fields: Any
) -> None:
    """Record a session that ended so many days ago: two steps, two pictures, a turn, a log line."""
    at = NOW - timedelta(days=days)
    task = fields.pop("task", TASK)
    await begin(store, name, started_at=at, job_id=job, task=task, prompt="Do it.")
    for index, colour in enumerate((f"#{hashlib.sha256(name.encode()).hexdigest()[:6]}", "navy")):
        shot = picture(colour)
        seen = step(
            index,
            screenshot=ScreenshotRecord.of(shot),
            started_at=at,
            ended_at=at + timedelta(seconds=2),
        )
        await store.add_step(name, seen, shot)
    usage = TokenUsage(input=100, output=20)
    turn = ModelTurn(started_at=at, ended_at=at + timedelta(seconds=1), text="hm", usage=usage)
    await store.add_turns(name, [turn])
    await store.add_logs(name, [(at, "a line")], first=0)
    end = {"reward": 0.5, "started_at": at, "ended_at": at + timedelta(seconds=9), **fields}
    await store.end_session(name, receipt(trajectory=name, task=task.id, **end))


async def fill(store: Store) -> None:
    """Two old runs of one job, an old and a young one of another, and one that goes on."""
    tasks = [TASK, TASK.model_copy(update={"id": "b"})]
    for name in ("job-old", "job-mixed"):
        job = Job(id=name, name=name, created_at=NOW - timedelta(days=200))
        await store.add_job(job, tasks)
    await run_ended(store, "traj-old-a", 120, job="job-old")
    await run_ended(store, "traj-old-b", 110, job="job-old", task=tasks[1], reward=1.0)
    await run_ended(store, "traj-mixed-a", 120, job="job-mixed")
    await run_ended(store, "traj-mixed-b", 2, job="job-mixed", task=tasks[1])
    at = NOW - timedelta(days=300)
    await begin(store, "traj-open", started_at=at)
    await store.add_step("traj-open", step(0, started_at=at, ended_at=at))


def age_pictures(folder: Path, hours: float = 48) -> None:
    """Let all pictures be as old as that."""
    then = time.time() - hours * 3600
    for path in folder.rglob("*.png"):
        os.utime(path, (then, then))

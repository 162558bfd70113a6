"""A record to look into: jobs and sessions as a server would have written them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Screenshot

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

End = float | Outcome | None
"""A reward, an outcome without one, or no end."""


def receipt(name: str, task: Task, end: float | Outcome, begun: datetime) -> Receipt:
    """How a session ended, two seconds after it began."""
    graded = not isinstance(end, Outcome)
    return Receipt(
        trajectory=name,
        environment=task.env,
        task=task.id,
        template=task.template,
        outcome=Outcome.GRADED if graded else end,
        reward=end if graded else None,
        error=None if graded else f"{end.value}, and this is why",
        started_at=begun,
        ended_at=begun + timedelta(seconds=2),
        reward_policy="on_submit",
        package_version="0.1.0",
        task_digest="0" * 64,
        environment_digest="0" * 64,
    )


async def add_run(
    store: Store,
    name: str,
    task: Task,
    end: End,
    *,
    steps: Sequence[tuple[TrajectoryStep, Screenshot | None]] = (),
    prompt: str | None = None,
    logs: Sequence[str] = (),
    **fields: Any,
) -> None:
    """Record one session."""
    begun = fields.pop("started_at", AT)
    await store.add_session(
        Trajectory(id=name, environment=task.env, task=task, started_at=begun, **fields),
        secret_digest=f"digest of {name}",
        principal=None,
    )
    if prompt is not None:
        await store.set_prompt(name, prompt)
    for step, picture in steps:
        await store.add_step(name, step, picture)
    await store.add_logs(name, [(begun, line) for line in logs])
    if end is not None:
        await store.end_session(name, receipt(name, task, end, begun))


def record_job(path: Path, job: Job, tasks: Sequence[Task], ends: dict[str, list[End]]) -> None:
    """Record a job and the ends of each task's runs, in order, as `traj-JOB-TASK-NUMBER`."""

    async def write() -> None:
        store = Store(path)
        await store.add_job(job, tasks)
        for task in tasks:
            for i, end in enumerate(ends.get(task.id, [])):
                begun = AT + timedelta(minutes=i)
                name = f"traj-{job.id[4:]}-{task.id}-{i}"
                await add_run(store, name, task, end, job_id=job.id, started_at=begun)
        await store.close()

    anyio.run(write)


def record_run(path: Path, name: str, task: Task, end: End, **fields: Any) -> None:
    """Record a session that belongs to no job."""

    async def write() -> None:
        store = Store(path)
        await add_run(store, name, task, end, **fields)
        await store.close()

    anyio.run(write)

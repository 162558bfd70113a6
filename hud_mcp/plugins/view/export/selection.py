"""What is exported: the trajectories of a job, or one of them; read one after the other."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from hud_mcp.errors import DamagedRecord, SourceNotFound
from hud_mcp.plugins.view.export.summary import OnProgress, Tally
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store import Store

__all__ = ["Selection", "find_trajectories", "read", "select"]


@dataclass(frozen=True)
class Selection:
    """What is exported.

    Attributes:
        id: The job's or the trajectory's, whole.
        job: The job; None for a trajectory that belongs to none.
        trajectory_ids: In the order in which they began.
        whole_job: Whether a job was asked for, and not one trajectory.
        foreign: How many are left out, as they are not in the job's plan.
    """

    id: str
    job: Job | None
    trajectory_ids: tuple[str, ...]
    whole_job: bool
    foreign: int = 0


async def select(store: Store, source_id: str) -> Selection:
    """Find a job, or a trajectory, by its id or by how only its id begins.

    Raises:
        SourceNotFound: There is neither, or the job has no trajectory yet.
        StoreFailed: The store cannot be read.
    """
    job_id, trajectory_id = await _find(store, source_id)
    if job_id is None:
        return await _select_one(store, trajectory_id)
    job, ids = await store.load_job_ids(job_id)
    foreign = (await store.load_job_ids(job_id, foreign=True))[1]
    if not ids:
        raise SourceNotFound(f"Job {job_id!r} has no trajectories yet; there is nothing to export.")
    return Selection(job_id, job, tuple(ids), whole_job=True, foreign=len(foreign))


async def find_trajectories(store: Store, source_id: str) -> list[str]:
    """The ids of a job's trajectories, foreign ones too, or of the one that is named.

    Raises:
        SourceNotFound: There is neither.
        StoreFailed: The store cannot be read.
    """
    job_id, trajectory_id = await _find(store, source_id)
    if job_id is None:
        return [trajectory_id]
    _, ids = await store.load_job_ids(job_id)
    return ids + (await store.load_job_ids(job_id, foreign=True))[1]


async def _find(store: Store, text: str) -> tuple[str | None, str]:
    """The id of the job that is meant, or None and that of the trajectory.

    Raises:
        SourceNotFound: There is neither; of an id that says its kind, only that is looked for.
    """
    missing: list[str] = []
    if not text.startswith("traj-"):
        try:
            return await store.find_job_id(text), ""
        except SourceNotFound as exc:
            missing.append(str(exc))
    if not text.startswith("job-"):
        try:
            return None, await store.find_trajectory_id(text)
        except SourceNotFound as exc:
            missing.append(str(exc))
    raise SourceNotFound(" ".join(dict.fromkeys(missing)))  # an empty store says the same twice


async def _select_one(store: Store, trajectory_id: str) -> Selection:
    found = await store.load_trajectory(trajectory_id)
    job = (await store.load_job_ids(found.job_id))[0] if found.job_id else None
    return Selection(trajectory_id, job, (trajectory_id,), whole_job=False)


async def read(
    store: Store, selection: Selection, tally: Tally, on_progress: OnProgress | None
) -> AsyncIterator[Trajectory]:
    """Read what was selected, holding one trajectory at a time.

    One that a hand has damaged is named in the tally and left out.

    Raises:
        StoreFailed: The store cannot be read, or the only trajectory is damaged.
    """
    total = len(selection.trajectory_ids)
    for number, trajectory_id in enumerate(selection.trajectory_ids, 1):
        try:
            trajectory = await store.load_trajectory(trajectory_id, turns=True)
        except DamagedRecord as exc:
            if not selection.whole_job:
                raise
            tally.damaged.append(f"{trajectory_id}: {exc}")
        else:
            tally.add(trajectory)
            yield trajectory
        if on_progress is not None:
            on_progress(number, total)

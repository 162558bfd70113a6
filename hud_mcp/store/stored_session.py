"""Sessions that a new server resumes: whose they are, and what the store keeps of them.

Each function takes an open connection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.store.lease import Lease
from hud_mcp.store.reading import load_trajectories, session_row

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = [
    "StoredSession",
    "WaitingSession",
    "load_session",
    "session_by_secret",
    "waiting_sessions",
]


@dataclass(frozen=True)
class StoredSession:
    """What a server needs to go on with a session that another one began.

    Attributes:
        trajectory: The whole record.
        principal: Who started it.
        secret_digest: The SHA-256 of its id.
        reward_policy: The one that it was started under.
        environment_digest: Of the source that it was started with.
        live_token: Of its live page.
        snapshot: The world's last one, or None.
        snapshot_step: The index of the step after which it was taken; -1 before any; `BEHIND`
            where the world was used since in a way that no step repeats.
        lines: How many lines its own log has.
        attempt: Which of its principal's starts of the task it is; None of before it was counted.
        unflushed: Whether steps may be missing that its agent was told of.
    """

    trajectory: Trajectory
    principal: str | None
    secret_digest: str
    reward_policy: str
    environment_digest: str
    live_token: str | None
    snapshot: bytes | None
    snapshot_step: int
    lines: int
    attempt: int | None = None
    unflushed: bool = False


@dataclass(frozen=True)
class WaitingSession:
    """A session that no living server runs.

    Attributes:
        trajectory_id: The record's id.
        environment: Its environment's name.
        principal: Who started it.
        has_prompt: Whether its start was ever told to anybody.
        answered: Whether it waits for its grade.
        since: When its last server let go of it, or gave its last sign of life.
        started_at: When it began.
        unflushed: Whether steps may be missing that its agent was told of.
    """

    trajectory_id: str
    environment: str
    principal: str | None
    has_prompt: bool
    answered: bool
    since: datetime
    started_at: datetime
    unflushed: bool = False


def load_session(
    connection: "Connection", screenshots: Path, trajectory_id: str
) -> StoredSession | None:
    """What is needed to go on with a session; None where there is none of this id."""
    row = session_row(connection, trajectory_id)
    if row is None:
        return None
    found = load_trajectories(connection, screenshots, ids=[trajectory_id])
    step, data = _snapshot(connection, trajectory_id)
    return StoredSession(
        trajectory=found[0],
        principal=row.principal,
        secret_digest=row.secret_digest,
        reward_policy=row.reward_policy or "hidden",
        environment_digest=row.environment_digest or "",
        live_token=row.live_token,
        snapshot=data,
        snapshot_step=step,
        lines=_count_lines(connection, trajectory_id),
        attempt=row.attempt,
        unflushed=bool(row.unflushed),
    )


def session_by_secret(connection: "Connection", secret_digest: str) -> "Row[Any] | None":
    """A session's row by the hash of its id."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    return connection.execute(
        select(sessions).where(sessions.c.secret_digest == secret_digest)
    ).one_or_none()


def waiting_sessions(
    connection: "Connection", lease: Lease, environments: Sequence[str]
) -> list[WaitingSession]:
    """The sessions that go on and that no living server owns; buries dead servers."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    going_on = sessions.c.ended_at.is_(None)
    owners = select(sessions.c.owner).where(going_on, sessions.c.owner.is_not(None)).distinct()
    for owner in connection.execute(owners).scalars().all():
        if not lease.is_alive(connection, owner):
            lease.bury(connection, owner)
    waiting = select(sessions).where(
        going_on, sessions.c.owner.is_(None), sessions.c.environment.in_(list(environments))
    )
    return [_waiting(row) for row in connection.execute(waiting.order_by(sessions.c.started_at))]


def _snapshot(connection: "Connection", trajectory_id: str) -> tuple[int, bytes | None]:
    """A session's last snapshot and the step after which it was taken; (-1, None) without one."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import snapshots  # noqa: PLC0415  # the same

    row = connection.execute(
        select(snapshots.c.step, snapshots.c.data).where(snapshots.c.session_id == trajectory_id)
    ).one_or_none()
    return (-1, None) if row is None else (row.step, row.data)


def _count_lines(connection: "Connection", trajectory_id: str) -> int:
    """How many lines a session's own log has."""
    from sqlalchemy import func, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import logs  # noqa: PLC0415  # the same

    last = connection.execute(
        select(func.max(logs.c.line)).where(logs.c.session_id == trajectory_id)
    ).scalar_one()
    return 0 if last is None else last + 1


def _waiting(row: "Row[Any]") -> WaitingSession:
    return WaitingSession(
        trajectory_id=row.id,
        environment=row.environment,
        principal=row.principal,
        has_prompt=row.prompt is not None,
        answered=row.answered_at is not None,
        since=row.released_at or row.started_at,
        started_at=row.started_at,
        unflushed=bool(row.unflushed),
    )

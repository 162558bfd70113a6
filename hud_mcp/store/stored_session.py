"""Sessions in a store, with the facts that a new server needs to resume them."""

from dataclasses import dataclass
from datetime import datetime

from hud_mcp.record.trajectory import Trajectory


@dataclass(frozen=True)
class SessionFacts:
    """Facts that decide how a session goes on, as columns: programs write logs too.

    Attributes:
        was_stopped: Whether the last server that released it was stopped, and did not die.
        overloaded: The number of its calls that the overloaded machine refused.
        lost_gradings: The number of gradings that ended with their server.
        failed_in_grading: Whether its grading has failed, and is made again.
        died_in_grading: Whether its world has died under its grader.
    """

    was_stopped: bool = False
    overloaded: int = 0
    lost_gradings: int = 0
    failed_in_grading: bool = False
    died_in_grading: bool = False


@dataclass(frozen=True)
class StoredSession:
    """The facts that a server needs to resume a session that another one began.

    Attributes:
        trajectory: The whole record.
        principal: The principal that started it.
        secret_digest: The SHA-256 of its id.
        reward_policy: The reward policy at its start.
        environment_digest: The digest of the source at its start.
        live_token: The token of its live page.
        snapshot: The world's last snapshot, or None.
        snapshot_step: The index of the step before the snapshot; -1 before any step; `BEHIND` if
            the world was used since in a way that no step repeats.
        lines: The number of lines in its own log.
        attempt: The number of this start among those of its task; None for one before the count.
        unflushed: Whether steps may be missing that its agent has seen.
        facts: The facts that decide how it goes on.
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
    facts: SessionFacts = SessionFacts()


@dataclass(frozen=True)
class OwnSession:
    """A session in its caller's list."""

    trajectory_id: str
    task: str
    environment: str
    started_at: datetime
    has_ended: bool


@dataclass(frozen=True)
class WaitingSession:
    """A session that no living server runs.

    Attributes:
        trajectory_id: The record's id.
        environment: Its environment's name.
        principal: The principal that started it.
        has_prompt: Whether a caller was ever told of its start.
        answered: Whether it waits for its grade.
        since: The time of its release, or of its last server's last sign of life.
        started_at: The time of its beginning.
        unflushed: Whether steps may be missing that its agent has seen.
    """

    trajectory_id: str
    environment: str
    principal: str | None
    has_prompt: bool
    answered: bool
    since: datetime
    started_at: datetime
    unflushed: bool = False

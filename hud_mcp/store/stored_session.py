"""Sessions that a new server resumes: whose they are, and what the store keeps of them."""

from dataclasses import dataclass
from datetime import datetime

from hud_mcp.record.trajectory import Trajectory

__all__ = ["OwnSession", "SessionFacts", "StoredSession", "WaitingSession"]


@dataclass(frozen=True)
class SessionFacts:
    """Facts that decide how a session goes on. Each is a column: a log is prose, and others's too.

    Attributes:
        was_stopped: Whether the last server that let go of it was stopped, and did not die.
        overloaded: How many of its calls the overloaded machine refused.
        lost_gradings: How often its server ended while its answer was graded.
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
    """What a server needs to resume a session that another one began.

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
        facts: What else is known of what has happened to it.
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
    """A session as its caller finds it again.

    Attributes:
        trajectory_id: The record's id.
        task: The task's id.
        environment: Its environment's name.
        started_at: When it began.
        has_ended: Whether it is over.
    """

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

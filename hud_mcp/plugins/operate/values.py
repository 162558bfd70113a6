"""The results of a store's upkeep, and other replicas, their sessions and their connections."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

OnProgress = Callable[[int, int], None]
"""A function that gets how much is done, and how much there is."""


@dataclass(frozen=True)
class Holdings:
    """The holdings of a store.

    Attributes:
        url: Its URL, without a password.
        version: The version of its tables.
        jobs: The number of jobs.
        sessions: The numbers of sessions by outcome; `unfinished` ones have none.
        steps, turns, lines: Their numbers; lines are those of logs.
        pruned: The number of sessions with pruned parts.
        oldest, newest: The starts of the first session and the last; None without one.
        servers: The living server processes.
        held: The unfinished sessions that they run.
        waiting: The unfinished sessions without a living server.
        database_bytes: The size of the database with its log.
        free_bytes: The part that `vacuum` would give back; None if it is unknown.
        folder: The folder of its pictures.
        pictures, picture_bytes: Their number there, and their size.
        unused, unused_bytes: The same of those that no known store of the folder refers to.
        shared_with: Other stores that keep their pictures in the same folder.
    """

    url: str
    version: int
    jobs: int
    sessions: dict[str, int]
    steps: int
    turns: int
    lines: int
    pruned: int
    oldest: datetime | None
    newest: datetime | None
    servers: int
    held: int
    waiting: int
    database_bytes: int
    free_bytes: int | None
    folder: Path
    pictures: int
    picture_bytes: int
    unused: int
    unused_bytes: int
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """Something that is damaged, or left over.

    Attributes:
        kind: A word for it, such as `missing picture`.
        what: Where it is, and what is wrong.
        remedy: What to do about it.
        harmless: Whether nothing is lost by it.
    """

    kind: str
    what: str
    remedy: str
    harmless: bool = False


@dataclass(frozen=True)
class Vacuumed:
    """The space that `vacuum` gave back, with sentences about failed parts and what to do next."""

    pictures: int = 0
    picture_bytes: int = 0
    database_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pruned:
    """The rows and files that `prune` removed, or would remove.

    Attributes:
        runs: The number of trajectories.
        jobs: The number of jobs without a grade afterwards.
        steps, turns, lines: Numbers of rows.
        pictures, picture_bytes: The picture files that nothing else refers to, and their size.
        notes: Sentences about failed parts, with what to do next.
    """

    runs: int = 0
    jobs: int = 0
    steps: int = 0
    turns: int = 0
    lines: int = 0
    pictures: int = 0
    picture_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Copied:
    """The rows and pictures that `copy` wrote and verified.

    `missing` is the number of pictures that the original lacks; `resumed` says that it finished an
    earlier copy.
    """

    rows: dict[str, int] = field(default_factory=dict[str, int])
    pictures: int = 0
    missing: int = 0
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class OtherReplica:
    """A replica that calls may be forwarded to, by the name of its process in the store.

    A draining one begins no sessions any more, and ends soon.
    """

    server_id: str
    advertised: str
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """The process that runs a session.

    Attributes:
        key: The hash of the session's id.
        is_over: Whether it has ended.
        owner: The process that runs it, or ended it; None if it waits in its record.
        replica: The owner as a replica; None if it is none, or has left.
    """

    key: str
    is_over: bool
    owner: str | None
    replica: OtherReplica | None


@dataclass(frozen=True, slots=True)
class KnownConnection:
    """A connection of the 2025-11-25 era: its caller's hash, and its `initialize` parameters."""

    caller: str
    introduction: Mapping[str, Any]

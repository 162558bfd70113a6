"""The results of a store's upkeep."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

__all__ = ["Copied", "Finding", "Holdings", "Pruned", "Vacuumed"]


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

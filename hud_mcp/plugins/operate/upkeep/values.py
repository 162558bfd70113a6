"""What is told of a store by those who keep it for years."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

__all__ = ["Copied", "Finding", "Holdings", "Pruned", "Vacuumed"]


@dataclass(frozen=True)
class Holdings:
    """What a store holds.

    Attributes:
        url: Its URL, without a password.
        version: Of its tables.
        jobs: How many there are.
        sessions: How many sessions, by how they ended; `unfinished` are those that did not.
        steps, turns, lines: How many in all; lines are those of logs.
        pruned: From how many sessions something was pruned.
        oldest, newest: When the first session began, and the last; None without one.
        servers: How many server processes are alive on it.
        held: How many unfinished sessions they run.
        waiting: How many unfinished sessions no living server runs.
        database_bytes: What the database takes, its log included.
        free_bytes: What `vacuum` would give back of that; None where nobody can tell.
        folder: Where its pictures lie.
        pictures: How many pictures lie there.
        picture_bytes: What they take.
        unused: How many of them no store refers to that is known to use the folder.
        unused_bytes: What those take.
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
    """What `vacuum` has given back.

    Attributes:
        pictures: How many files of pictures were removed.
        picture_bytes: What they took.
        database_bytes: By how much the database has become smaller.
        notes: What could not be done, and what to do about it.
    """

    pictures: int = 0
    picture_bytes: int = 0
    database_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pruned:
    """What `prune` has removed, or would remove.

    Attributes:
        runs: From how many trajectories.
        jobs: How many jobs have no grade left by it.
        steps, turns, lines: How many.
        pictures: How many files of pictures, which nothing else refers to.
        picture_bytes: What they took.
        notes: What could not be done, and what to do about it.
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
    """What `copy` has brought to another store, and found there again.

    Attributes:
        rows: How many rows each table has.
        pictures: How many pictures lie with the copy.
        missing: How many pictures the original itself does not have.
        resumed: Whether an earlier copy was finished.
    """

    rows: dict[str, int] = field(default_factory=dict[str, int])
    pictures: int = 0
    missing: int = 0
    resumed: bool = False

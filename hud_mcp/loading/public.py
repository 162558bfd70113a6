"""Public sets of tasks: found by their names in the registry, and imported into the user's cache.

A plugin has the sets, their places and their formats. The core asks one for its rows.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol

import orjson
from platformdirs import user_cache_path

from hud_mcp.environment.task import Task
from hud_mcp.errors import SourceNotFound
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.registry import Entries, names_of, table

__all__ = [
    "SETS",
    "Choice",
    "Counted",
    "Imported",
    "PublicSet",
    "count",
    "find_set",
    "import_set",
    "imported_file",
]

Report = Callable[[str], None]

SETS: Mapping[str, "PublicSet"] = Entries("sets")
"""The public sets by their titles; each loads when it is read."""


@dataclass(frozen=True)
class Choice:
    """The rows of a public set that are wanted.

    Attributes:
        part: A subset, such as `Allrecipes` or `level1`; None for all.
        hosts: Places for hosts or placeholders of the rows: `{"www.imdb.com":
            "http://127.0.0.1:8001"}`.
        gym: The environment of the rows, for a set that names none.
        seed: The seed of a generated set.
        size: The number of rows of a generated set.
    """

    part: str | None = None
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    gym: str | None = None
    seed: int = 0
    size: int = 100


class PublicSet(Protocol):
    """A set in the table `sets` of a plugin.

    Attributes:
        title: Its name; a part of it is `TITLE-PART`.
        about: Its tasks in a few words.
        page: The place where a person finds it.
        licence: The licence of its rows.
    """

    title: str
    about: str
    page: str
    licence: str

    @property
    def is_fetched(self) -> bool:
        """Whether this machine has files of it."""
        ...

    def load(
        self,
        choice: Choice,
        *,
        place: str | Path | None = None,
        refresh: bool = False,
        report: Report | None = None,
    ) -> tuple[list[Task], tuple[str, ...]]:
        """Return the chosen rows, and a sentence about each oddity of the files.

        Args:
            choice: The rows that are wanted.
            place: A folder or an address that has the files.
            refresh: Whether to fetch files again, and accept changes.
            report: Gets lines about the progress.

        Raises:
            SourceNotFound: A file cannot be had; the text says where to put it.
            InvalidTask: There is no such part, or a file is not one of this set.
            NotInstalled: The set needs an optional package.
        """
        ...


@dataclass(frozen=True)
class Counted:
    """The numbers of rows.

    Attributes:
        rows: All rows.
        runnable: The rows that run here.
        needs: The needs of runnable rows beside this machine, such as `network`, with their rows.
        reasons: The first reason of each row that does not run here, each with its rows.
        besides: The further reasons of these rows, each with its rows.
    """

    rows: int
    runnable: int
    needs: Mapping[str, int]
    reasons: Mapping[str, int]
    besides: Mapping[str, int]


@dataclass(frozen=True)
class Imported:
    """The outcome of an import.

    Attributes:
        name: The name of the set, with its part.
        published: The set.
        tasks: Its rows.
        counted: Their numbers.
        notes: A sentence about each oddity of the files.
    """

    name: str
    published: PublicSet
    tasks: list[Task]
    counted: Counted
    notes: tuple[str, ...]


def find_set(name: str) -> tuple[PublicSet, str | None] | None:
    """Return the set of a name, and the part that the name has; None if no set has it.

    Case does not count: `GAIA-level1` and `gaia-level1` are one.
    """
    for titles in (table("sets"), names_of("sets")):
        for title in titles:
            if name.casefold() == title.casefold():
                return SETS[title], None
            if name.casefold().startswith(f"{title.casefold()}-") and len(name) > len(title) + 1:
                return SETS[title], name[len(title) + 1 :]
    return None


def import_set(
    name: str,
    choice: Choice | None = None,
    *,
    place: str | Path | None = None,
    refresh: bool = False,
    report: Report | None = None,
) -> Imported:
    """Import a public set by its name, such as `WebVoyager` or `GAIA-level1`.

    Args:
        name: The set, or a part of it. A part in the name counts more than that of `choice`.
        choice: The rows that are wanted.
        place: A folder or an address that has the files.
        refresh: Whether to fetch files again, and accept changes.
        report: Gets lines about the progress.

    Raises:
        SourceNotFound: There is no such set, or a file cannot be had; the text says where to put
            it.
        InvalidTask: There is no such part, or a file is not one of this set.
        NotInstalled: The set needs an optional package.
    """
    found = find_set(name)
    if found is None:
        titles = ", ".join(names_of("sets"))
        raise SourceNotFound(f"There is no public set {name!r}. There are: {titles}.")
    public, part = found
    wanted = choice or Choice()
    tasks, notes = public.load(
        replace(wanted, part=part or wanted.part), place=place, refresh=refresh, report=report
    )
    return Imported(name, public, tasks, count(tasks), notes)


def imported_file(imported: Imported) -> Path:
    """Write an imported set into the cache, and return the file; the next import replaces it."""
    folder = user_cache_path("hud-mcp") / "tasksets"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', imported.name)}.jsonl"
    data = b"".join(orjson.dumps(task.row) + b"\n" for task in imported.tasks)
    # Two processes may import one set at once: each writes a file of its own name first.
    with NamedTemporaryFile(dir=folder, prefix=path.stem, suffix=".new", delete=False) as new:
        new.write(data)
    Path(new.name).replace(path)
    return path


def count(tasks: Iterable[Task]) -> Counted:
    """Count rows, their needs, and the reasons why some do not run here."""
    every = list(tasks)
    parts = [why.split("; ") for task in every if (why := why_not_runnable(task)) is not None]
    reasons = Counter(each[0] for each in parts)
    besides = Counter(other for each in parts for other in dict.fromkeys(each[1:]))
    runnable = [task for task in every if why_not_runnable(task) is None]
    needs = Counter(str(need) for task in runnable for need in task.metadata.get("needs", ()))
    by_number = (dict(each.most_common()) for each in (reasons, besides))
    return Counted(len(every), len(runnable), needs, *by_number)

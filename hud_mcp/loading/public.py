"""Public sets of tasks: found in the registry, and imported into the user's cache."""

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

Report = Callable[[str], None]

SETS: Mapping[str, "PublicSet"] = Entries("sets")
"""The public sets by their titles; each loads when it is read."""


@dataclass(frozen=True)
class Choice:
    """The wanted rows of a public set.

    `hosts` has places for hosts or placeholders: `{"www.imdb.com": "http://127.0.0.1:8001"}`. `gym`
    is the environment of a set that names none. `seed` and `size` are those of a generated set.
    """

    part: str | None = None
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    gym: str | None = None
    seed: int = 0
    size: int = 100


class PublicSet(Protocol):
    """A set in the table `sets` of a plugin; a part of it is `TITLE-PART`."""

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

        A refresh fetches files again, and accepts changes. `report` gets lines about the progress.

        Raises:
            SourceNotFound: A file cannot be had; the text says where to put it.
            InvalidTask: There is no such part, or a file is not one of this set.
            NotInstalled: The set needs an optional package.
        """
        ...


@dataclass(frozen=True)
class Counted:
    """The numbers of rows: all, those that run here, and their needs beside this machine.

    `reasons` has the first reason of each row that does not run here, `besides` the further ones.
    """

    rows: int
    runnable: int
    needs: Mapping[str, int]
    reasons: Mapping[str, int]
    besides: Mapping[str, int]


@dataclass(frozen=True)
class Imported:
    """The outcome of an import, with a sentence about each oddity of the files."""

    name: str
    published: PublicSet
    tasks: list[Task]
    counted: Counted
    notes: tuple[str, ...]


def find_set(name: str) -> tuple[PublicSet, str | None] | None:
    """Return the set of a name in any case, and the part that the name has; or None."""
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

    A part in the name counts more than that of `choice`.

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

"""A public set by its name: from its files to a taskset of this machine."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import orjson

from hud_mcp.environment.task import Task
from hud_mcp.errors import NotInstalled
from hud_mcp.loading.choice import Choice, Counted, choose_part, count
from hud_mcp.loading.published import Published, find_published
from hud_mcp.plugins.sets.files import Files, cache_folder, open_files

__all__ = ["Imported", "import_published", "imported_file"]


class _Importer(Protocol):
    """What a module of this folder that reads a set has."""

    def read(self, files: Files, choice: Choice) -> list[Task]:
        """The rows of a set.

        Raises:
            SourceNotFound: A file cannot be had.
            InvalidTask: A file is not what such a set has.
        """
        ...


@dataclass(frozen=True)
class Imported:
    """What came of an import.

    Attributes:
        name: What the set is called.
        published: Where it comes from.
        tasks: Its rows.
        counted: How many of them run here.
        notes: What a person should know of it, a sentence each.
    """

    name: str
    published: Published
    tasks: list[Task]
    counted: Counted
    notes: tuple[str, ...]


def import_published(
    name: str,
    choice: Choice | None = None,
    *,
    place: str | Path | None = None,
    refresh: bool = False,
    report: Callable[[str], None] | None = None,
) -> Imported | None:
    """Import a set that people know by name; None where the name is no such set's.

    Args:
        name: `WebVoyager`, `GAIA-level1`.
        choice: What of it is wanted, and how; the part that the name says counts.
        place: A folder or an address that has its files; see `open_files`.
        refresh: Whether files that were fetched before are fetched again.
        report: Told of the progress, a line for people.

    Raises:
        SourceNotFound: A file cannot be had; the text says where to put it.
        InvalidTask: There is no such part, or a file is not what such a set has.
        NotInstalled: The set needs an optional package.
    """
    found = find_published(name)
    if found is None:
        return None
    published, part = found
    wanted = replace(choice or Choice(), part=part or (choice.part if choice else None))
    files = open_files(published, place=place, refresh=refresh, report=report)
    module = cast("_Importer", import_module(f"hud_mcp.plugins.sets.{published.importer}"))
    try:
        every = module.read(files, wanted)
    except ModuleNotFoundError as exc:
        if published.extra is None:
            raise
        raise NotInstalled(
            f"{published.title} needs {exc.name}: pip install 'hud-mcp[{published.extra}]'."
        ) from exc
    tasks = choose_part(every, wanted.part, published.title)
    return Imported(name, published, tasks, count(tasks), tuple(files.notes))


def imported_file(name: str, imported: Imported) -> Path:
    """Write an imported set into the cache, and return the file; the next import replaces it."""
    folder = cache_folder() / "tasksets"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.jsonl"
    new = path.with_suffix(".new")
    new.write_bytes(b"".join(orjson.dumps(task.row) + b"\n" for task in imported.tasks))
    new.replace(path)
    return path

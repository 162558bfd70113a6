"""Sets of tasks by the names that a person gives: one, several, or `all` that are ready to run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.set_notes import SetNotes, read_notes
from hud_mcp.loading.source import find_taskset, shipped_folder

__all__ = ["ALL", "FoundSets", "NamedSets", "find_sets", "is_all", "ready_sets", "shipped_sets"]

ALL = "all"
"""What stands for every shipped set that needs nothing more and has tasks of its own."""

_ENDINGS = (".jsonl", ".json", ".py")


@dataclass(frozen=True)
class NamedSets:
    """Sets that were read.

    Attributes:
        tasks: Those of all sets, as one; `tasks.set_of` tells them apart.
        files: Where each set is, by its name.
    """

    tasks: Taskset
    files: Mapping[str, Path]


@dataclass(frozen=True)
class FoundSets:
    """Sets that were found, and not yet read.

    Attributes:
        name: What they are called together.
        paths: The file or the folder of each.
        left_out: Where `all` is among them: the sets that it leaves out, and why, in a line.
    """

    name: str
    paths: tuple[Path, ...]
    left_out: str = ""

    def read(self) -> NamedSets:
        """Read them; an author's Python file runs here.

        Raises:
            InvalidTask: Naming the file, the line and the field of the first bad row; or two sets
                have one name, or one task.
            InvalidEnvironment: A Python file does not load.
        """
        read = [Taskset.from_file(path) for path in self.paths]
        alone = len(read) == 1 and self.name != ALL
        tasks = read[0] if alone else Taskset.joined(read, self.name)
        return NamedSets(
            tasks, {part.name: path for part, path in zip(read, self.paths, strict=True)}
        )


def find_sets(names: Sequence[str]) -> FoundSets:
    """Find sets by name or path, each as `find_taskset` does; `all` stands for several.

    Raises:
        SourceNotFound, InvalidTask, NotInstalled: As `find_taskset` raises them.
    """
    paths: dict[Path, Path] = {}
    left_out = ""
    for name in names:
        found: Iterable[Path] = (find_taskset(name),) if not is_all(name) else ready_sets()
        left_out = left_out if not is_all(name) else _left_out()
        for path in found:
            paths.setdefault(path.resolve(), path)
    if not paths:
        raise InvalidTask("Name a set of tasks; `hud-mcp tasks` lists them.")
    return FoundSets(", ".join(names), tuple(paths.values()), left_out)


def is_all(name: str) -> bool:
    """Whether a name means all sets: a file of that name in the working folder is nearer."""
    return name == ALL and not any(Path(f"{ALL}{end}").exists() for end in ("", *_ENDINGS))


def shipped_sets() -> dict[str, SetNotes]:
    """The sets that come with the package, in their notes' order, and what these say."""
    folder = shipped_folder("taskset_data")
    there = sorted(path.stem for path in folder.glob("*.jsonl"))
    notes = read_notes(folder)
    ordered = [*(name for name in notes if name in there), *(n for n in there if n not in notes)]
    return {name: notes.get(name, SetNotes()) for name in ordered}


def ready_sets() -> list[Path]:
    """The files of those that `all` stands for."""
    folder = shipped_folder("taskset_data")
    return [folder / f"{name}.jsonl" for name, notes in shipped_sets().items() if notes.is_ready]


def _left_out() -> str:
    """The sets that `all` does not have, by why."""
    why: dict[str, list[str]] = {}
    for name, notes in shipped_sets().items():
        if notes.needs:
            why.setdefault(f"need {' and '.join(notes.needs)}", []).append(name)
        elif notes.repeats is not None:
            why.setdefault(f"repeat {notes.repeats}", []).append(name)
    parts = [f"{', '.join(names)} ({reason})" for reason, names in why.items()]
    return f"Left out: {'; '.join(parts)}." if parts else ""

"""Sets of tasks, and their authors' notes in the file `tasksets.toml` beside them."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import anyio.to_thread
import orjson
from pydantic import Field, TypeAdapter, ValidationError

from hud_mcp.base.text import read_text_bytes, read_text_file
from hud_mcp.environment.rows import task_files
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.loading.public import Choice, find_set, import_set, imported_file
from hud_mcp.loading.source import shipped_folder
from hud_mcp.registry import names_of, service
from hud_mcp.values.action import Value

__all__ = ["load_taskset"]

NOTES = "tasksets.toml"

Report = Callable[[str], None]


class SetNotes(Value):
    """What its author says of one set of tasks."""

    description: str = Field(default="", description="One line for people.")
    needs: tuple[str, ...] = Field(
        default=(),
        description="What it needs beside hud-mcp: an extra, such as `hud-mcp[miniwob]`; "
        "`network`; an account.",
    )
    repeats: str | None = Field(
        default=None, description="The set that has the same tasks, in another form."
    )

    @property
    def is_ready(self) -> bool:
        """Whether it needs nothing more, and has tasks of its own: `all` has such sets."""
        return not self.needs and self.repeats is None


_NOTES: TypeAdapter[dict[str, SetNotes]] = TypeAdapter(dict[str, SetNotes])


def read_notes(folder: Path) -> Mapping[str, SetNotes]:
    """Return the notes on the sets of a folder, by their names; empty without such a file.

    Raises:
        InvalidTask: The file is invalid; the text names it and the fault.
    """
    file = folder / NOTES
    if not file.is_file():
        return {}
    try:
        raw: dict[str, Any] = tomllib.loads(read_text_file(file))
        return _NOTES.validate_python(raw)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InvalidTask(f"{file}: this file is not TOML: {exc}.") from None
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        known = ", ".join(SetNotes.model_fields)
        raise InvalidTask(f"{file}: {at}: {first['msg']}. A set has: {known}.") from None


ALL = "all"
"""The name of all shipped sets together that need nothing more and have tasks of their own."""

_ENDINGS = (".jsonl", ".json", ".py")


@dataclass(frozen=True)
class NamedSets:
    """Sets that were read: all tasks as one set, and the file of each set by its name."""

    tasks: Taskset
    files: Mapping[str, Path]


@dataclass(frozen=True)
class FoundSets:
    """Sets that were found, and not yet read; a line tells the ones that `all` leaves out."""

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


def find_taskset(name: str) -> Path:
    """Return the file of a taskset by its path or its name (`quickstart`).

    A name is that of a file in the working folder, without its ending; of a shipped set; or of a
    public one, which is imported into the user's cache.

    Raises:
        SourceNotFound: There is none, or a file of a public set cannot be had.
        InvalidTask: A public set has no such part, or its files are not what they were.
        NotInstalled: A public set needs an optional package.
    """
    path = Path(name)
    if path.is_file() or (path.is_dir() and task_files(path)):
        return path
    beside = [Path(f"{name}{suffix}") for suffix in _ENDINGS]
    if found := next((each for each in beside if name and each.is_file()), None):
        return found
    folder = shipped_folder("taskset_data")
    # `taskset_data/quickstart.jsonl` works from anywhere, as the README shows it.
    inside = path.name if path.parent.name in ("", "taskset_data") else None
    if inside and not path.is_absolute():
        wanted = inside.removesuffix(".jsonl").casefold()
        for candidate in folder.glob("*.jsonl"):
            if candidate.stem.casefold() == wanted:
                return candidate
    if find_set(name) is not None:
        return imported_file(import_set(name))
    known = [*sorted(p.stem for p in folder.glob("*.jsonl")), *names_of("sets")]
    is_folder = bool(name) and path.is_dir()
    bare = " The folder has neither an env.py nor a .jsonl or .json file." if is_folder else ""
    raise SourceNotFound(
        f"There is no taskset at {name!r}.{did_you_mean(name, known)}{bare} Name a file of tasks "
        "(.jsonl, .json or .py) or a set: `hud-mcp tasks` lists the shipped sets, and `hud-mcp "
        "taskset list` the public ones."
    )


async def load_taskset(
    name: str | Path,
    *,
    split: str | None = None,
    hosts: Mapping[str, str] | None = None,
    gym: str | None = None,
    seed: int = 0,
    size: int = 100,
    refresh: bool = False,
    report: Report | None = None,
) -> Taskset:
    """Load a taskset.

    Args:
        name: A shipped set (`quickstart`), or `all` that need nothing more; a file of tasks
            (`.jsonl`, `.json`, `.py`), a folder of such files, a name whose file is in the
            working folder, an address of a file, or a public set that people know, whole or in
            part: `WebVoyager`, `GAIA-level1`, `ReasoningGym-leg_counting`. A public set is
            fetched once, into the user's cache; `HUD_MCP_DATASETS`, a folder or an address,
            stands for its published place.
        split: Only the rows of one split or difficulty, such as `validation` or `hard`.
        hosts: Replacements of hosts or placeholders in the rows of a public set.
        gym: The environment of the rows, for a public set that names none.
        seed: The seed of a generated set.
        size: The number of rows of a generated set.
        refresh: Whether to fetch files again, and accept changes.
        report: Gets lines about the progress and about remarks for people.

    Raises:
        SourceNotFound: There is none, or a file cannot be had; the text lists what there is, or
            says where the file comes from and where to put it.
        InvalidTask: Naming the file, the line and the field of the first bad row; or there is no
            such part or split.
        InvalidEnvironment: A Python file does not load.
        NotInstalled: The set needs an optional package.

    If this call is cancelled, the next call continues from the files fetched so far.
    """
    choice = Choice(hosts=dict(hosts or {}), gym=gym, seed=seed, size=size)
    load = partial(_load, str(name), choice, refresh=refresh, report=report)
    path = Path(name)
    # An author's Python file runs where its caller runs.
    is_program = path.suffix == ".py" or (path / "env.py").is_file()
    found = load() if is_program else await anyio.to_thread.run_sync(load)
    return found if split is None else found.split(split)


def _load(name: str, choice: Choice, *, refresh: bool, report: Report | None) -> Taskset:
    if name.startswith(("http://", "https://")):
        file: Path = service("fetched file")(name, refresh=refresh, report=report)
        return Taskset.from_file(file)
    is_near = Path(name).exists() or any(Path(f"{name}{end}").is_file() for end in _ENDINGS)
    if not is_near and find_set(name) is not None:
        return _imported(name, choice, refresh=refresh, report=report)
    return find_sets([name]).read().tasks


def _imported(name: str, choice: Choice, *, refresh: bool, report: Report | None) -> Taskset:
    done = import_set(name, choice, refresh=refresh, report=report)
    if report is not None:
        for note in done.notes:
            report(note)
    return Taskset(done.tasks, name=done.name)


def find_sets(names: Sequence[str]) -> FoundSets:
    """Find sets, each as `find_taskset` does, with its errors; `all` stands for several."""
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
    """Return the sets that come with the package, with their notes, in the notes' order."""
    folder = shipped_folder("taskset_data")
    there = sorted(path.stem for path in folder.glob("*.jsonl"))
    notes = read_notes(folder)
    ordered = [*(name for name in notes if name in there), *(n for n in there if n not in notes)]
    return {name: notes.get(name, SetNotes()) for name in ordered}


def ready_sets() -> list[Path]:
    """Return the files of those that `all` stands for."""
    folder = shipped_folder("taskset_data")
    return [folder / f"{name}.jsonl" for name, notes in shipped_sets().items() if notes.is_ready]


def _left_out() -> str:
    why: dict[str, list[str]] = {}
    for name, notes in shipped_sets().items():
        if notes.needs:
            why.setdefault(f"need {' and '.join(notes.needs)}", []).append(name)
        elif notes.repeats is not None:
            why.setdefault(f"repeat {notes.repeats}", []).append(name)
    parts = [f"{', '.join(names)} ({reason})" for reason, names in why.items()]
    return f"Left out: {'; '.join(parts)}." if parts else ""


_MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of a file in the working folder that a list reads."""
_MARKS = ({"template"}, {"prompt"}, {"env", "id"})
"""The keys of a row of tasks, ours or HUD's; other JSON is not a row."""


class ListedSet(Value):
    """A set of tasks as a list shows it."""

    name: str = Field(description="What a command takes.")
    kind: Literal["shipped", "here"] = Field(description="In the package or the working folder.")
    file: str = Field(description="Where it is.")
    tasks: int = Field(description="How many it has.")
    difficulties: dict[str, int] = Field(description="How many tasks have each difficulty.")
    splits: dict[str, int] = Field(description="How many tasks have each split.")
    environments: tuple[str, ...] = Field(description="Those that its tasks name.")
    description: str = Field(description="One line for people.")
    needs: tuple[str, ...] = Field(description="What it needs beside hud-mcp.")
    repeats: str | None = Field(description="The set that has the same tasks, in another form.")
    in_all: bool = Field(description="Whether `all` has it.")
    problem: str | None = Field(default=None, description="Why it cannot be read, or None.")


def list_sets() -> list[ListedSet]:
    """Read the sets that can be named here; one of the working folder hides its namesake.

    Raises:
        InvalidTask: The notes on the sets of a folder are invalid.
    """
    shipped = shipped_folder("taskset_data")
    own = read_notes(Path())
    here = [_listed(path, own, kind="here") for path in _files_here(shipped)]
    names = {each.name for each in here}
    told = shipped_sets()
    return [
        *(_listed(shipped / f"{n}.jsonl", told, kind="shipped") for n in told if n not in names),
        *here,
    ]


def _files_here(shipped: Path) -> Iterator[Path]:
    """Yield the files with tasks in the working folder; a `.jsonl` hides a `.json`."""
    if Path.cwd() == shipped.resolve():
        return
    stems: set[str] = set()
    for path in sorted(Path().glob("*.json*"), key=lambda p: (p.stem, p.suffix != ".jsonl")):
        if path.suffix in (".jsonl", ".json") and path.stem not in stems and _holds_tasks(path):
            stems.add(path.stem)
            yield path


def _holds_tasks(path: Path) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return False
        data = read_text_bytes(path)
        first: Any = orjson.loads(data if path.suffix == ".json" else data.lstrip().split(b"\n")[0])
    except (OSError, orjson.JSONDecodeError):
        return False
    if isinstance(first, dict) and "tasks" in first:
        first = cast("Mapping[str, Any]", first)["tasks"]
    if isinstance(first, list):
        rows = cast("list[Any]", first)
        first = rows[0] if rows else None
    return isinstance(first, dict) and any(mark <= set(cast("Any", first)) for mark in _MARKS)


def _listed(
    path: Path, notes: Mapping[str, SetNotes], *, kind: Literal["shipped", "here"]
) -> ListedSet:
    told = notes.get(path.stem, SetNotes())
    problem = None
    try:
        tasks = Taskset.from_file(path)
    except HudMcpError as exc:
        tasks, problem = Taskset([], path.stem), str(exc)
    return ListedSet(
        name=path.stem,
        kind=kind,
        file=str(path.resolve()),
        tasks=len(tasks),
        difficulties=tasks.difficulties,
        splits=tasks.splits,
        environments=tasks.environment_names,
        description=told.description or tasks.description or "",
        needs=told.needs,
        repeats=told.repeats,
        in_all=kind == "shipped" and told.is_ready,
        problem=problem,
    )

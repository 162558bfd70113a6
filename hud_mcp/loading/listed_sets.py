"""The sets that a person can name here: those of the package, and those of the working folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import orjson
from pydantic import Field

from hud_mcp.base.text_files import read_text_bytes
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.named_sets import shipped_sets
from hud_mcp.loading.set_notes import SetNotes, read_notes
from hud_mcp.loading.source import shipped_folder
from hud_mcp.values.action import Value

__all__ = ["ListedSet", "list_sets"]

_MOST_BYTES = 16 * 1024 * 1024
"""A file of the working folder that is larger is not read for a list."""
_MARKS = ({"template"}, {"prompt"}, {"env", "id"})
"""What a row of tasks has, ours or HUD's; other JSON is none."""


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
        InvalidTask: What is said of the sets of a folder is wrong.
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
    """The files of the working folder that hold tasks, by name; of two of one name, the nearer."""
    if Path.cwd() == shipped.resolve():
        return
    stems: set[str] = set()
    for path in sorted(Path().glob("*.json*"), key=lambda p: (p.stem, p.suffix != ".jsonl")):
        if path.suffix in (".jsonl", ".json") and path.stem not in stems and _holds_tasks(path):
            stems.add(path.stem)
            yield path


def _holds_tasks(path: Path) -> bool:
    """Whether the first thing in a file looks like a row of tasks."""
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

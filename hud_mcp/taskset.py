"""An ordered, named collection of tasks, read from and written to JSON Lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import overload

import orjson
from pydantic import ValidationError

from hud_mcp.errors import InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.task import Task, Validation

__all__ = ["Taskset", "is_like"]


class Taskset(Sequence[Task]):
    """Tasks with distinct ids, in order.

    Args:
        tasks: The rows.
        name: What to call the set.

    Raises:
        InvalidTask: Two rows have one id, or one is no task.
    """

    def __init__(self, tasks: Iterable[Task], *, name: str = "taskset") -> None:
        self.name = name
        self._tasks: dict[str, Task] = {}
        for task in tasks:
            if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]  # authors pass rows
                raise InvalidTask(
                    f"{name}: a taskset is made of tasks, not of {task!r:.60}; "
                    "Task.model_validate reads a row."
                )
            if task.id in self._tasks:
                raise InvalidTask(f"{name}: two tasks have the id {task.id!r}; ids are distinct.")
            self._tasks[task.id] = task

    @classmethod
    def load(cls, path: str | Path) -> "Taskset":
        """Read JSON Lines: one task a line; empty lines are skipped.

        Raises:
            SourceNotFound: There is no such file.
            InvalidTask: Naming the file, the line and the field of the first bad row.
        """
        path = Path(path)
        if not path.is_file():
            raise SourceNotFound(f"There is no taskset at {path}; name a .jsonl file.")
        tasks: list[Task] = []
        lines: dict[str, int] = {}
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if not line.strip():
                continue
            task = _read_row(line, f"{path}:{number}")
            if task.id in lines:
                raise InvalidTask(
                    f"{path}:{number}: the id {task.id!r} is taken by line {lines[task.id]}; "
                    "give each row an id of its own."
                )
            lines[task.id] = number
            tasks.append(task)
        return cls(tasks, name=path.stem)

    def save(self, path: str | Path) -> None:
        """Write JSON Lines; what equals its default is left out."""
        rows = [task.model_dump(mode="json", exclude_defaults=True) for task in self]
        Path(path).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Task):
            return self._tasks.get(item.id) == item
        return isinstance(item, str) and item in self._tasks

    @overload
    def __getitem__(self, key: int | str) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> "Taskset": ...
    def __getitem__(self, key: int | str | slice) -> "Task | Taskset":
        """The task at a place or with an id, or a smaller set.

        Raises:
            InvalidTask: No task has the id.
            IndexError: The place is beyond the end.
        """
        if isinstance(key, slice):
            return Taskset(list(self)[key], name=self.name)
        if isinstance(key, int):
            return list(self)[key]
        if key not in self._tasks:
            hint = did_you_mean(key, self._tasks)
            raise InvalidTask(
                f"{self.name} has no task {key!r}.{hint} `hud-mcp tasks` lists its {len(self)}."
            )
        return self._tasks[key]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every task's id, in order."""
        return tuple(self._tasks)

    @property
    def environment_names(self) -> tuple[str, ...]:
        """The environments that its tasks name, each once, in order."""
        return tuple(dict.fromkeys(task.env for task in self))

    def filter(self, wanted: str | Callable[[Task], bool]) -> "Taskset":
        """The tasks that match.

        Args:
            wanted: A predicate, or what the id, the environment's name or the template's id
                is like: a shell pattern of the whole, or any part of it.
        """
        if callable(wanted):
            return Taskset((t for t in self if wanted(t)), name=self.name)
        return Taskset(
            (t for t in self if is_like(wanted, t.id, t.env, t.template)), name=self.name
        )


def is_like(pattern: str, *names: str) -> bool:
    """Whether a shell pattern matches one of some names, or is a part of it."""
    return any(fnmatchcase(name, pattern) or pattern in name for name in names)


def _read_row(line: bytes, where: str) -> Task:
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise InvalidTask(f"{where}: this line is not JSON: {exc}.") from None
    if not isinstance(raw, dict):
        raise InvalidTask(f"{where}: a task is an object, not {type(raw).__name__}.")
    try:
        return Task.model_validate(raw)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        path = ".".join(str(p) for p in first["loc"])
        known = _fields_at(first["loc"][:-1])
        extra = first["type"] == "extra_forbidden"
        hint = did_you_mean(str(first["loc"][-1]), known) if extra else ""
        message = "there is no such field" if hint or "extra" in first["type"] else first["msg"]
        raise InvalidTask(
            f"{where}: {path}: {message.lower()}.{hint} The fields are: {', '.join(known)}."
        ) from None


def _fields_at(path: tuple[int | str, ...]) -> list[str]:
    """The names of the fields of what a path into a row leads to."""
    inside = path and path[0] == "validation"
    return list((Validation if inside else Task).model_fields)

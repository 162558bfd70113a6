"""An ordered, named collection of tasks, read from and written to files."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, overload

import orjson
from pydantic import ValidationError

from hud_mcp.errors import InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.source import load_module
from hud_mcp.task import FROM_JSON, Task, Validation

__all__ = ["TaskSet", "Taskset", "hud_row", "is_like", "read_row", "wire_row"]

_HUD = "hud"
"""Where in a task's metadata the fields are kept that only HUD's rows have."""

_HUD_FIELDS = ("columns", "agent_config", "runtime_config", "verifier")


class Taskset(Sequence[Task]):
    """Tasks with distinct ids, in order. `TaskSet` is the same class, by HUD's earlier name.

    `Taskset(tasks, name="mine")`, `TaskSet(tasks=[…], description="…")` and HUD's
    `Taskset("mine", [task, …])` make one.

    Args:
        tasks: The rows; or the set's name, where the rows come second.
        name: What to call the set; or the rows, where its name came first.
        id: An identifier of the user's own, or None.
        description: One line for people, or None.

    Raises:
        InvalidTask: Two rows have one id, or one is no task.
    """

    def __init__(
        self,
        tasks: Iterable[Task] | str = (),
        name: str | Iterable[Task] = "taskset",
        *,
        id: str | None = None,  # noqa: A002  # HUD's name
        description: str | None = None,
    ) -> None:
        if isinstance(tasks, str) and not isinstance(name, str):
            tasks, name = name, tasks
        self.name = str(name)
        self.id = id
        self.description = description
        self._tasks: dict[str, Task] = {}
        for task in tasks:
            if not isinstance(task, Task):
                raise InvalidTask(
                    f"{self.name}: a taskset is made of tasks, not of {task!r:.60}; "
                    "Task.model_validate reads a row."
                )
            if task.id in self._tasks:
                raise InvalidTask(
                    f"{self.name}: two tasks have the id {task.id!r}; ids are distinct."
                )
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
            task = _read_line(line, f"{path}:{number}")
            if task.id in lines:
                raise InvalidTask(
                    f"{path}:{number}: the id {task.id!r} is taken by line {lines[task.id]}; "
                    "give each row an id of its own."
                )
            lines[task.id] = number
            tasks.append(task)
        return cls(tasks, name=path.stem)

    @classmethod
    def from_file(cls, path: str | Path) -> "Taskset":
        """Read a file of tasks: `.jsonl`, `.json` or `.py`, or a folder with an `env.py`.

        A `.json` file is a list of rows, one row, or an object with `tasks`. Of a Python file,
        its public tasks, tasksets and lists of tasks are taken, in order. Rows may be HUD's.

        Raises:
            SourceNotFound: There is no such file, or its kind is another.
            InvalidTask: Naming the file, the row and the field of the first bad row.
            InvalidEnvironment: A Python file does not load.
        """
        path = Path(path)
        if path.is_dir() and (path / "env.py").is_file():
            path = path / "env.py"
        if path.suffix == ".py" and path.is_file():
            return _from_python(path)
        if path.suffix == ".json" and path.is_file():
            return _from_json_file(path)
        if path.is_file() and path.suffix != ".jsonl":
            raise SourceNotFound(
                f"{path} is no file of tasks; name one that ends in .jsonl, .json or .py."
            )
        return cls.load(path)

    def to_file(self, path: str | Path, *, form: Literal["hud-mcp", "hud"] = "hud-mcp") -> None:
        """Write `.jsonl` or `.json`; what equals its default is left out.

        Args:
            path: Where to.
            form: `hud` for the rows that HUD's SDK reads.

        Raises:
            InvalidTask: The file's kind is another; or HUD has no row for a task, which is
                named. Nothing was written.
        """
        path = Path(path)
        if path.suffix not in (".json", ".jsonl"):
            raise InvalidTask(f"{path}: tasks are written to a .jsonl or a .json file.")
        rows = [hud_row(task) if form == "hud" else task.row for task in self]
        if path.suffix == ".json":
            path.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")
        else:
            path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))

    def save(self, path: str | Path) -> None:
        """Write JSON Lines; what equals its default is left out."""
        Path(path).write_bytes(b"".join(orjson.dumps(task.row) + b"\n" for task in self))

    @property
    def tasks(self) -> list[Task]:
        """Its tasks, in a list of its own."""
        return list(self)

    @property
    def digest(self) -> str:
        """The SHA-256 of its tasks' digests, in order: 64 hex digits."""
        whole = "\n".join(task.digest for task in self)
        return hashlib.sha256(whole.encode()).hexdigest()

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
            return self._smaller(list(self)[key])
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
        matches = _matcher(wanted)
        return self._smaller(task for task in self if matches(task))

    def exclude(self, unwanted: str | Callable[[Task], bool]) -> "Taskset":
        """The tasks that do not match; `unwanted` is as for `filter`."""
        matches = _matcher(unwanted)
        return self._smaller(task for task in self if not matches(task))

    def sample(self, count: int, *, seed: int = 0) -> "Taskset":
        """Some tasks drawn at random, in their order; all of them where there are no more.

        Args:
            count: How many.
            seed: The same one draws the same tasks of the same set.

        Raises:
            InvalidTask: The count is below 0.
        """
        if count < 0:
            raise InvalidTask(f"{self.name}: a sample has 0 or more tasks, not {count}.")
        ids = list(self._tasks)
        drawn = set(random.Random(seed).sample(ids, min(count, len(ids))))  # noqa: S311  # no secret
        return self._smaller(task for task in self if task.id in drawn)

    @property
    def splits(self) -> dict[str, int]:
        """How many tasks each split has, by its name in their metadata's `split`."""
        return dict(Counter(s for task in self if (s := _split_of(task)) is not None))

    def split(self, name: str) -> "Taskset":
        """The tasks of one split.

        Raises:
            InvalidTask: No task is in a split of that name; the text lists those that are.
        """
        found = [task for task in self if _split_of(task) == name]
        if not found:
            known = ", ".join(self.splits) or "none"
            raise InvalidTask(
                f"{self.name} has no split {name!r}.{did_you_mean(name, self.splits)} It has: "
                f"{known}."
            )
        return self._smaller(found)

    def _smaller(self, tasks: Iterable[Task]) -> "Taskset":
        return Taskset(tasks, name=self.name, id=self.id, description=self.description)


TaskSet = Taskset
"""HUD's earlier name."""


def hud_row(task: Task) -> dict[str, Any]:
    """A task as a row of HUD's SDK: `env`, `id` (the template's), `args`, `slug`, and its own.

    Raises:
        InvalidTask: It has a prompt and no template, which HUD's rows cannot say.
    """
    if task.prompt is not None:
        raise InvalidTask(
            f"The task {task.id!r} has a prompt and its own calls; HUD's rows name a template. "
            "Write it in this project's form, or make a template of it."
        )
    kept: dict[str, Any] = task.metadata.get(_HUD, {})
    row = {"env": task.env, "id": task.template, "args": task.args, "slug": task.id}
    return row | {
        name: value for name, value in kept.items() if name in (*_HUD_FIELDS, "validation")
    }


def wire_row(task: Task) -> dict[str, Any]:
    """A task as a row that `read_row` reads as the same task, also where a call is ambiguous."""
    row = task.row
    for name, calls in (("setup", task.setup), ("evaluate", task.evaluate)):
        if len(calls) == 1 and calls[0].is_flat:  # the environment decides what it means
            row[name] = [calls[0].function, *calls[0].args]
    return row


def _from_hud_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of HUD's SDK as one of this project; any other as it is."""
    if not {"env", "id"} <= set(row) or {"template", "prompt"} & set(row):
        return row
    if not {"slug", "args", *_HUD_FIELDS} & set(row):
        return row
    rest = dict(row)
    template, slug = rest.pop("id"), rest.pop("slug", None)
    kept = {name: rest.pop(name) for name in _HUD_FIELDS if name in rest}
    if isinstance(rest.get("validation"), list):
        kept["validation"] = rest.pop("validation")
    kept = {name: value for name, value in kept.items() if value is not None}
    made: dict[str, Any] = {**rest, "template": template}
    if slug is not None:
        made["id"] = slug
    if kept:
        made["metadata"] = {**(rest.get("metadata") or {}), _HUD: kept}
    return made


def _split_of(task: Task) -> str | None:
    name = task.metadata.get("split")
    return name if isinstance(name, str) else None


def _matcher(wanted: str | Callable[[Task], bool]) -> Callable[[Task], bool]:
    if callable(wanted):
        return wanted
    return lambda task: is_like(wanted, task.id, task.env, task.template)


def is_like(pattern: str, *names: str) -> bool:
    """Whether a shell pattern matches one of some names, or is a part of it."""
    return any(fnmatchcase(name, pattern) or pattern in name for name in names)


def _read_line(line: bytes, where: str) -> Task:
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise InvalidTask(f"{where}: this line is not JSON: {exc}.") from None
    return read_row(raw, where)


def read_row(raw: Any, where: str) -> Task:
    """Read a row that came from JSON.

    Args:
        raw: It.
        where: Its file and line, for the error.

    Raises:
        InvalidTask: Naming the place and the field.
    """
    if not isinstance(raw, dict):
        raise InvalidTask(f"{where}: a task is an object, not {type(raw).__name__}.")
    row = _from_hud_row(cast("dict[str, Any]", raw))
    try:
        return Task.model_validate(row, context=dict(FROM_JSON))
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        path = ".".join(str(p) for p in first["loc"])
        known = _fields_at(first["loc"][:-1])
        extra = first["type"] == "extra_forbidden"
        hint = did_you_mean(str(first["loc"][-1]), known) if extra else ""
        message = "there is no such field" if hint or "extra" in first["type"] else first["msg"]
        if first["type"] == "value_error":  # a sentence of ours, which says what to do
            said = message.removeprefix("Value error, ")
            raise InvalidTask(f"{where}: {f'{path}: ' if path else ''}{said}.") from None
        raise InvalidTask(
            f"{where}: {path}: {message.lower()}.{hint} The fields are: {', '.join(known)}."
        ) from None


def _fields_at(path: tuple[int | str, ...]) -> list[str]:
    """The names of the fields of what a path into a row leads to."""
    inside = path and path[0] == "validation"
    return list((Validation if inside else Task).model_fields)


def _from_json_file(path: Path) -> Taskset:
    try:
        raw = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as exc:
        raise InvalidTask(f"{path}: this file is not JSON: {exc}.") from None
    named: dict[str, Any] = {}
    if isinstance(raw, dict) and isinstance(cast("dict[str, Any]", raw).get("tasks"), list):
        named = cast("dict[str, Any]", raw)
        raw = named["tasks"]
    rows: list[Any] = cast("list[Any]", raw) if isinstance(raw, list) else [raw]
    tasks = [read_row(row, f"{path}: row {number}") for number, row in enumerate(rows, 1)]
    return _distinct(
        tasks,
        path,
        name=named.get("name"),
        id=named.get("id"),
        description=named.get("description"),
    )


def _from_python(path: Path) -> Taskset:
    found: dict[int, Task] = {}
    for name, value in vars(load_module(path)).items():
        if name.startswith("_"):
            continue
        listed = [value] if isinstance(value, Task) else value
        if isinstance(listed, Taskset | list | tuple):
            every = list(cast("Iterable[Any]", listed))
            if every and all(isinstance(each, Task) for each in every):
                found |= {id(task): task for task in every}
    if not found:
        raise InvalidTask(
            f"{path} declares no tasks; write `tasks = [count(word='lamp'), …]` in it."
        )
    return _distinct(list(found.values()), path)


def _distinct(
    tasks: list[Task],
    path: Path,
    *,
    name: str | None = None,
    id: str | None = None,  # noqa: A002  # as the class has it
    description: str | None = None,
) -> Taskset:
    try:
        return Taskset(tasks, name=name or path.stem, id=id, description=description)
    except InvalidTask as exc:
        raise InvalidTask(f"{path}: {exc} Give each row an id of its own.") from None

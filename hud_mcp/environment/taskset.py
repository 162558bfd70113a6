"""An ordered, named collection of tasks, read from and written to files."""

import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, overload

from hud_mcp.base.lines import json_lines
from hud_mcp.environment.rows import Rows, read_file, read_lines, write_file
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, ReplacedCall, did_you_mean
from hud_mcp.registry import service

__all__ = ["TaskSet", "Taskset", "is_like"]


class Taskset(Sequence[Task]):
    """Tasks with distinct ids, in order. `TaskSet` is the same class, by HUD's earlier name.

    `Taskset(tasks, name="mine")`, `TaskSet(tasks=[…], description="…")` and HUD's
    `Taskset("mine", [task, …])` make one.

    Args:
        first: The tasks; or the set's name if the tasks come second.
        second: The other of the two.
        tasks: The tasks, by keyword.
        name: The set's name.
        id: An identifier of the user's own, or None.
        description: One line for people, or None.

    Raises:
        InvalidTask: Two rows have the same id, or a row is not a task.
    """

    upload = ReplacedCall(
        "TaskSet.to_file(path) writes the tasks to a file, and load_taskset(path) reads them."
    )
    from_api = ReplacedCall("await load_taskset(name or path) loads a set of this machine.")
    from_module = ReplacedCall("TaskSet.from_file(path) reads the tasks of a Python file.")
    load_from_inspect = ReplacedCall("Make a Task of each sample, and a TaskSet of these.")
    fit = ReplacedCall("A task names its gym; make tasks with the gym that the agent works in.")

    def __init__(
        self,
        first: Iterable[Task] | str | None = None,
        second: Iterable[Task] | str | None = None,
        /,
        *,
        tasks: Iterable[Task] | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002  # HUD's name
        description: str | None = None,
    ) -> None:
        named_first = isinstance(first, str) and (second is not None or tasks is not None)
        given, called = (second, first) if named_first else (first, second)
        rows: Iterable[Any] = (given if tasks is None else tasks) or ()
        self.name = str(called or name or "taskset")
        self.id = id
        self.description = description
        self._tasks: dict[str, Task] = {}
        self._places: Mapping[str, str] = {}
        self._sets: Mapping[str, str] = {}
        for task in rows:
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
        """Read JSON Lines: one task a line; empty lines are skipped. It fails like `from_file`."""
        return cls._of(read_lines(Path(path)))

    @classmethod
    def from_file(cls, path: str | Path) -> "Taskset":
        """Read a file of tasks: `.json`, `.py`, or else JSON Lines; or a folder of such files.

        A `.json` file is a list of rows, one row, or an object with `tasks`. A Python file gives
        its public tasks, tasksets and lists of tasks, in order. Rows may be HUD's.

        Raises:
            SourceNotFound: There is no such file.
            InvalidTask: A row is wrong; the text names the file, the line and the field.
            InvalidEnvironment: A Python file does not load.
        """
        return cls._of(read_file(Path(path)))

    @classmethod
    def joined(cls, tasksets: "Iterable[Taskset]", name: str | None = None) -> "Taskset":
        """Make one set of several, in order; each task's own set is known by `set_of`.

        The set's name is all names joined, by default.

        Raises:
            InvalidTask: Two of them have a row of the same id, or have the same name.
        """
        parts = list(tasksets)
        owners: dict[str, str] = {}
        for part in parts:
            if sum(part.name == other.name for other in parts) > 1:
                raise InvalidTask(
                    f"Two of the sets are called {part.name!r}, so their rows would get mixed "
                    "up. Rename one, or run them one after the other."
                )
            for task_id in part.ids:
                if (other := owners.setdefault(task_id, part.name)) != part.name:
                    raise InvalidTask(
                        f"{part.name} and {other} both have a task {task_id!r}, but ids must be "
                        "distinct. Run them one after the other."
                    )
        made = cls(
            [task for part in parts for task in part], name or ", ".join(p.name for p in parts)
        )
        places = {task_id: part.place_of(task_id) for part in parts for task_id in part.ids}
        made._places = {task_id: place for task_id, place in places.items() if place is not None}
        made._sets = {task.id: part.set_of(task.id) for part in parts for task in part}
        return made

    @classmethod
    def _of(cls, rows: Rows) -> "Taskset":
        made = cls(rows.tasks, name=rows.name, id=rows.id, description=rows.description)
        made._places = dict(zip((t.id for t in rows.tasks), rows.places, strict=True))
        return made

    def to_file(self, path: str | Path, *, form: Literal["hud-mcp", "hud"] = "hud-mcp") -> Path:
        """Write `.jsonl` or `.json`, without fields that equal their defaults; return the path.

        Args:
            path: The new file.
            form: `hud` for the rows that HUD's SDK reads.

        Raises:
            InvalidTask: The file has another suffix; or HUD has no row for a task, which the error
                names. Nothing was written.
        """
        write_file(Path(path), self, form=form)
        return Path(path)

    def save(self, path: str | Path) -> None:
        """Write JSON Lines, without fields that equal their defaults."""
        Path(path).write_bytes(json_lines(task.row for task in self))

    def place_of(self, task_id: str) -> str | None:
        """Return the file and line of a task; None if it was made in code."""
        return self._places.get(task_id)

    def set_of(self, task_id: str) -> str:
        """Return the name of a task's set before sets were joined; else this set's."""
        if task_id not in self._sets:  # a row with a context: `task@context`
            task_id = task_id.rpartition("@")[0]
        return self._sets.get(task_id, self.name)

    @property
    def tasks(self) -> list[Task]:
        """Its tasks, in a new list."""
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
        """Return the task at a place or with an id, or a smaller set.

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
                f"{self.name} has no task {key!r}.{hint} `hud-mcp tasks SET` lists its {len(self)}."
            )
        return self._tasks[key]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every task's id, in order."""
        return tuple(self._tasks)

    @property
    def environment_names(self) -> tuple[str, ...]:
        """The names of its tasks' environments, each once, in order."""
        return tuple(dict.fromkeys(task.env for task in self))

    def items(self) -> Iterator[tuple[str, Task]]:
        """Return each task's id with the task, in order."""
        return iter(self._tasks.items())

    def filter(self, wanted: str | Iterable[str] | Callable[[Task], bool]) -> "Taskset":
        """Return the tasks that match, in their order.

        Args:
            wanted: A predicate, ids, or one text. The text is a shell pattern or a part of the id,
                the environment's name or the template's id.
        """
        matches = _matcher(wanted)
        return self._smaller(task for task in self if matches(task))

    def exclude(self, unwanted: str | Iterable[str] | Callable[[Task], bool]) -> "Taskset":
        """Return the tasks that do not match; `filter` explains the argument."""
        matches = _matcher(unwanted)
        return self._smaller(task for task in self if not matches(task))

    def sample(self, count: int, *, seed: int = 0) -> "Taskset":
        """Draw tasks at random, and return them in their order; all if there are no more.

        The same seed draws the same tasks from the same set.

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
        """The number of tasks of each split, by `split` in their metadata."""
        return _counted(self, "split")

    @property
    def difficulties(self) -> dict[str, int]:
        """The number of tasks of each difficulty, by `difficulty` in their metadata."""
        return _counted(self, "difficulty")

    def split(self, name: str) -> "Taskset":
        """Return the tasks of one split, or of one difficulty: `train`, `hard`.

        Raises:
            InvalidTask: No task has that split or difficulty. The error lists the existing ones.
        """
        found = [t for t in self if name in (t.metadata.get("split"), t.metadata.get("difficulty"))]
        if not found:
            known = list(dict.fromkeys([*self.splits, *self.difficulties]))
            there = f"It has: {', '.join(known)}." if known else "Its rows name none."
            raise InvalidTask(
                f"{self.name} has no split {name!r}.{did_you_mean(name, known)} {there}"
            )
        return self._smaller(found)

    async def run(
        self,
        agent: Callable[[Any], Awaitable[Any]],
        *,
        runtime: Any = None,
        group: int | None = None,
        max_concurrent: int | None = None,
        job: Any = None,
        rollout_timeout: float | None = None,
        retries: int = 0,
        resume: Any = None,
    ) -> Any:
        """Run an agent through the tasks. A run that fails is data, and raises nothing.

        Args:
            agent: A function to call with each `Run`, in this process. It is trusted, and keeps
                no state between runs.
            runtime: The place of the runs: `LocalRuntime()` (default), `SubprocessRuntime(…)` or
                `Runtime(url)`.
            group: The number of runs of each task; by default the job's, else 1.
            max_concurrent: The number of runs at the same time; None for all.
            job: The `Job` that gets the runs; a new one by default.
            rollout_timeout: Seconds after which a run is cancelled, without a grade.
            retries: The number of further tries of a run that failed for infrastructure.
            resume: A `Job` of this method, or its id. Only its missing runs, and those that
                failed for infrastructure, are run.

        Returns:
            The `Job`: `runs` in the order of the tasks, `results` by task, `reward`, their mean.

        Raises:
            InvalidTask: A task does not fit its environment, or needs what this method does not
                do. Nothing ran.
            HudMcpError: An environment is missing, or the job cannot be resumed like this.
                Nothing ran.

        If this call is cancelled, an answer in grading has a moment to get its grade; other
        running tasks end as cancelled. The job can be resumed.
        """
        return await service("Taskset.run")(
            self,
            agent,
            runtime=runtime,
            group=group,
            max_concurrent=max_concurrent,
            job=job,
            rollout_timeout=rollout_timeout,
            retries=retries,
            resume=resume,
        )

    def _smaller(self, tasks: Iterable[Task]) -> "Taskset":
        made = Taskset(tasks, name=self.name, id=self.id, description=self.description)
        made._places = self._places
        made._sets = self._sets
        return made


TaskSet = Taskset
"""HUD's earlier name."""


def _counted(tasks: Iterable[Task], key: str) -> dict[str, int]:
    found = (task.metadata.get(key) for task in tasks)
    return dict(Counter(each for each in found if isinstance(each, str) and each))


def _matcher(wanted: str | Iterable[str] | Callable[[Task], bool]) -> Callable[[Task], bool]:
    if callable(wanted):
        return wanted
    if not isinstance(wanted, str):
        ids = frozenset(wanted)
        return lambda task: task.id in ids
    return lambda task: is_like(wanted, task.id, task.env, task.template)


def is_like(pattern: str, *names: str) -> bool:
    """Whether a shell pattern matches one of some names, or is a part of it."""
    return any(fnmatchcase(name, pattern) or pattern in name for name in names)

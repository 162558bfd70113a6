"""An ordered, named collection of tasks, read from and written to files."""

import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from hud_mcp.errors import InvalidTask, ReplacedCall, did_you_mean
from hud_mcp.loading.json_lines import json_lines
from hud_mcp.loading.rows import Rows, read_file, read_lines, write_file
from hud_mcp.task import Task

if TYPE_CHECKING:
    from hud_mcp.record.job import Job
    from hud_mcp.rollout.runs import Run
    from hud_mcp.rollout.runtime import Placement

__all__ = ["TaskSet", "Taskset", "is_like"]


class Taskset(Sequence[Task]):
    """Tasks with distinct ids, in order. `TaskSet` is the same class, by HUD's earlier name.

    `Taskset(tasks, name="mine")`, `TaskSet(tasks=[…], description="…")` and HUD's
    `Taskset("mine", [task, …])` make one.

    Args:
        first: The tasks; or the set's name, where the tasks come second.
        second: The other of the two.
        tasks: The tasks, by keyword.
        name: What to call the set.
        id: An identifier of the user's own, or None.
        description: One line for people, or None.

    Raises:
        InvalidTask: Two rows have one id, or one is no task.
    """

    upload = ReplacedCall(
        "TaskSet.to_file(path) writes the tasks to a file, and load_taskset(path) reads them."
    )
    from_api = ReplacedCall("await load_taskset(name or path) loads a set of this machine.")
    from_module = ReplacedCall("TaskSet.from_file(path) reads the tasks of a Python file.")
    load_from_inspect = ReplacedCall("Make a Task of each sample, and a TaskSet of these.")
    fit = ReplacedCall("A task names its gym; make tasks with the gym that the agent works in.")

    @overload
    def __init__(
        self,
        tasks: Iterable[Task] = (),
        name: str = ...,
        /,
        *,
        id: str | None = None,
        description: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        tasks: Iterable[Task],
        /,
        *,
        id: str | None = None,
        description: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        first: Iterable[Task] | str = (),
        /,
        *,
        tasks: Iterable[Task] = ...,
        name: str = ...,
        id: str | None = None,
        description: str | None = None,
    ) -> None: ...
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
        """Read JSON Lines: one task a line; empty lines are skipped.

        Raises:
            SourceNotFound: There is no such file.
            InvalidTask: Naming the file, the line and the field of the first bad row.
        """
        return cls._of(read_lines(Path(path)))

    @classmethod
    def from_file(cls, path: str | Path) -> "Taskset":
        """Read a file of tasks: `.json`, `.py`, or else JSON Lines; or a folder of such files.

        A `.json` file is a list of rows, one row, or an object with `tasks`. Of a Python file,
        its public tasks, tasksets and lists of tasks are taken, in order. Rows may be HUD's.

        Raises:
            SourceNotFound: There is no such file.
            InvalidTask: Naming the file, the line and the field of the first bad row.
            InvalidEnvironment: A Python file does not load.
        """
        return cls._of(read_file(Path(path), collections=(list, tuple, Taskset)))

    @classmethod
    def _of(cls, rows: Rows) -> "Taskset":
        made = cls(rows.tasks, name=rows.name, id=rows.id, description=rows.description)
        made._places = dict(zip((t.id for t in rows.tasks), rows.places, strict=True))
        return made

    def to_file(self, path: str | Path, *, form: Literal["hud-mcp", "hud"] = "hud-mcp") -> Path:
        """Write `.jsonl` or `.json`; what equals its default is left out.

        Args:
            path: Where to.
            form: `hud` for the rows that HUD's SDK reads.

        Returns:
            Where it was written to.

        Raises:
            InvalidTask: The file's kind is another; or HUD has no row for a task, which is
                named. Nothing was written.
        """
        write_file(Path(path), self, form=form)
        return Path(path)

    def save(self, path: str | Path) -> None:
        """Write JSON Lines; what equals its default is left out."""
        Path(path).write_bytes(json_lines(task.row for task in self))

    def place_of(self, task_id: str) -> str | None:
        """The file and the line on which a task was read; None for one that was made in code."""
        return self._places.get(task_id)

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

    def items(self) -> Iterator[tuple[str, Task]]:
        """Each task's id with the task, in order."""
        return iter(self._tasks.items())

    def filter(self, wanted: str | Iterable[str] | Callable[[Task], bool]) -> "Taskset":
        """The tasks that match, in their order.

        Args:
            wanted: A predicate; or ids; or one text that the id, the environment's name or the
                template's id is like: a shell pattern of the whole, or any part of it.
        """
        matches = _matcher(wanted)
        return self._smaller(task for task in self if matches(task))

    def exclude(self, unwanted: str | Iterable[str] | Callable[[Task], bool]) -> "Taskset":
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
            known = f"It has: {', '.join(self.splits)}." if self.splits else "Its rows name none."
            hint = did_you_mean(name, self.splits)
            raise InvalidTask(f"{self.name} has no split {name!r}.{hint} {known}")
        return self._smaller(found)

    async def run(
        self,
        agent: "Callable[[Run], Awaitable[Any]]",
        *,
        runtime: "Placement | None" = None,
        group: int | None = None,
        max_concurrent: int | None = None,
        job: "Job | None" = None,
        rollout_timeout: float | None = None,
        retries: int = 0,
        resume: "Job | str | None" = None,
    ) -> "Job":
        """Run an agent through the tasks; see `hud_mcp.rollout.tasks.run_tasks`."""
        from hud_mcp.rollout import tasks  # noqa: PLC0415  # it lies above, and loads when called

        return await tasks.run_tasks(
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
        return made


TaskSet = Taskset
"""HUD's earlier name."""


def _split_of(task: Task) -> str | None:
    name = task.metadata.get("split")
    return name if isinstance(name, str) else None


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

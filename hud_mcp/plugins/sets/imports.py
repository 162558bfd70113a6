"""The import of a public set: its files, its rows, and the part that is wanted."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Any, cast
from urllib.parse import quote

import anyio.to_thread
import orjson

from hud_mcp.environment.function import Function
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, NotInstalled, did_you_mean
from hud_mcp.loading.provenance import NOT_RUNNABLE
from hud_mcp.loading.public import Choice
from hud_mcp.plugins.sets.files import Files, cached_index, dataset_file, open_files, published

_MOST_ID_CHARS = 200
_PARTS = "parts"
_MOST_FILE_BYTES = 32 * 1024**2
"""The size of a resource, which a client reads in one reply."""

Read = Callable[[Files, Choice], list[Task]]
Report = Callable[[str], None]


class ImportedSet:
    """A public set that this plugin imports; `hud_mcp.loading.public` says what each name is.

    Args:
        title: The title of the set in `sets.toml`.
        read: A function that makes rows of the set's files. It raises SourceNotFound if it cannot
            get a file, and InvalidTask for a file that the set does not have so.
    """

    def __init__(self, title: str, read: Read) -> None:
        self.published = published(title)
        self.title = title
        self.about = self.published.about
        self.page = self.published.page
        self.licence = self.published.licence
        self._read = read

    @property
    def is_fetched(self) -> bool:
        """Whether the cache has files of this set."""
        return cached_index(self.published.key).is_file()

    def load(
        self,
        choice: Choice,
        *,
        place: str | Path | None = None,
        refresh: bool = False,
        report: Report | None = None,
    ) -> tuple[list[Task], tuple[str, ...]]:
        """Return the chosen rows, and a sentence about each oddity of the files."""
        files = open_files(self.published, place=place, refresh=refresh, report=report)
        try:
            every = self._read(files, choice)
        except ModuleNotFoundError as exc:
            if self.published.extra is None:
                raise
            raise NotInstalled(
                f"{self.title} needs {exc.name}: pip install 'hud-mcp[{self.published.extra}]'."
            ) from exc
        return _chosen(every, choice.part, self.title), tuple(files.notes)


class NotRunnable(Exception):
    """The reason why a row does not run here."""


def json_rows(data: bytes, name: str, title: str) -> Iterator[tuple[str, Any]]:
    """Read a JSON list, or JSON Lines if the name ends so; yield each row after its place.

    Raises:
        InvalidTask: The file is not JSON, or not a list.
    """
    where = name
    try:
        if name.endswith(".jsonl"):
            for number, line in enumerate(data.splitlines(), 1):
                where = f"{name}:{number}"
                if line.strip():
                    yield where, orjson.loads(line)
            return
        whole: Any = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise InvalidTask(f"{where}: this is not a row of {title}: {exc}.") from exc
    rows = cast("list[Any]", whole) if isinstance(whole, list) else [whole]
    yield from ((f"{name}, row {index}", raw) for index, raw in enumerate(rows))


def as_tasks(
    rows: Iterable[tuple[str, Any]], make: Callable[[int, Any], Task], title: str
) -> list[Task]:
    """Make a task of each row by its index. A row comes after its place.

    Raises:
        InvalidTask: `make` does not find in a row what the set's rows have. The text has its place.
    """
    tasks: list[Task] = []
    for index, (where, raw) in enumerate(rows):
        try:
            tasks.append(make(index, raw))
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise InvalidTask(f"{where}: this is not a row of {title}: {exc!r}.") from exc
    return tasks


def row(
    name: str,
    gym: str,
    prompt: str,
    *,
    parts: Sequence[str],
    split: str,
    source: str,
    is_local: bool = False,
    setup: Sequence[Sequence[Any]] = (),
    evaluate: Sequence[Sequence[Any]] = (),
    not_runnable: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    **more: Any,
) -> Task:
    """Make one row of a set, whose calls are each a name with arguments.

    A row whose hosts the user mapped to places of their own (`is_local`) may open these places, and
    its metadata alone has the origin. With a reason in `not_runnable`, it has no other calls, and
    its start raises the reason.
    """
    kept: dict[str, Any] = {"split": split, _PARTS: list(parts), **(metadata or {})}
    if not_runnable is not None:
        kept[NOT_RUNNABLE] = not_runnable
        setup, evaluate = [["not_runnable", not_runnable]], []
    if is_local:
        kept["source"] = source
    return Task.model_validate(
        {
            "id": name,
            "gym": gym,
            "prompt": prompt,
            "setup": [{"function": call[0], "args": list(call[1:])} for call in setup],
            "evaluate": [{"function": call[0], "args": list(call[1:])} for call in evaluate],
            "metadata": kept,
            "source": None if is_local else source,
            **more,
        }
    )


def given_file(name: str, sha256: str, *, in_shell: bool) -> tuple[list[str], str]:
    """Return the setup call that gives a kept file to a session, and its sentence in the prompt.

    A shell has files in a folder. Elsewhere they are resources of the session.
    """
    if in_shell:
        return ["dataset_file", f"files/{name}", sha256], f"The file is /workspace/files/{name}."
    address = f"hud://sessions/SESSION/files/{quote(name)}"
    told = f"The file is the MCP resource {address}, with your session's id in place of SESSION."
    return ["session_file", name, sha256], told


def row_id(*parts: object) -> str:
    """Join texts to an id, without spaces and within the length of an id."""
    text = "-".join(re.sub(r"\s+", "_", str(part).strip()) for part in parts)
    return text[:_MOST_ID_CHARS]


def missing_programs(names: Iterable[str]) -> list[str]:
    """Return those programs that a sandbox of this machine does not have."""
    return [name for name in names if which(name, path="/usr/bin:/bin:/usr/sbin:/sbin") is None]


def _chosen(tasks: list[Task], part: str | None, title: str) -> list[Task]:
    if part is None:
        return tasks
    found = [task for task in tasks if _plain(part) in map(_plain, _parts_of(task))]
    if not found:
        known = list(dict.fromkeys(name for task in tasks for name in _parts_of(task)))
        raise InvalidTask(
            f"{title} has no part {part!r}.{did_you_mean(part, known)} It has: {', '.join(known)}."
        )
    return found


def _parts_of(task: Task) -> list[str]:
    return [str(name) for name in task.metadata.get(_PARTS, ())]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


async def _session_file(name: str, sha256: str) -> None:
    """Give the session a file of a public set, as its resource of that name."""
    kept = await anyio.to_thread.run_sync(dataset_file, sha256)
    if kept.stat().st_size > _MOST_FILE_BYTES:
        raise InvalidTask(
            f"The file {name!r} has more than {_MOST_FILE_BYTES} bytes, which is too much for a "
            "resource. Import the set with --gym of a shell."
        )


async def _not_runnable(reason: str) -> None:
    """Refuse to start the task, for a reason: rows of a public set that do not run here."""
    raise InvalidTask(f"This task does not run here: {reason}.")


SESSION_FILE = Function(_session_file, name="session_file", use="setup")
NOT_RUNNABLE_HERE = Function(_not_runnable, name="not_runnable", use="setup")

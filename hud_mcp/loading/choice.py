"""What an importer is given, and what its rows have in common."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from shutil import which
from typing import Any
from urllib.parse import quote

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask, did_you_mean
from hud_mcp.loading.provenance import NOT_RUNNABLE, why_not_runnable

__all__ = [
    "Choice",
    "Counted",
    "choose_part",
    "count",
    "given_file",
    "missing_programs",
    "row",
    "row_id",
]

_MOST_ID_CHARS = 200
_PARTS = "parts"


@dataclass(frozen=True)
class Choice:
    """What of a set is wanted, and how.

    Attributes:
        part: A subset, as it was written: `Allrecipes`, `level1`; None for all.
        hosts: What stands for a host or a placeholder of the rows: `{"www.imdb.com":
            "http://127.0.0.1:8001"}`.
        gym: The environment that rows are worked on in, where a set leaves that open.
        seed: Of sets that are drawn.
        size: Rows of sets that are drawn.
    """

    part: str | None = None
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    gym: str | None = None
    seed: int = 0
    size: int = 100


@dataclass(frozen=True)
class Counted:
    """How many rows there are, and how many of them run here.

    Attributes:
        rows: All.
        runnable: Those that say nothing against it.
        needs: What runnable rows need beside this machine, to how many: `network`, `judge`.
        reasons: Why the others do not run, to how many: of each row the first reason.
        besides: What these rows lack as well, to how many.
    """

    rows: int
    runnable: int
    needs: Mapping[str, int]
    reasons: Mapping[str, int]
    besides: Mapping[str, int]


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
    """One row of a set.

    Args:
        name: Its id.
        gym: Its environment.
        prompt: The prompt.
        parts: The subsets that it belongs to.
        split: Its split.
        source: Where it comes from.
        is_local: Whether its user mapped its hosts to places of his own. Then it may open these,
            which rows from elsewhere may not, and its metadata alone has the source.
        setup: Calls, each a name with arguments.
        evaluate: The same.
        not_runnable: Why it does not run here: then it has no other calls, and starting it
            says so.
        metadata: More of it.
        more: Other fields of a task.
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
    """How a session gets a file that was kept, and what its prompt says of that.

    Args:
        name: What the file is called.
        sha256: By which it was kept.
        in_shell: Whether the row runs in a shell, where files lie in a folder; elsewhere they are
            resources of the session.
    """
    if in_shell:
        return ["dataset_file", f"files/{name}", sha256], f"The file is /workspace/files/{name}."
    address = f"hud://sessions/SESSION/files/{quote(name)}"
    told = f"The file is the MCP resource {address}, with your session's id in place of SESSION."
    return ["session_file", name, sha256], told


def row_id(*parts: object) -> str:
    """An id of some texts: without spaces, and not longer than an id may be."""
    text = "-".join(re.sub(r"\s+", "_", str(part).strip()) for part in parts)
    return text[:_MOST_ID_CHARS]


def choose_part(tasks: Iterable[Task], part: str | None, title: str) -> list[Task]:
    """The rows of a subset; all where none is named.

    Raises:
        InvalidTask: There is no such subset; the text lists them.
    """
    every = list(tasks)
    if part is None:
        return every
    found = [task for task in every if _plain(part) in map(_plain, _parts_of(task))]
    if not found:
        known = list(dict.fromkeys(name for task in every for name in _parts_of(task)))
        raise InvalidTask(
            f"{title} has no part {part!r}.{did_you_mean(part, known)} It has: {', '.join(known)}."
        )
    return found


def count(tasks: Iterable[Task]) -> Counted:
    """Count rows, what they need, and why some do not run here."""
    every = list(tasks)
    parts = [why.split("; ") for task in every if (why := why_not_runnable(task)) is not None]
    reasons = Counter(each[0] for each in parts)
    besides = Counter(other for each in parts for other in dict.fromkeys(each[1:]))
    runnable = [task for task in every if why_not_runnable(task) is None]
    needs = Counter(str(need) for task in runnable for need in task.metadata.get("needs", ()))
    found = (dict(each.most_common()) for each in (reasons, besides))
    return Counted(len(every), len(runnable), needs, *found)


def missing_programs(names: Iterable[str]) -> list[str]:
    """Which of some programs a sandbox of this machine would not have."""
    return [name for name in names if which(name, path="/usr/bin:/bin:/usr/sbin:/sbin") is None]


def _parts_of(task: Task) -> list[str]:
    return [str(name) for name in task.metadata.get(_PARTS, ())]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())

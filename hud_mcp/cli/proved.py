"""What `hud-mcp check` is given: environments and tasksets, each by name or path."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from hud_mcp.checking.tasks import Wanted, rows_wanted, templates_wanted, unloaded
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError, SourceNotFound
from hud_mcp.loading.bridged import is_bridged
from hud_mcp.loading.places import find_sources, lasting_source
from hud_mcp.loading.source import (
    find_taskset,
    load_environments,
    shipped_environments,
    shipped_folder,
)
from hud_mcp.taskset import Taskset

__all__ = ["Found", "find_wanted"]


@dataclass(frozen=True)
class Found:
    """What is to be checked, and where it is.

    Attributes:
        wanted: The tasks, and what is known of others.
        sources: Where their environments are, from any folder.
        environments: Those, loaded.
        name: What it is called.
        said: What was taken for a name that means an environment and a taskset.
    """

    wanted: Wanted
    sources: tuple[str, ...]
    environments: Sequence[Environment]
    name: str
    said: tuple[str, ...] = ()


def find_wanted(
    given: Sequence[str],
    sources: Sequence[str],
    pattern: str | None,
    *,
    split: str | None = None,
) -> Found:
    """Find what is to be checked.

    Args:
        given: Sources and tasksets.
        sources: Where the environments of the tasksets are, if the user says so.
        pattern: Which tasks are meant; all where it is None.
        split: Only the rows of one split of each taskset.

    Raises:
        UsageError: Something is nowhere, or on another server; or a split of an environment is
            asked for, which has none.
        HudMcpError: A taskset cannot be read, or no task is meant.
    """
    wanted = Wanted()
    used: list[str] = []
    for each in given:
        if is_bridged(each):
            raise click.UsageError(
                f"{each} is another server's; check takes files and names of this machine, so "
                "that it can read what its templates hide."
            )
        try:
            path = _taskset(each)
            if path is None and split is not None:
                raise click.UsageError(f"{each} is an environment; --split is of a taskset's rows.")
            if path is None:
                used += _take_source(wanted, each)
            else:
                tasks = Taskset.from_file(path)
                tasks = tasks if split is None else tasks.split(split)
                used += _take_rows(wanted, tasks, path, each, sources)
        except SourceNotFound as exc:
            raise click.UsageError(str(exc)) from None
    lasting = tuple(dict.fromkeys(lasting_source(source) for source in used))
    if pattern is not None:
        wanted.keep_like(pattern)
    if not wanted.tasks and not wanted.judged:
        like = f" that is like {pattern!r}" if pattern is not None else ""
        raise HudMcpError(f"{', '.join(given)}: there is no task{like}.")
    said = tuple(_said(each) for each in given if _has_both(each))
    return Found(wanted, lasting, load_environments(lasting), ", ".join(given), said)


def _has_both(given: str) -> bool:
    """Whether a name is that of a shipped environment and of a shipped taskset."""
    rows = shipped_folder("taskset_data") / f"{given}.jsonl"
    return given in shipped_environments() and rows.is_file()


def _said(name: str) -> str:
    """Which of both is taken."""
    return (
        f"{name} names an environment and a taskset: the environment's templates are checked. "
        f"For the taskset's rows: hud-mcp check {name}.jsonl"
    )


def _taskset(given: str) -> Path | None:
    """The file of tasks that is meant; None where it is an environment.

    Raises:
        SourceNotFound: It is neither.
    """
    path = Path(given)
    if path.suffix in (".jsonl", ".json"):
        return find_taskset(given)
    if path.suffix == ".py" or given.startswith("gym:") or (path / "env.py").is_file():
        return None
    try:
        load_environments([given])
    except SourceNotFound as exc:
        try:
            return find_taskset(given)
        except SourceNotFound:
            raise SourceNotFound(
                f"{given!r} is neither a taskset nor an environment. {exc}"
            ) from None
    except HudMcpError:
        return None  # it is told when it is taken
    return None


def _take_source(wanted: Wanted, source: str) -> list[str]:
    try:
        environments = load_environments([source])
    except SourceNotFound:
        raise
    except HudMcpError as exc:
        wanted.judged.append(unloaded(source, exc))
        return []
    templates_wanted(wanted, environments)
    return [source]


def _take_rows(
    wanted: Wanted, tasks: Taskset, path: Path, given: str, sources: Sequence[str]
) -> list[str]:
    if not len(tasks):
        raise HudMcpError(f"{given} holds no tasks. Write one as JSON on each line.")
    found = find_sources(sources, tasks, path)
    try:
        environments = load_environments(found)
    except SourceNotFound:
        raise
    except HudMcpError as exc:
        wanted.judged.append(unloaded(given, exc))
        return []
    rows_wanted(wanted, tasks, environments, {task.id: tasks.place_of(task.id) for task in tasks})
    return found

"""The subjects of `hud-mcp check`: environments and tasksets, each by name or path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import click

from hud_mcp.environment import Environment
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, SourceNotFound
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.sets import ALL, find_sets, find_taskset, is_all, ready_sets
from hud_mcp.loading.source import Source, is_also_a_set, lasting_source, load_environments
from hud_mcp.rollout.checking.job import Wanted, rows_wanted, templates_wanted, unloaded


@dataclass(frozen=True)
class Found:
    """The tasks that a check proves, and their environments.

    Attributes:
        wanted: The tasks, and the known facts about others.
        sources: The sources of their environments, valid from any folder.
        environments: The loaded environments.
        name: The name of the check.
        said: The meaning that was chosen for a name of both an environment and a taskset, and the
            list of what `all` leaves out.
        sets: The ids of the tasks of each set or source, if there are several.
    """

    wanted: Wanted
    sources: tuple[str, ...]
    environments: Sequence[Environment]
    name: str
    said: tuple[str, ...] = ()
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def find_wanted(
    given: Sequence[str], sources: Sequence[str], pattern: str | None, *, split: str | None = None
) -> Found:
    """Find the tasks of a check in sources and tasksets, like a pattern and of one split.

    The user may name `sources`, which are those of the tasksets' environments.

    Raises:
        UsageError: One is nowhere or on another server, or is to be split and has no rows.
        HudMcpError: A taskset cannot be read, or no task is meant.
    """
    wanted = Wanted()
    used: list[str] = []
    sets: dict[str, tuple[str, ...]] = {}
    meant, left_out = _meant(given)
    try:
        read = [(each, path, _read(each, path)) for each in meant for path in [_place(each)]]
    except SourceNotFound as exc:
        raise click.UsageError(str(exc)) from None
    if split is not None:
        read = _of_split(read, split)
    for each, path, tasks in read:
        known = len(wanted.tasks), len(wanted.judged)
        try:
            if path is None:
                used += _take_source(wanted, each)
            else:
                used += _take_rows(wanted, tasks, path, each, sources)
        except SourceNotFound as exc:
            raise click.UsageError(str(exc)) from None
        new = (t.id for t in wanted.tasks[known[0] :]), (v.task for v in wanted.judged[known[1] :])
        name = tasks.name if path is not None and tasks.name not in sets else each
        sets[name] = tuple(chain(*new))
    lasting = tuple(dict.fromkeys(lasting_source(source) for source in used))
    if pattern is not None:
        wanted.keep_like(pattern)
    if not wanted.tasks and not wanted.judged:
        like = f" that is like {pattern!r}" if pattern is not None else ""
        raise HudMcpError(f"{', '.join(given)}: there is no task{like}.")
    said = [_said(each) for each in given if is_also_a_set(each)]
    said += [left_out] if left_out else []
    return Found(
        wanted, lasting, load_environments(lasting), ", ".join(given), tuple(said),
        sets if len(sets) > 1 else {},
    )  # fmt: skip


def _meant(given: Sequence[str]) -> tuple[list[str], str]:
    """Return the subjects with files for `all`, and a line about the sets that `all` leaves out."""
    if not any(map(is_all, given)):
        return list(given), ""
    paths = {
        each: [str(path) for path in ready_sets()] if is_all(each) else [each] for each in given
    }
    return list(dict.fromkeys(chain(*paths.values()))), find_sets([ALL]).left_out


def _place(given: str) -> Path | None:
    """Return the file of tasks for a name; None for an environment.

    Raise UsageError if it is on another server, and SourceNotFound if it is neither.
    """
    if Source(given).is_remote:
        raise click.UsageError(
            f"{given} is on another server. `check` takes only files and names of this machine, "
            "because it reads what the templates hide."
        )
    return _taskset(given)


def _read(given: str, path: Path | None) -> Taskset:
    return Taskset([], given) if path is None else Taskset.from_file(path)


def _of_split(
    read: Sequence[tuple[str, Path | None, Taskset]], split: str
) -> list[tuple[str, Path | None, Taskset]]:
    """Return the rows of a split, of the sets that have it.

    Raise UsageError for an environment, which has no rows, and InvalidTask if no set has the split.
    """
    for each, path, _ in read:
        if path is None:
            raise click.UsageError(
                f"{each} is an environment; --split chooses among the rows of a taskset."
            )
    having = [each for each in read if split in {**each[2].splits, **each[2].difficulties}]
    if not having:
        rows = {task.id: task for _, _, tasks in read for task in tasks}
        Taskset(rows.values(), ", ".join(tasks.name for _, _, tasks in read)).split(split)
    return [(each, path, tasks.split(split)) for each, path, tasks in having]


def _said(name: str) -> str:
    environment = load_environments([name])[0].name
    return (
        f"{name} names a taskset and an environment: the taskset's rows are checked, as `eval` "
        f"plays them. For the environment's templates: hud-mcp check {name}:{environment}"
    )


def _taskset(given: str) -> Path | None:
    """Return the file of tasks for a name, as `eval` and `tasks` take it; None for a source.

    Raise SourceNotFound if it is neither.
    """
    path = Path(given)
    if path.suffix in (".jsonl", ".json"):
        return find_taskset(given)
    if path.suffix == ".py" or given.startswith("gym:") or (path / "env.py").is_file():
        return None
    try:
        found = find_taskset(given)
    except SourceNotFound:
        found = None
    if found is not None and found.suffix != ".py":
        return found
    try:
        load_environments([given])
    except SourceNotFound as exc:
        raise SourceNotFound(f"{given!r} is neither a taskset nor an environment. {exc}") from None
    except HudMcpError:
        return None  # it is told when it is taken
    return None


def _loaded(wanted: Wanted, given: str, sources: Sequence[str]) -> list[Environment] | None:
    """Load environments. A fault of theirs is judged and leaves None; absence is raised."""
    try:
        return load_environments(sources)
    except SourceNotFound:
        raise
    except HudMcpError as exc:
        wanted.judged.append(unloaded(given, exc))
        return None


def _take_source(wanted: Wanted, source: str) -> list[str]:
    environments = _loaded(wanted, source, [source])
    if environments is None:
        return []
    templates_wanted(wanted, environments)
    return [source]


def _take_rows(
    wanted: Wanted, tasks: Taskset, path: Path, given: str, sources: Sequence[str]
) -> list[str]:
    if not len(tasks):
        raise HudMcpError(f"{given} holds no tasks. Write one as JSON on each line.")
    found = find_sources(sources, tasks, path)
    environments = _loaded(wanted, given, found)
    if environments is None:
        return []
    rows_wanted(wanted, tasks, environments, {task.id: tasks.place_of(task.id) for task in tasks})
    return found

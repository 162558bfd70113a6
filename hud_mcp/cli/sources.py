"""The sources of a command by their names, and files that `serve --reload` follows."""

import logging
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from hud_mcp.cli.output import cell, make_console, make_table
from hud_mcp.cli.process import without_collecting
from hud_mcp.environment import Environment
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, did_you_mean
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.sets import ALL, ListedSet, find_sets, list_sets
from hud_mcp.loading.source import (
    Source,
    Stamps,
    declared_tasks,
    default_sources,
    forgotten,
    inputs_of,
    load_environments,
    python_files,
    shipped_environments,
    shipped_folder,
    stamps_of,
)
from hud_mcp.session.spec import Limits


def load_sources(
    sources: Sequence[str], tasksets: Sequence[str], *, split: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Load environments and the tasks that go with them.

    Without a taskset, the offered tasks are those that authors' own files declare, and the
    quickstart's tasks of the served shipped environments. With `split`, only its rows of each set
    are.

    Raises:
        SourceNotFound, InvalidEnvironment, InvalidTask: Loading one of them failed.
    """
    plain = [source for source in sources if not Source(source).is_remote]
    environments = load_environments(plain if sources else default_sources())
    if tasksets:
        found = [find_sets([name]).read().tasks for name in tasksets]
        return environments, found if split is None else [each.split(split) for each in found]
    shipped = {path.resolve() for path in shipped_environments().values()}
    names = {e.name for e in environments if e.file.resolve() in shipped}
    own = declared_tasks(e for e in environments if e.name not in names)
    offered = [Taskset(own, name="The tasks of the source")] if own else []
    quickstart = shipped_folder("taskset_data") / "quickstart.jsonl"
    if names and quickstart.is_file():
        offered.append(Taskset.load(quickstart).filter(lambda task: task.env in names))
    return environments, offered


def only_environment(environments: Sequence[Any], what: str) -> Any:
    """Return the one environment of several that a channel can serve.

    Raises:
        HudMcpError: There are several.
    """
    if len(environments) == 1:
        return environments[0]
    names = ", ".join(e.name for e in environments)
    raise HudMcpError(
        f"{what} serves one environment, and there are {len(environments)}: {names}. Name one as "
        "path/to/env.py:name."
    )


_ANY_WIDTH = 100_000
_LEVELS = ("easy", "medium", "hard")
_COLUMNS = ("set", "tasks", "difficulty", "environments", "needs", "description")


def print_sets(*, as_json: bool) -> None:
    """Print the sets of the package and of the working folder, and what to type next.

    Raises:
        InvalidTask: The description of the sets of a folder is wrong.
    """
    with without_collecting():
        sets = list_sets()
    if as_json:
        for each in sets:
            click.echo(each.model_dump_json())
        return
    console = make_console()
    table = make_table(*_COLUMNS, right=("tasks",))
    for each in sets:
        row = (each.name, str(each.tasks), _difficulty(each), _environments(each))
        table.add_row(*map(cell, (*row, ", ".join(each.needs), _said(each))))
    unbounded = console.options.update(max_width=_ANY_WIDTH)
    if console.measure(table, options=unbounded).maximum <= console.width:
        console.print(table)
    else:
        for each in sets:
            _print_narrow(console, each)
    _print_next(console, sets)


def _print_narrow(console: Console, each: ListedSet) -> None:
    levels = f" ({text})" if (text := _difficulty(each)) else ""
    inside = f" in {text}" if (text := _environments(each)) else ""
    noun = "task" if each.tasks == 1 else "tasks"
    console.print(
        Text.assemble(cell(each.name, "bold"), cell(f"  {each.tasks} {noun}{levels}{inside}")),
        soft_wrap=True,
    )
    needs = f"Needs {', '.join(each.needs)}." if each.needs else ""
    if said := " ".join(filter(None, (_said(each), needs))):
        console.print(cell(f"  {said}"), soft_wrap=True)


def _print_next(console: Console, sets: Sequence[ListedSet]) -> None:
    ready = ", ".join(each.name for each in sets if each.in_all)
    for line in (
        f"`{ALL}` stands for {ready}: they need nothing beside hud-mcp.",
        "hud-mcp tasks SET lists its tasks; hud-mcp eval SET --agent oracle runs them.",
        "hud-mcp taskset list has the public sets, which are fetched.",
    ):
        console.print(cell(line, "dim"), soft_wrap=True)


def _difficulty(each: ListedSet) -> str:
    ordered = [*_LEVELS, *(name for name in each.difficulties if name not in _LEVELS)]
    return ", ".join(
        f"{count} {name}" for name in ordered if (count := each.difficulties.get(name))
    )


def _environments(each: ListedSet) -> str:
    first, *more = each.environments or ("",)
    # One set has five of them, and a table of all sets has to fit.
    return f"{first} and {len(more)} more" if len(more) > 1 + 1 else ", ".join(each.environments)


def _said(each: ListedSet) -> str:
    return each.problem or each.description


def environments_of(tasks: Taskset, files: Sequence[Path]) -> list[Environment]:
    """Return the environments of tasks from these files; an empty list if one cannot be loaded."""
    try:
        found = find_sources((), tasks, files[0] if len(files) == 1 else Path.cwd())
        loaded = load_environments([s for s in found if not Source(s).is_remote])
    except HudMcpError:  # a list of tasks is not the place to say what eval says
        return []
    named = set(tasks.environment_names)
    return [each for each in loaded if each.name in named]


def print_needs(console: Console, environments: Sequence[Environment]) -> None:
    """Print what a session of each environment needs."""
    for each in environments:
        text = f"A session of {each.name} needs {each.needs}."
        console.print(cell(text, "dim"), soft_wrap=True)


def read_limits(given: Sequence[str]) -> Limits:
    """Read `NAME=VALUE` limits.

    Raises:
        HudMcpError: A name is unknown, or a value out of range.
    """
    values: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or name not in Limits.model_fields:
            hint = did_you_mean(name, Limits.model_fields)
            raise HudMcpError(
                f"--limit {item}: write NAME=VALUE.{hint} The limits are: "
                f"{', '.join(Limits.model_fields)}."
            )
        values[name] = value
    try:
        return Limits.model_validate(values)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        said = first["msg"].partition(",")[0].removeprefix("Input ")
        name = first["loc"][0]
        raise HudMcpError(f"--limit {name}={first['input']}: it {said}.") from None


logger = logging.getLogger(__name__)

_LOOK_S = 0.5


class Reloading:
    """A follower of the files of the served environments. `stack` keeps copies while it serves."""

    def __init__(self, options: dict[str, Any], stack: AsyncExitStack) -> None:
        self._options = options
        self._stack = stack
        self._environments: list[Any] = []
        self._tasks = list(find_sets(options["tasksets"]).paths if options["tasksets"] else ())

    def freeze(self, environments: Sequence[Any]) -> None:
        """Have worlds read copies of their files from now on: held sessions keep their version."""
        for environment in environments:
            files = environment.file.is_file() and environment.world.files(environment.folder)
            if any(True for _ in files or ()):
                folder = tempfile.TemporaryDirectory(prefix="hud-mcp-version-")
                environment.freeze(Path(self._stack.enter_context(folder)).resolve())
        self._environments = list(environments)

    @asynccontextmanager
    async def following(self, sessions: Any) -> AsyncGenerator[None]:
        """Load edited files again while the body runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, sessions)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _follow(self, sessions: Any) -> None:
        loaded = await anyio.to_thread.run_sync(self._stamps)
        while True:
            await anyio.sleep(_LOOK_S)
            now = await anyio.to_thread.run_sync(self._stamps)
            if now == loaded:
                continue
            await anyio.sleep(_LOOK_S)
            if await anyio.to_thread.run_sync(self._stamps) != now:
                continue  # somebody is still writing
            await self._load(sessions)
            loaded = await anyio.to_thread.run_sync(self._stamps)
            if any(loaded.get(path) != stamp for path, stamp in now.items() if path in loaded):
                loaded = now  # written once more while it was loaded

    def _stamps(self) -> Stamps:
        return stamps_of(inputs_of(self._environments, self._tasks))

    async def _load(self, sessions: Any) -> None:
        """Serve the changed files. A mistake in them is logged, and changes nothing."""
        options = self._options
        try:
            with forgotten(python_files(self._environments)):
                found, tasksets = load_sources(
                    options["sources"], options["tasksets"], split=options["split"]
                )
                changed, served = self._told_apart(found, sessions)
                await sessions.prepare(changed)
                sessions.replace(served, tasksets)
        except (HudMcpError, SystemExit) as exc:
            logger.warning("not loaded, so the version before is served: %s", exc)
            return
        self._environments = served
        names = ", ".join(each.name for each in changed) or "the tasks"
        logger.info("loaded again: %s; sessions that are held keep their version", names)

    def _told_apart(self, found: Sequence[Any], sessions: Any) -> tuple[list[Any], list[Any]]:
        """Return the changed environments; then all, with the served ones where equal."""
        before = sessions.environments
        changed = [
            each
            for each in found
            if each.name not in before or before[each.name].digest != each.digest
        ]
        former = self._environments
        self.freeze(changed)
        self._environments = former
        return changed, [each if each in changed else before[each.name] for each in found]

"""Options of commands: from declared fields, those that several share, and their completions."""

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import anyio
import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from pydantic import BaseModel

from hud_mcp.errors import HudMcpError
from hud_mcp.loading.public import SETS
from hud_mcp.loading.source import shipped_environments, shipped_folder
from hud_mcp.record.place import STORE_VARIABLE, check_place, is_store_named
from hud_mcp.registry import load
from hud_mcp.values.option import Declared, declared

if TYPE_CHECKING:
    from hud_mcp.store import Store

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class WholeNumber(click.IntRange):
    """A range of integers, whose errors speak of whole numbers."""

    name = "whole number"


class FiniteFloat(click.FloatRange):
    """A range without `nan`, which is on no side of a bound, and `inf`, which JSON cannot hold."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is not a finite number.", param, ctx)
        return found


SEED = WholeNumber(0, 2**63 - 1)
"""A seed as a record can hold it."""

split_option = click.option(
    "--split", metavar="NAME", help="Only tasks of one split or difficulty, such as hard."
)
"""The option that chooses tasks by the split or the difficulty in their metadata."""


def filter_option(*names: str) -> Callable[[CommandT], CommandT]:
    """Give a command the option that chooses tasks by a pattern, under these names."""
    return click.option(
        *names,
        "pattern",
        metavar="PATTERN",
        help="Only tasks whose id, environment or template matches a shell pattern or contains "
        "this text.",
    )


allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="HOST",
    help="Let rows of tasks open this local or private host, such as localhost:8080.",
)
"""The option of each command that holds sessions."""


def _refuse_record(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise click.UsageError(
            "There is no --record any more: every step is written before its reply, and waits "
            "for no disk. Leave it out."
        )


no_record_option = click.option(
    "--record", hidden=True, expose_value=False, callback=_refuse_record
)


def store_option(function: CommandT) -> CommandT:
    """Give a command `--store`."""
    option = click.option(
        "--store",
        metavar="URL",
        hidden=True,
        show_default=f"{STORE_VARIABLE}, else your own",
        help="The record: a SQLite file, or a PostgreSQL URL.",
    )
    return option(function)


json_option = click.option(
    "--json", "as_json", is_flag=True, hidden=True, help="Print JSON, a line for each row."
)
"""The option of a command that prints JSON."""


def in_store(command: str, named: str | None) -> str:
    """Return a command as a person types it next, with the `--store` of this one."""
    return command if named is None else f"{command} --store {shlex.quote(named)}"


def is_there(store: "Store", named: str | None) -> bool:
    """Whether there is a store to read; the user's own may not be there yet.

    Raises:
        SourceNotFound: The user named a store that does not exist.
    """
    if is_store_named(named):
        store.look_for_it()
    return store.exists


def field_options(
    model: type[BaseModel], complete: Mapping[str, Any] | None = None
) -> Callable[[CommandT], CommandT]:
    """Give a command an option for each field of a model that declares one.

    Args:
        model: The class with the fields.
        complete: The shell completions, by the field's name.
    """

    def decorate(function: CommandT) -> CommandT:
        for each in reversed(list(declared(model))):
            function = _option(each, (complete or {}).get(each.name))(function)
        return function

    return decorate


def field_groups(*models: type[BaseModel]) -> dict[str, list[str]]:
    """Return the parameters of each group of a command's help that fields declare."""
    groups: dict[str, list[str]] = {}
    for each in (each for model in models for each in declared(model)):
        if not each.option.is_rare:
            groups.setdefault(each.option.heading, []).append(each.name)
    return groups


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether somebody gave a value to a parameter."""
    return ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)


def given_fields(ctx: click.Context, model: type[BaseModel]) -> dict[str, Any]:
    """Return the values that somebody gave to a model's fields."""
    return {
        each.name: ctx.params[each.name] for each in declared(model) if is_given(ctx, each.name)
    }


def _option(declared_: Declared, complete: Any) -> Callable[[CommandT], CommandT]:
    field, option = declared_.field, declared_.option
    kinds = _kinds(field.annotation)
    arguments: dict[str, Any] = {
        "help": field.description,
        "hidden": option.is_rare,
        "metavar": option.metavar,
        "shell_complete": complete,
        "default": field.default,
    }
    if bool in kinds:
        arguments["is_flag"] = True
    elif get_origin(kinds[0]) is tuple and str in get_args(kinds[0]):
        arguments["multiple"] = True
    elif option.bare is not None:
        arguments |= {"is_flag": False, "flag_value": option.bare}
    else:
        arguments["type"] = _type(kinds, declared_)
    return click.option(declared_.flag, declared_.name, **arguments)


def _kinds(annotation: Any) -> Sequence[Any]:
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for kind in get_args(annotation) if kind is not NoneType]
    return [annotation]


def _type(kinds: Sequence[Any], declared_: Declared) -> click.ParamType[Any] | None:
    choices = declared_.option.choices or (
        get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    )
    if choices:
        return click.Choice(choices)
    bounds = {
        name: getattr(each, name)
        for each in declared_.field.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(each, name)
    }
    if int in kinds and declared_.option.metavar == "N":
        highest = bounds["lt"] - 1 if "lt" in bounds else None
        return WholeNumber(bounds.get("ge"), highest)
    if float in kinds:
        return FiniteFloat(bounds.get("ge", bounds.get("gt")), min_open="gt" in bounds)
    return None


_MOST = 100
_FILE = "file"
"""Tells the shell to complete files where no name fits."""

Items = list[CompletionItem]


def complete_tasksets(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Shipped and public sets by name, else files."""
    shipped = sorted(each.stem for each in shipped_folder("taskset_data").glob("*.jsonl"))
    public = [(each.title, each.about) for each in SETS.values()]
    return _fitting([*((name, "shipped") for name in shipped), *public], incomplete, files=True)


def complete_sources(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Shipped environments by name, else files."""
    names = [(name, "shipped") for name in shipped_environments()]
    return _fitting(names, incomplete, files=True)


def complete_jobs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the newest jobs of the store that the command line names before."""
    return _fitting(_recorded(ctx, _jobs), incomplete)


def complete_records(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Jobs, and trajectories that belong to none."""
    found = _recorded(ctx, _jobs) if incomplete[:1] in ("", "j") else []
    return _fitting([*found, *_recorded(ctx, _trajectories)], incomplete)


def _fitting(names: Iterable[tuple[str, str]], incomplete: str, *, files: bool = False) -> Items:
    found = [CompletionItem(n, help=about) for n, about in names if n.startswith(incomplete)]
    return [CompletionItem(incomplete, type=_FILE), *found] if files else found


def _recorded(ctx: click.Context, read: Callable[[Any], Any]) -> list[tuple[str, str]]:
    """Return the ids of a store. An unreadable store has none, as a shell cannot show errors."""
    named = ctx.params.get("store")
    try:
        check_place(named)
        return anyio.run(partial(_read, named, read))
    except HudMcpError:
        return []


async def _read(named: str | None, read: Callable[[Any], Any]) -> list[tuple[str, str]]:
    async with load("hud_mcp.store:opened_store")(named) as store:
        return await read(store) if store.exists else []


async def _jobs(store: Any) -> list[tuple[str, str]]:
    return [(job.id, job.name) for job in await store.list_jobs(_MOST)]


async def _trajectories(store: Any) -> list[tuple[str, str]]:
    return [(run.id, run.task_id) for run in await store.list_trajectories(limit=_MOST)]

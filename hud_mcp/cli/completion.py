"""The completions of a shell: names of tasksets and sources, ids of jobs and trajectories."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import anyio
import click
from click.shell_completion import CompletionItem

from hud_mcp.cli import surfaces
from hud_mcp.errors import HudMcpError
from hud_mcp.record.place import check_place

__all__ = ["complete_jobs", "complete_records", "complete_sources", "complete_tasksets"]

_MOST = 100
_FILE = "file"
"""Tells the shell to complete files where no name fits."""

Items = list[CompletionItem]


def complete_tasksets(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Shipped and public sets by name, else files."""
    shipped = sorted(each.stem for each in surfaces.shipped_folder("taskset_data").glob("*.jsonl"))
    public = [(each.title, each.about) for each in surfaces.SETS.values()]
    return _fitting([*((name, "shipped") for name in shipped), *public], incomplete, files=True)


def complete_sources(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Shipped environments by name, else files."""
    names = [(name, "shipped") for name in surfaces.shipped_environments()]
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
    store = surfaces.Store(named)
    try:
        return await read(store) if store.exists else []
    finally:
        await store.close()


async def _jobs(store: Any) -> list[tuple[str, str]]:
    return [(job.id, job.name) for job in await store.list_jobs(_MOST)]


async def _trajectories(store: Any) -> list[tuple[str, str]]:
    return [(run.id, run.task_id) for run in await store.list_trajectories(limit=_MOST)]

"""Where the environments of a job run: in one server, in several, or in the command's process."""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import click
from click.core import ParameterSource

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.cluster.nodes import AUTO, read_ray
from hud_mcp.rollout.served import EACH, place_workers, read_workers

__all__ = ["where_options", "with_room"]

F = TypeVar("F", bound=Callable[..., Any])


def where_options(function: F) -> F:
    """Add `--workers`, `--ray` and `--in-process` to a command."""
    for option in (
        click.option(
            "--in-process",
            is_flag=True,
            help="Run environments in this process, with no server.",
        ),
        click.option(
            "--workers",
            metavar="N|auto",
            callback=_read,
            help="Servers that share the runs; auto is one a core.",
        ),
        click.option(
            "--ray",
            metavar="[ADDRESS]",
            is_flag=False,
            flag_value=AUTO,
            callback=_read_cluster,
            help="Run servers on a Ray cluster (put after TASKSET).",
        ),
    ):
        function = option(function)
    return function


def _read(_ctx: click.Context, _option: click.Parameter, given: str | None) -> int | None:
    try:
        return read_workers(given)
    except HudMcpError as exc:
        raise click.BadParameter(f"{given!r}; give a number from 1, or auto.") from exc


def _read_cluster(_ctx: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    try:
        return read_ray(given)
    except HudMcpError as exc:
        raise click.BadParameter(str(exc)) from exc


def with_room(ctx: click.Context, options: dict[str, Any]) -> None:
    """Let so many runs go on at once as the workers take, unless somebody said how many."""
    if options["resume"] is None:
        options["workers"] = anyio.run(place_workers, options["workers"], options["ray"])
    given = ctx.get_parameter_source("max_concurrent") is ParameterSource.COMMANDLINE
    if options["workers"] is not None and not given and options["max_concurrent"] is not None:
        options["max_concurrent"] = EACH * options["workers"]

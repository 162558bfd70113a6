"""`hud-mcp functions`: what `setup` and `evaluate` of a task may name."""

from collections.abc import Iterable
from typing import Any

import click
import orjson
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hud_mcp.cli.help import Command
from hud_mcp.cli.options import json_option
from hud_mcp.cli.output import cell, make_console
from hud_mcp.cli.sources import print_needs
from hud_mcp.environment import Environment
from hud_mcp.environment.function import REGISTERED, Function
from hud_mcp.loading.source import load_environments
from hud_mcp.registry import names_of

GYMS = ("qa", "hud-browser", "hud-shell")
"""The gyms that come with the package; between them they have every function of the package."""

_INDENT = 4
_FIELDS = ("name", "signature", "use", "of", "description", "weak")


@click.command(cls=Command)
@click.argument("source", required=False, metavar="[ENV|SOURCE]")
@json_option
def command(source: str | None, as_json: bool) -> None:  # noqa: FBT001  # click passes it by name
    """List the functions that a task's `setup` and `evaluate` may name.

    SOURCE is an environment as `serve` takes it (browser, path/to/env.py, env.py:name). Without
    SOURCE, the command lists the functions of the shipped gyms qa, hud-browser and hud-shell. An
    agent can forge the result of a `weak` function. The column says how; evaluate another function
    too.
    """
    environments = load_environments([source] if source else GYMS)
    rows = list(_rows(environments))
    if as_json:
        for row in rows:
            click.echo(orjson.dumps(row))
        return
    console = make_console()
    for row in rows:
        _print_one(console, row)
    names = ", ".join(environment.name for environment in environments)
    console.print(cell(f"{len(rows)} functions of {names}.", "dim"))
    print_needs(console, environments)


def _print_one(console: Console, row: dict[str, Any]) -> None:
    whose = cell(f"  {row['use']}, of {row['of']}", "dim")
    console.print(Text.assemble(cell(row["signature"], "bold"), whose))
    console.print(Padding(cell(row["description"]), (0, 0, 0, _INDENT)))
    if row["weak"]:
        console.print(Padding(cell(f"Weak: {row['weak']}", "yellow"), (0, 0, 0, _INDENT)))


def _rows(environments: Iterable[Environment]) -> Iterable[dict[str, Any]]:
    seen: set[tuple[str, str]] = set()
    # An environment lists the built-in ones alone; a name of another distribution is found too.
    everywhere = {name: REGISTERED[name] for name in names_of("functions")}
    for environment in environments:
        for name, function in {**everywhere, **environment.functions}.items():
            of = _owner(function, environment)
            if (of, name) in seen:
                continue
            seen.add((of, name))
            values = (name, function.signature, function.use, of, function.description)
            yield dict(zip(_FIELDS, (*values, function.weak), strict=True))


def _owner(function: Function, environment: Environment) -> str:
    """Return the owner of a function: every answer, a kind of world, or one environment."""
    if function is REGISTERED.get(function.name):
        return "answers"
    is_worlds = function in environment.world.functions
    return environment.world.name if is_worlds else environment.name

"""The greeting of `hud-mcp serve` for a person who started it on a terminal."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hud_mcp.cli import surfaces
from hud_mcp.loading.source import is_also_a_set, lasting_source

__all__ = [
    "configured_arguments",
    "greet_over_http",
    "greet_over_stdio",
    "is_watched",
]

_PLACES = frozenset({"tasksets", "store", "python", "operator_token_file"})
"""Options whose values are files, perhaps: a client starts the server from another folder."""


def is_watched(options: Mapping[str, Any]) -> bool:
    """Whether a person reads the server's output: a client has a pipe in place of a terminal."""
    return _is_terminal(2) and (options["http"] is not None or _is_terminal(0))


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:  # closed
        return False


def configured_arguments(ctx: click.Context) -> list[str]:
    """Return a called command's arguments as a client's configuration has them, in any folder."""
    arguments = [ctx.info_name or ""]
    sources = ctx.params["sources"] or surfaces.default_sources()
    for param in ctx.command.params:
        given = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if isinstance(param, click.Option) and given and param.expose_value:
            arguments += _as_given(param, ctx.params[param.name or ""])
    return [*arguments, *(lasting_source(each) for each in sources)]


def _as_given(option: click.Option, value: Any) -> list[str]:
    name = option.opts[-1]
    if option.is_flag:
        return [name] if value else []
    values: Sequence[Any] = value if option.multiple else [value]
    is_place = option.name in _PLACES
    return [part for each in values for part in (name, _lasting(each, is_place=is_place))]


def _lasting(value: Any, *, is_place: bool) -> str:
    text = str(value)
    return str(Path(text).absolute()) if is_place and _may_be_file(text) else text


def _may_be_file(text: str) -> bool:
    """Whether a value names a file: a store's may be a URL, and a taskset's the name of a set."""
    return Path(text).exists() or ("://" not in text and Path(text).suffix != "")


def greet_over_stdio(sessions: Any, arguments: Sequence[str]) -> str:
    """Return the text about the served sessions, with the configuration that starts them."""
    program, *first = surfaces.own_command()
    shown = {"mcpServers": {"hud-mcp": {"command": program, "args": [*first, *arguments]}}}
    return (
        f"hud-mcp serves {_served(sessions)} over standard input and output, and waits for an MCP "
        "client.\nA client starts it by itself: `hud-mcp install` configures one, or paste "
        "this.\n\n"
        f"{json.dumps(shown, indent=2, ensure_ascii=False)}\n\nCtrl-C ends it."
    )


def greet_over_http(sessions: Any, url: str, *, has_tokens: bool) -> str:
    """Return the text about the sessions that a URL serves. It shows no token."""
    entry: dict[str, Any] = {"type": "http", "url": url}
    if has_tokens:
        entry["headers"] = {"Authorization": "Bearer TOKEN"}
    shown = {"mcpServers": {"hud-mcp": entry}}
    token = " TOKEN is one of this server's." if has_tokens else ""
    return (
        f"hud-mcp serves {_served(sessions)} at {url}, and waits for MCP clients.\n"
        f"Paste this into a client's configuration.{token}\n\n"
        f"{json.dumps(shown, indent=2, ensure_ascii=False)}\n\nCtrl-C ends it."
    )


def _served(sessions: Any) -> str:
    names = ", ".join(sessions.environments)
    count = len(sessions.tasks)
    also = [name for name in sessions.environments if is_also_a_set(name)]
    sets = f" [the environment; its set: --taskset {also[0]}]" if also else ""
    return f"{names}{sets} ({count} {'task' if count == 1 else 'tasks'})" if count else names + sets

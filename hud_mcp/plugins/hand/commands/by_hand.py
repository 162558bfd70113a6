"""The way of `hud-mcp task` to the sessions that the background server holds."""

import base64
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import click
import orjson

from hud_mcp.base.text import without_mark
from hud_mcp.cli.options import json_option, store_option
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hand import commands
from hud_mcp.record.place import check_place
from hud_mcp.record.transcript import visible_line
from hud_mcp.session.log import configure_logging
from hud_mcp.values.call import CORE_TOOLS, OWN_SESSION

_COMMANDS = {
    "list_tasks": "`hud-mcp task list`",
    "start_task": "`hud-mcp task start`",
    "task_status": "`hud-mcp task ps`",
    "cancel_task": "`hud-mcp task cancel`",
}
_TOOL = re.compile(rf"`?\b({'|'.join(_COMMANDS)})\b`?")

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_SHARED: dict[str, tuple[Sequence[str], dict[str, Any]]] = {
    "session": (
        ["--session"],
        {"metavar": "ID", "help": "The session's id, or its beginning."},
    ),
    "url": (
        ["--url", "-u"],
        {
            "metavar": "URL",
            "help": "The address of a HUD control channel: tcp://[token@]host:port.",
        },
    ),
    "source": (
        ["--source", "-s", "sources"],
        {
            "multiple": True,
            "metavar": "SOURCE",
            "show_default": "what is open, else ./env.py, else the quickstart's",
            "help": "Sources of environments, as `hud-mcp serve` takes them.",
        },
    ),
}


def shared_options() -> list[click.Option]:
    """Return the options that the group shows for its commands."""
    return [click.Option(flags, **details) for flags, details in _SHARED.values()]


def with_options(*names: str) -> Callable[[FunctionT], FunctionT]:
    """Add options of the group to a command, hidden there, and those of the store and of JSON."""

    def add(function: FunctionT) -> FunctionT:
        function = store_option(json_option(function))
        for flags, details in (_SHARED[name] for name in names):
            function = click.option(*flags, hidden=True, **details)(function)
        return function

    return add


def call(
    options: Mapping[str, Any],
    name: str,
    arguments: Mapping[str, Any],
    *,
    starts: bool = False,
    sources: Sequence[str] = (),
    tasksets: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
) -> Any:
    """Call a tool of a store's server.

    A `session` among the options is added to the arguments: None is the only open one. `starts`
    starts a server that holds nothing, with these sources and tasksets.

    Raises:
        NothingOpen: Nothing is held, and nothing was started.
        Asked: The server refused, or the tool failed.
    """
    configure_logging("warning")
    check_place(options["store"])
    place = commands.place_of(options["store"])
    with (
        _reporting() as report,
        commands.reached(
            place,
            starts=starts,
            is_named=options.get("session") is not None,
            sources=sources,
            tasksets=tasksets,
            report=report,
        ),
    ):
        given = dict(arguments)
        if "session" in options:
            # A server's tool may have an argument `session` of its own.
            ours = "session" if name in CORE_TOOLS else OWN_SESSION
            given[ours] = _chosen(place, options["session"], report)
        result = anyio.run(partial(commands.ask, place, name, given, meta=meta, report=report))
    if name != "tools/list" and result.is_error:
        raise commands.Asked(in_commands(text_of(result)))
    return result


@contextmanager
def _reporting() -> Generator[Callable[[str], None]]:
    """Tell on standard error how long something takes; a terminal shows one changing line."""
    told: set[str] = set()
    is_terminal = sys.stderr.isatty()

    def tell(text: str) -> None:
        if is_terminal:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
        elif text not in told:
            click.echo(text, err=True)
        told.add(text)

    try:
        yield tell
    finally:
        if is_terminal and told:
            click.echo("\r\x1b[K", nl=False, err=True)


def _list_own(place: Any, report: Callable[[str], None]) -> list[dict[str, Any]]:
    result = anyio.run(partial(commands.ask, place, "task_status", {"list": True}, report=report))
    return cast("dict[str, Any]", result.structured_content or {}).get("sessions", [])


def _chosen(place: Any, given: str | None, report: Callable[[str], None]) -> str:
    """Return the meant session: by its id, by a beginning of it, or the only one.

    Raises:
        NothingOpen: None is held.
        HudMcpError: Several are meant.
    """
    rows = _list_own(place, report)
    if given is None:
        found = [row["session"] for row in rows if row["state"] != "ended"]
        if not found:
            raise commands.NothingOpen(commands.NOTHING)
    else:
        found = [row["session"] for row in rows if row["session"] == given]
        found = found or [row["session"] for row in rows if row["session"].startswith(given)]
        if not found:
            raise HudMcpError(
                f"unknown session {visible_line(given)!r}: `hud-mcp task ps --all` lists those of "
                "this store."
            )
    if len(found) > 1:
        raise HudMcpError(
            f"{len(found)} sessions are open: {', '.join(found)}. Say which with --session."
        )
    return found[0]


def in_commands(text: str) -> str:
    """Return a text of the server with a person's commands in place of tools."""
    return _TOOL.sub(lambda tool: _COMMANDS[tool[1]], text)


def text_of(result: Any) -> str:
    """Return the text of a reply."""
    return "\n".join(part.text for part in result.content if part.type == "text")


def save_image(result: Any, out: str) -> Path | None:
    """Write the picture of a reply; `-` is standard output. Return None if it has none.

    Raises:
        HudMcpError: It cannot be written.
    """
    parts = [part for part in result.content if part.type == "image"]
    if not parts:
        return None
    data = base64.b64decode(parts[0].data)
    if out == "-":
        sys.stdout.buffer.write(data)
        return Path(out)
    path = Path(out)
    try:
        path.write_bytes(data)
    except OSError as exc:
        raise HudMcpError(f"{path} cannot be written: {exc.strerror}.") from None
    return path.absolute()


def read_fields(given: Sequence[str]) -> dict[str, Any]:
    """Read `NAME=VALUE` fields, or one JSON object. A value that is not JSON is text.

    Raises:
        UsageError: One is neither.
    """
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        return read_object(given[0], f"{given[0]!r:.60}")
    fields: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{each!r}: write NAME=VALUE, such as x=10, or one JSON object.")
        try:
            fields[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            fields[name] = value
    return fields


def read_object(text: str, name: str) -> dict[str, Any]:
    """Read a JSON object; a wrong one is an error of usage of the argument `name`."""
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise click.UsageError(f"{name} is not JSON: {exc}. Write an object: {{…}}.") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"{name} is an object, not {type(value).__name__}.")  # pyright: ignore[reportUnknownArgumentType]  # JSON
    return cast("dict[str, Any]", value)


def own_tools(tools: Sequence[Any], core: frozenset[str]) -> list[Any]:
    """Return the tools that environments offer beside the core ones."""
    return [tool for tool in tools if tool.name not in core]


def error_of(exc: HudMcpError) -> bytes:
    """Return a failure as JSON, for programs."""
    error = {"message": str(getattr(exc, "message", exc)), "code": getattr(exc, "code", None)}
    return orjson.dumps({"error": error})


def read_text(name: str) -> str:
    """Return the text of a file; `-` is standard input.

    Raises:
        HudMcpError: It cannot be read, or is not text.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return without_mark(data).decode()
    except OSError as exc:
        raise HudMcpError(f"{name} cannot be read: {exc.strerror}.") from None
    except UnicodeDecodeError as exc:
        raise HudMcpError(f"{name} is not UTF-8: {exc}.") from None

"""`hud-mcp task`: start and grade single tasks over the HUD control channel."""

import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import click
import orjson

from hud_mcp.cli import surfaces
from hud_mcp.cli.sources import load, only_environment
from hud_mcp.errors import HudMcpError
from hud_mcp.serving.listening import LOOPBACK, port_of
from hud_mcp.session.log import LineStream, configure_logging

__all__ = ["command"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Ask = Callable[[Any], Awaitable[Any]]

_NOTHING_HELD = (-32600, "no task in progress")
"""How a server says that there is nothing to grade, HUD's word for word."""


@click.group("task")
def command() -> None:
    """List, start, grade and cancel tasks of a served environment, or of a file.

    A task that was started stays held after the command has ended; `grade` finds it by
    --session, or without it where it is the only one.
    """


def _placed(function: FunctionT) -> FunctionT:
    """Add the options that say where the environment is, and how to print."""
    options = (
        click.option("--url", "-u", metavar="URL", help="A channel: tcp://[token@]host:port."),
        click.option("--source", "-s", metavar="FILE", help="An environment, served in process."),
        click.option("--store", metavar="URL", help="With --source: where tasks are held."),
        click.option("--out", metavar="FILE", help="Write the whole reply to a file, as JSON."),
        click.option("--json", "as_json", is_flag=True, help="Print the whole reply, as JSON."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command("list")
@_placed
def list_command(**options: Any) -> None:
    """List what can be started."""

    async def ask(client: Any) -> Any:
        return await client.list_tasks()

    tasks = _run(options, ask)
    lines = [f"{t['id']}\t{t.get('description') or ''}".rstrip() for t in tasks]
    _print(options, tasks, "\n".join(lines))


@command.command("start")
@click.argument("task")
@click.option("--args", "-a", "args", metavar="JSON", default="{}", help="Its arguments.")
@click.option("--session", metavar="ID", help="Start it in this session, in place of its task.")
@_placed
def start_command(task: str, args: str, **options: Any) -> None:
    """Start a TASK and print what it asks; the session's id is on standard error."""
    given = _object(args)

    async def ask(client: Any) -> Any:
        started = await client.start(task, given)
        return {"session": client.session_id, **started}

    reply = _run(options, ask)
    if not options["as_json"]:
        click.echo(f"session: {reply['session']}", err=True)
    prompt = reply.get("prompt")
    _print(options, reply, prompt if isinstance(prompt, str) else orjson.dumps(prompt).decode())


@command.command("grade")
@click.argument("task", required=False)
@click.option("--args", "-a", "args", metavar="JSON", help="With TASK: its arguments.")
@click.option("--answer", help="The answer.")
@click.option("--answer-file", metavar="FILE", help="A file with the answer; - is standard input.")
@click.option("--session", metavar="ID", help="The session that holds the task.")
@_placed
def grade_command(
    task: str | None,
    args: str | None,
    answer: str | None,
    answer_file: str | None,
    **options: Any,
) -> None:
    """Submit the answer of a task that was started, and print its score.

    With TASK, and where no task is held, it is started first, as HUD's own command does.
    """
    if (answer is None) == (answer_file is None):
        raise click.UsageError("Give either --answer or --answer-file.")
    if task is None and args is not None:
        raise click.UsageError("--args goes with TASK.")
    if task is not None and options["session"] is not None:
        raise click.UsageError("--session names what is graded; leave out TASK.")
    given = _object(args or "{}")
    text = answer if answer_file is None else _read_answer(answer_file)

    async def ask(client: Any) -> Any:
        try:
            return await client.grade(text)
        except surfaces.ChannelRefused as exc:
            if task is None or (exc.code, exc.message) != _NOTHING_HELD:
                raise
        click.echo(f"No task was held: {task} was started, and is graded as it is.", err=True)
        await client.start(task, given)
        return await client.grade(text)

    reply = _run(options, ask)
    _print(options, reply, str(reply.get("score")))


@command.command("cancel")
@click.option("--session", metavar="ID", required=True, help="The session that holds the task.")
@_placed
def cancel_command(**options: Any) -> None:
    """End a task that was started, without a grade."""

    async def ask(client: Any) -> Any:
        await client.cancel()
        return {"cancelled": True}

    _print(options, _run(options, ask), "cancelled")


def _run(options: dict[str, Any], ask: Ask) -> Any:
    """Ask, and return the reply; a refusal ends the command with 1."""
    if (options["url"] is None) == (options["source"] is None):
        raise click.UsageError("Give either --url or --source.")
    if options["url"] is not None and options["store"] is not None:
        raise click.UsageError("--store goes with --source.")
    configure_logging("warning")
    printed, sys.stdout = sys.stdout, LineStream(sys.stderr)  # a template may print
    try:
        reply = anyio.run(_ask, options, ask)
    except HudMcpError as exc:
        if not options["as_json"]:
            raise
        error = {"message": str(getattr(exc, "message", exc)), "code": getattr(exc, "code", None)}
        click.echo(orjson.dumps({"error": error}).decode(), file=printed)
        sys.exit(1)
    finally:
        sys.stdout = printed
    return reply


async def _ask(options: dict[str, Any], ask: Ask) -> Any:
    async with (
        _placement(options) as place,
        surfaces.ChannelClient.connect(place, session_id=options.get("session")) as client,
    ):
        return await ask(client)


@asynccontextmanager
async def _placement(options: dict[str, Any]) -> AsyncGenerator[Any]:
    """Where the channel is; with --source, one that is served meanwhile."""
    if options["url"] is not None:
        yield surfaces.read_place(options["url"])
        return
    environments, tasksets = load([options["source"]], [])
    environment = only_environment(environments, "--source")
    store = surfaces.Store(options["store"])
    sessions = surfaces.Sessions(
        environments, store=store, tasksets=tasksets, limits=surfaces.CHANNEL_LIMITS
    )
    token = secrets.token_hex(16)  # of what others on this machine might connect to meanwhile
    channel = surfaces.Channel(environment, sessions=sessions, token=token, closes_sessions=True)
    try:
        server = await channel.listen()
        yield surfaces.Place(LOOPBACK, port_of(server), token)
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


def _object(text: str) -> dict[str, Any]:
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise click.UsageError(f"--args is not JSON: {exc}. Write an object: {{…}}.") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"--args is an object, not {type(value).__name__}.")
    return value  # pyright: ignore[reportUnknownVariableType]


def _read_answer(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode()
    except OSError as exc:
        raise click.ClickException(f"{name} cannot be read: {exc.strerror}.") from None
    except UnicodeDecodeError as exc:
        raise click.ClickException(f"{name} is not UTF-8: {exc}.") from None


def _print(options: dict[str, Any], reply: Any, text: str) -> None:
    click.echo(orjson.dumps(reply).decode() if options["as_json"] else text)
    if options["out"] is not None:  # last: what was done is told where it cannot be written
        _write(options["out"], reply)


def _write(name: str, reply: Any) -> None:
    try:
        Path(name).write_bytes(orjson.dumps(reply, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as exc:
        raise click.ClickException(f"{name} cannot be written: {exc.strerror}.") from None

"""`hud-mcp task`: single tasks by hand, or over the HUD control channel."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
import orjson

from hud_mcp.cli.help import Group
from hud_mcp.cli.options import WholeNumber
from hud_mcp.cli.sources import load_sources
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hand import commands
from hud_mcp.plugins.hand.commands import by_hand
from hud_mcp.plugins.hand.commands.session_commands import (
    act_command,
    answer_command,
    call_command,
    hold_command,
    ps_command,
    screenshot_command,
    skill_command,
    step_command,
    stop_command,
    tools_command,
)
from hud_mcp.registry import service
from hud_mcp.session.log import LineStream, configure_logging

Ask = Callable[[Any], Awaitable[Any]]

_NOTHING_HELD = (-32600, "no task in progress")
"""The error of a server that has nothing to grade, HUD's word for word."""


@click.group("task", Group, shared=by_hand.shared_options())
def command() -> None:
    """Start, work on and grade single tasks, one command at a time.

    A background server holds the sessions, with their browsers and shells. Each store has one, on a
    socket that only you can use. The first command starts the server, and it ends after its last
    session. With --url, the tasks come from a server on the HUD control channel.
    """


def _placed(*more: str) -> Callable[[by_hand.FunctionT], by_hand.FunctionT]:
    """Add the options that say where tasks are, and how to print."""
    out = click.option(
        "--out", metavar="FILE", hidden=True, help="Write the whole reply to a file, as JSON."
    )
    return lambda function: by_hand.with_options("url", "source", *more)(out(function))


@command.command("list")
@_placed()
def list_command(**options: Any) -> None:
    """List the tasks and templates that `hud-mcp task start` can start, by id."""

    async def ask(client: Any) -> Any:
        return await client.list_tasks()

    rows = _run(options, ask, lambda: _listed(options["sources"]))
    lines = [f"{row['id']}\t{row.get('description') or ''}".rstrip() for row in rows]
    _print(options, rows, "\n".join(lines))


@command.command("start")
@click.argument("task")
@click.option("--args", "-a", "args", metavar="JSON", default="{}", help="The task's arguments.")
@click.option(
    "--seed",
    type=WholeNumber(),
    metavar="N",
    help="The seed of the world's random choices; not with --url.",
)
@click.option("--context", metavar="JSON", help="Features of the world to change; not with --url.")
@click.option(
    "--taskset",
    "tasksets",
    multiple=True,
    metavar="FILE",
    help="Make the tasks of this file available by their ids.",
)
@_placed("session")
def start_command(task: str, args: str, **options: Any) -> None:
    """Start a TASK, by the id of a task or a template, and print its prompt.

    The command prints the session's id on standard error. Other commands need it only if several
    sessions are open.
    """
    given = by_hand.read_object(args, "--args")
    if options["url"] is None and options["session"] is not None:
        raise click.UsageError(
            "--session of `start` needs --url; without it, each start is a new session."
        )

    async def ask(client: Any) -> Any:
        started = await client.start(task, given)
        return {"session": client.session_id, **started}

    reply = _run(options, ask, lambda: _start_by_hand(task, given, options))
    if not options["as_json"]:
        click.echo(f"session: {reply['session']}", err=True)
    prompt = reply.get("prompt")
    _print(options, reply, prompt if isinstance(prompt, str) else orjson.dumps(prompt).decode())


command.add_command(tools_command)
command.add_command(act_command)
command.add_command(step_command)
command.add_command(call_command)
command.add_command(screenshot_command)
command.add_command(answer_command)


@command.command("grade")
@click.argument("task", required=False)
@click.option("--args", "-a", "args", metavar="JSON", help="With TASK: the task's arguments.")
@click.option("--answer", metavar="ANSWER", help="The answer.")
@click.option(
    "--answer-file",
    hidden=True,
    metavar="FILE",
    help="A file with the answer; - is standard input.",
)
@_placed("session")
def grade_command(
    task: str | None,
    args: str | None,
    answer: str | None,
    answer_file: str | None,
    **options: Any,
) -> None:
    """Submit the answer of a started task, and print only its score.

    If no task is open, the command starts TASK first, as HUD's own command does.
    """
    if (answer is None) == (answer_file is None):
        raise click.UsageError("Give either --answer or --answer-file.")
    if task is None and args is not None:
        raise click.UsageError("--args goes with TASK.")
    if task is not None and options["session"] is not None:
        raise click.UsageError("--session names the task already; leave out TASK.")
    given = by_hand.read_object(args or "{}", "--args")
    text = answer if answer_file is None else by_hand.read_text(answer_file)

    async def ask(client: Any) -> Any:
        try:
            return await client.grade(text)
        except HudMcpError as exc:
            refusal = (getattr(exc, "code", None), getattr(exc, "message", None))
            if task is None or refusal != _NOTHING_HELD:
                raise
        _tell_started(task)
        await client.start(task, given)
        return await client.grade(text)

    reply = _run(options, ask, lambda: _grade_by_hand(task, given, text or "", options))
    score = reply.get("score")
    _print(options, reply, "graded" if score is None else str(score))


@command.command("cancel")
@_placed("session")
def cancel_command(**options: Any) -> None:
    """Cancel a started task, without a grade."""
    if options["url"] is not None and options["session"] is None:
        raise click.UsageError("Missing option '--session'.")

    async def ask(client: Any) -> Any:
        await client.cancel()
        return {"cancelled": True}

    def cancel() -> Any:
        by_hand.call(options, "cancel_task", {})
        return {"cancelled": True}

    _print(options, _run(options, ask, cancel), "cancelled")


command.add_command(ps_command)
command.add_command(stop_command)
command.add_command(skill_command)
command.add_command(hold_command)


def _run(options: dict[str, Any], ask: Ask, by_hand_: Callable[[], Any]) -> Any:
    if options["url"] is not None and options["sources"]:
        raise click.UsageError("Give either --url or --source.")
    configure_logging("warning")
    printed, sys.stdout = sys.stdout, LineStream(sys.stderr)  # a file that is loaded may print
    try:
        return by_hand_() if options["url"] is None else anyio.run(_ask, options, ask)
    except HudMcpError as exc:
        if not options["as_json"]:
            raise
        click.echo(by_hand.error_of(exc).decode(), file=printed)
        sys.exit(1)
    finally:
        sys.stdout = printed


async def _ask(options: dict[str, Any], ask: Ask) -> Any:
    connect = service("channel client").connect
    async with connect(options["url"], session_id=options.get("session")) as client:
        return await ask(client)


def _listed(sources: tuple[str, ...]) -> list[dict[str, Any]]:
    environments, tasksets = load_sources(sources, [])
    rows: list[dict[str, Any]] = [
        {"id": task.id, "description": task.title, "environment": task.env}
        for tasks in tasksets
        for task in tasks
    ]
    for environment in environments:
        for template in environment.templates.values():
            row = {
                "id": template.id,
                "description": template.description,
                "environment": environment.name,
                "args": template.arguments.schema,
            }
            returns = template.returns_schema
            rows.append(row if returns is None else {**row, "returns": returns})
    return rows


def _start_by_hand(task: str, args: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"task": task, "arguments": args, "seed": options.get("seed")}
    if (context := options.get("context")) is not None:
        given["context"] = by_hand.read_object(context, "--context")
    result = by_hand.call(
        {"store": options["store"]},
        "start_task",
        {name: value for name, value in given.items() if value not in (None, {})},
        starts=True,
        sources=options["sources"],
        tasksets=options.get("tasksets", ()),
    )
    told = dict(result.structured_content or {})
    meta: dict[str, Any] = result.meta or {}
    trajectory = meta.get("hud-mcp/start", {}).get("trajectory")
    told.pop("next", None)  # which names tools, not commands
    return {**told, "session": trajectory}


def _grade_by_hand(
    task: str | None, args: dict[str, Any], answer: str, options: dict[str, Any]
) -> dict[str, Any]:
    submit = partial(by_hand.call, options, "response", {"answer": answer})
    try:
        result = submit()
    except commands.NothingOpen:
        if task is None:
            raise
        _tell_started(task)
        started = _start_by_hand(task, args, options)
        result = by_hand.call(
            {**options, "session": started["session"]}, "response", {"answer": answer}
        )
    told = dict(result.structured_content or {})
    return {"score": told.get("reward"), **told}


def _tell_started(task: str) -> None:
    click.echo(f"No task was held: {task} was started, and is graded as it is.", err=True)


def _print(options: dict[str, Any], reply: Any, text: str) -> None:
    click.echo(orjson.dumps(reply).decode() if options["as_json"] else text)
    if options["out"] is not None:  # last: what was done is told where it cannot be written
        _write(options["out"], reply)


def _write(name: str, reply: Any) -> None:
    try:
        Path(name).write_bytes(orjson.dumps(reply, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as exc:
        raise click.ClickException(f"{name} cannot be written: {exc.strerror}.") from None

"""The commands of `hud-mcp task` that are about sessions in the background."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import anyio
import click
import orjson

from hud_mcp.cli.help import Command
from hud_mcp.cli.options import WholeNumber, json_option, store_option
from hud_mcp.cli.output import cell, make_console, make_table, print_table
from hud_mcp.cli.process import raise_file_limit
from hud_mcp.cli.sources import load_sources
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hand import commands
from hud_mcp.plugins.hand.commands import by_hand
from hud_mcp.session.log import LineStream, configure_logging
from hud_mcp.session.spec import Limits
from hud_mcp.values.call import CORE_TOOLS, OWN_SESSION

_LIMITS = Limits(idle_s=14_400, total_s=86_400)
"""A server with one user, who thinks for hours."""


_of_session = by_hand.with_options("session")
_image_option = click.option(
    "--image", metavar="FILE", help="Also write the picture of the observation to this file."
)


@click.command("act", Command)
@click.argument("action")
@click.argument("fields", nargs=-1, metavar="[NAME=VALUE]...")
@_image_option
@_of_session
def act_command(action: str, fields: tuple[str, ...], image: str | None, **options: Any) -> None:
    """Perform one ACTION with its fields, and print the text of the observation.

    Examples: `act click ref=e12`, `act type text=lamp`, `act press keys='["Enter"]'`. ACTION may
    also be one JSON object. `hud-mcp task tools` lists actions and fields.
    """
    if action.lstrip().startswith("{"):
        given = by_hand.read_fields((action, *fields))
    else:
        given = {"type": action, **by_hand.read_fields(fields)}
    _step(options, [given], image)


@click.command("step", Command)
@click.argument("actions", default="[]", metavar="[JSON]")
@_image_option
@_of_session
def step_command(actions: str, image: str | None, **options: Any) -> None:
    """Perform a JSON list of actions in order, and print the text of the observation.

    Without actions, the command only looks. `-` reads the actions from standard input.
    """
    text = by_hand.read_text("-") if actions == "-" else actions
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise click.UsageError(
            f'The actions are not JSON: {exc}. Write a list: \'[{{"type": "wait"}}]\'.'
        ) from None
    _step(options, given, image)


def _step(options: dict[str, Any], actions: Any, image: str | None) -> None:
    meta = {} if image is not None else {"hud-mcp/look": "text"}
    result = _call(options, "step", {"actions": actions}, meta=meta)
    saved = None if image is None else by_hand.save_image(result, image)
    _print(options, result, by_hand.text_of(result))
    if image is not None and saved is None:
        raise HudMcpError("This environment has no screen; it shows only text.")


@click.command("call", Command)
@click.argument("tool")
@click.argument("fields", nargs=-1, metavar="[NAME=VALUE]...")
@_of_session
def call_command(tool: str, fields: tuple[str, ...], **options: Any) -> None:
    """Call one of the environment's own tools, as in `call run_command command='ls -l'`."""
    result = _call(options, tool, by_hand.read_fields(fields))
    _print(options, result, by_hand.text_of(result))


@click.command("screenshot", Command)
@click.option(
    "--out",
    metavar="FILE",
    default="screenshot.png",
    help="The file to write; - is standard output.",
)
@_of_session
def screenshot_command(out: str, **options: Any) -> None:
    """Write a picture of the screen as PNG, and print the file's path."""
    result = _call(options, "screenshot", {"format": "png"})
    saved = by_hand.save_image(result, out)
    if saved is None:
        raise HudMcpError(by_hand.text_of(result) or "The screen gave no picture.")
    if options["as_json"]:
        click.echo(orjson.dumps({"file": str(saved), **(result.meta or {})}))
    elif out != "-":
        click.echo(str(saved))


@click.command("tools", Command)
@_of_session
def tools_command(**options: Any) -> None:
    """List the actions with their fields, and the environment's own tools."""
    tools: Sequence[Any] = _call({**options, "session": None}, "tools/list", {})
    if options["as_json"]:
        click.echo(orjson.dumps([tool.model_dump(mode="json", by_alias=True) for tool in tools]))
        return
    act = next((tool for tool in tools if tool.name == "act"), None)
    if act is not None:
        _print_tool("hud-mcp task act ACTION", act, skipped=("session", "observe", "after_step"))
    for tool in by_hand.own_tools(tools, CORE_TOOLS):
        ours = OWN_SESSION if OWN_SESSION in tool.input_schema["properties"] else "session"
        _print_tool(f"hud-mcp task call {tool.name}", tool, skipped=(ours,))
    of_all = {name: each for name, each in options.items() if name != "session"}
    listed: dict[str, Any] = _call(of_all, "list_tasks", {}).structured_content or {}
    for note in listed.get("notes", ()):
        make_console().print(cell(note), soft_wrap=True)


def _print_tool(usage: str, tool: Any, *, skipped: Sequence[str]) -> None:
    fields: dict[str, Any] = tool.input_schema.get("properties", {})
    console = make_console()
    console.print(cell(usage, "bold"), cell((tool.description or "").split("\n")[0]), sep="  ",
                  soft_wrap=True)  # fmt: skip
    for name, field in fields.items():
        if name in skipped:
            continue
        told = str(field.get("description", ""))
        values = ", ".join(map(str, field.get("enum", ())))
        shown = f"  {name}={field.get('type', 'JSON')}  {told}{' ' if values else ''}{values}"
        console.print(cell(shown.rstrip()), soft_wrap=True)


@click.command("answer", Command)
@click.argument("answer", required=False)
@click.option("--file", metavar="FILE", help="A file with the answer; - is standard input.")
@_of_session
def answer_command(answer: str | None, file: str | None, **options: Any) -> None:
    """Submit the ANSWER, and have the task graded. It may be empty: ''.

    The server grades a task once. The same answer again prints the same grade.
    """
    if (answer is None) == (file is None):
        raise click.UsageError("Give either ANSWER or --file.")
    text = answer if file is None else by_hand.read_text(file)
    result = _call(options, "response", {"answer": text})
    _print(options, result, by_hand.in_commands(by_hand.text_of(result)))


@click.command("ps", Command)
@click.option("--all", "ended", is_flag=True, help="List ended sessions too.")
@store_option
@json_option
def ps_command(*, ended: bool, store: str | None, as_json: bool) -> None:
    """List the open sessions and their server."""
    configure_logging("warning")
    place = commands.place_of(store)
    rows, running = anyio.run(partial(commands.list_open, place))
    shown = [row for row in rows if ended or row["state"] != "ended"]
    if as_json:
        for row in shown:
            click.echo(orjson.dumps(row))
        return
    console = make_console()
    if shown:
        table = make_table("session", "state", "since (UTC)", "task")
        for row in shown:
            table.add_row(*(cell(row[name]) for name in ("session", "state", "since", "task")))
        print_table(console, table, whole="session", least=("since (UTC)",))
    else:
        console.print("No session is open.")
    console.print(cell(running, "dim"), soft_wrap=True)


@click.command("stop", Command)
@store_option
def stop_command(store: str | None) -> None:
    """Stop the background server. The next command that names a session starts it again."""
    configure_logging("warning")
    place = commands.place_of(store)
    if not commands.stop_server(place):
        click.echo("No server is running.")
        return
    rows, _ = anyio.run(partial(commands.list_open, place))
    left = sum(row["state"] != "ended" for row in rows)
    waiting = f"{left} session waits" if left == 1 else f"{left} sessions wait"
    click.echo(f"Stopped. {waiting}: the next command for it goes on." if left else "Stopped.")


@click.command("skill", Command)
@click.option("--path", "shows_path", is_flag=True, help="Print the path of the file instead.")
def skill_command(*, shows_path: bool) -> None:
    """Print SKILL.md, which tells an agent with a shell how to use these commands."""
    path = files("hud_mcp.plugins.hand") / "SKILL.md"
    click.echo(str(path) if shows_path else path.read_text(encoding="utf-8"), nl=shows_path)


@click.command("hold", Command, hidden=True)
@click.argument("sources", nargs=-1)
@click.option("--taskset", "tasksets", multiple=True)
@click.option("--store", required=True)
@click.option(
    "--ready", type=WholeNumber(), required=True, help="Where to say that commands are answered."
)
def hold_command(sources: tuple[str, ...], tasksets: tuple[str, ...], **options: Any) -> None:
    """Be the server in the background."""
    configure_logging("info")
    raise_file_limit()
    ready: int = options["ready"]
    sys.stdout = LineStream(sys.stderr)
    try:
        sys.exit(anyio.run(_hold, sources, tasksets, options["store"], ready))
    except HudMcpError as exc:
        os.write(ready, str(exc).encode())
        sys.exit(1)


async def _hold(sources: tuple[str, ...], tasksets: tuple[str, ...], store: str, ready: int) -> int:
    served = sources or commands.default_sources()
    environments, offered = load_sources(served, tasksets)
    sessions = commands.Sessions(
        environments, store=commands.Store(store), tasksets=offered, limits=_LIMITS
    )
    sessions.begin()
    await sessions.prepare()

    def on_ready() -> None:
        os.write(ready, b"ready\n")
        os.close(ready)

    lasting = tuple(commands.lasting_source(each) for each in served)
    return await commands.serve_by_hand(
        sessions,
        commands.place_of(store),
        commands.notes_of(lasting, tasksets),
        on_ready=on_ready,
    )


def _call(
    options: dict[str, Any],
    name: str,
    arguments: dict[str, Any],
    *,
    meta: dict[str, Any] | None = None,
) -> Any:
    try:
        return by_hand.call(options, name, arguments, meta=meta)
    except HudMcpError as exc:
        if not options["as_json"]:
            raise
        click.echo(by_hand.error_of(exc))
        sys.exit(1)


def _print(options: dict[str, Any], result: Any, text: str) -> None:
    if not options["as_json"]:
        click.echo(text)
        return
    parts = [part.model_dump(mode="json", by_alias=True) for part in result.content
             if part.type != "image"]  # fmt: skip
    told = {"content": parts, "structured": result.structured_content, "meta": result.meta}
    click.echo(orjson.dumps({name: value for name, value in told.items() if value}))

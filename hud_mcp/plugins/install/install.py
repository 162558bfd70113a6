"""`hud-mcp install`: an entry in a client's configuration, and a trial of it."""

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from hud_mcp.base import libraries
from hud_mcp.base.process import own_command, shown_command
from hud_mcp.cli.help import Command
from hud_mcp.cli.sources import load_sources
from hud_mcp.errors import EnvironmentFailed, HudMcpError, InvalidConfiguration, sole_cause
from hud_mcp.plugins.install.browser import bring_browser, lacks_browser, offer_browser_for
from hud_mcp.plugins.install.change import Change, Configuration
from hud_mcp.plugins.install.client import (
    CLIENTS,
    LINKED,
    PASTED,
    WEB,
    Client,
    Entry,
    Machine,
    find_client,
    install_link,
    is_own,
    kept_variables,
    serve_arguments,
)
from hud_mcp.registry import service

if TYPE_CHECKING:
    from mcp.client.client import Client as McpClient


_START_S = 300.0
"""A package manager may have to build an environment first."""
_CALL_S = 300.0
_ANSWER = "This answer tries the server."
_LOG_CHARS = 2000


@dataclass(frozen=True)
class Trial:
    """A graded task of a trial, with the id of its record. The reward is None if it is hidden.

    `task` is None if the environment offers no task that starts without arguments.
    """

    environment: str
    task: str | None
    reward: float | None = None
    trajectory: str = ""


async def try_entry(entry: Entry) -> list[Trial]:
    """Start a server as its client does, and have a worthless answer graded in each environment.

    The server has the few variables that clients pass on, and those of the entry.

    Raises:
        EnvironmentFailed: It does not start, or a task is not graded; the text has the end of the
            server's standard error.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        parameters = libraries.StdioServerParameters(
            command=entry.command, args=list(entry.args), env=dict(entry.env), cwd=Path.home()
        )
        client = libraries.Client(
            libraries.stdio_client(parameters, errlog=log), read_timeout_seconds=_CALL_S
        )
        try:
            with anyio.fail_after(_START_S + _CALL_S):
                async with client:
                    return await _grade_each(client)
        except (libraries.MCPError, OSError, EnvironmentFailed, ExceptionGroup) as exc:
            log.seek(0)
            said = log.read()[-_LOG_CHARS:].strip()
            shown = f"\nThe server wrote:\n{said}" if said else ""
            raise EnvironmentFailed(f"{sole_cause(exc) or exc}{shown}") from None


async def _grade_each(client: "McpClient") -> list[Trial]:
    offered = await _call(client, "list_tasks", {})
    startable: dict[str, dict[str, Any]] = {}
    for row in offered["tasks"]:
        startable.setdefault(row["environment"], {"task": row["id"]})
    for row in offered["templates"]:
        chosen = {"template": row["id"], "environment": row["environment"]}
        startable.setdefault(row["environment"], chosen)
    return [await _grade(client, name, what) for name, what in startable.items()]


async def _grade(client: "McpClient", environment: str, what: dict[str, Any]) -> Trial:
    try:
        started = await _call(client, "start_task", what)
    except EnvironmentFailed:
        if "task" in what:
            raise
        return Trial(environment, None)  # its arguments have no defaults
    given = {"session": started["session"], "answer": _ANSWER}
    while (graded := await _call(client, "response", given)).get("state") == "grading":
        pass
    if graded.get("outcome") != "graded":
        raise EnvironmentFailed(
            f"Task {started['task']} was not graded: {graded.get('outcome')}. "
            f"{graded.get('content', '')}"
        )
    return Trial(environment, started["task"], graded.get("reward"), graded.get("trajectory", ""))


async def _call(client: "McpClient", tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        said = " ".join(getattr(each, "text", "") for each in result.content)
        raise EnvironmentFailed(f"The server answered {tool} with: {said}")
    return result.structured_content


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} has other characters than letters, digits, - and _.")
    return value


taskset_option = click.option(
    "--taskset",
    "tasksets",
    multiple=True,
    metavar="FILE",
    help="Offer the tasks of this file by their ids.",
)
name_option = click.option(
    "--name",
    metavar="NAME",
    default="hud-mcp",
    show_default=True,
    callback=_name,
    help="The server's name in the client.",
)
config_option = click.option(
    "--config",
    metavar="FILE",
    help="The configuration file. Default: your own, where the client reads it.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show the change; change nothing.")


def _configuration(client_name: str, file: str | None) -> tuple[Client, Configuration]:
    client = find_client(client_name)
    path = client.file(Machine.here()) if file is None else Path(file)
    return client, Configuration(client, path)


def _show(change: Change) -> None:
    for line in change.lines():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.secho(line, fg=colour)


def _write(change: Change) -> Path | None:
    """Write a change and print the path of the backup; raise HudMcpError if it fails."""
    try:
        backup = change.write()
    except OSError as exc:
        raise HudMcpError(f"{change.path} cannot be written: {exc.strerror}.") from exc
    click.echo(f"Written: {change.path}")
    if backup is not None:
        click.echo(f"Backup: {backup}")
    return backup


@click.command("uninstall", cls=Command, epilog=f"CLIENT is one of: {', '.join(CLIENTS)}.")
@click.argument("client")
@name_option
@config_option
@dry_run_option
@click.option(
    "--force", is_flag=True, help="Remove the entry of that name even if it starts another command."
)
def uninstall_command(
    client: str, name: str, config: str | None, *, dry_run: bool, force: bool
) -> None:
    """Remove hud-mcp from the configuration of a CLIENT. Other entries stay as they are."""
    chosen, held = _configuration(client, config)
    former = held.find(name)
    if former is None:
        click.echo(f"{chosen.title} has no server {name!r}: {held.path}")
        return
    if not is_own(former) and not force:
        raise HudMcpError(
            f"The server {name!r} of {held.path} is not hud-mcp: "
            f"{json.dumps(former, default=str)}. Remove it with --force. Nothing was written."
        )
    change = held.without_entry(name)
    _show(change)
    if dry_run:
        click.echo("Nothing was written: --dry-run.")
        return
    _write(change)


def _variables(
    _ctx: click.Context, _param: click.Parameter, value: Sequence[str]
) -> dict[str, str]:
    pairs = [each.partition("=") for each in value]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is not like NAME=VALUE.")
    return {name: text for name, _, text in pairs}


@click.command(
    "install",
    cls=Command,
    epilog=f"CLIENT is one of: {', '.join([*CLIENTS, *PASTED, *WEB])}. Without one, the command "
    f"lists them. For {' and '.join(WEB)}, SOURCE is the public address of a server that runs.",
)
@click.argument("client", required=False)
@click.argument("sources", nargs=-1, metavar="[SOURCE]... [-- OPTION...]")
@taskset_option
@name_option
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_variables,
    help="Set a variable for the server. Clients pass on only few of their own variables.",
)
@config_option
@dry_run_option
@click.option(
    "--force", is_flag=True, help="Replace an entry of that name that starts another command."
)
@click.option(
    "--yes", is_flag=True, help="Install a Chromium if the sources need one, and ask no questions."
)
@click.option(
    "--no-start", is_flag=True, help="Write the configuration, and do not start the server."
)
@click.option("--public-url", metavar="URL", hidden=True, help="The address of a running server.")
@click.option(
    "--link",
    is_flag=True,
    help=f"Print a link that adds the server instead; for {' and '.join(LINKED)}.",
)
def command(
    client: str | None, sources: Sequence[str], tasksets: Sequence[str], **options: Any
) -> None:
    """Add hud-mcp to the configuration of a CLIENT, and test it at once.

    SOURCE is a source as `serve` takes it; the command makes paths absolute. Options after `--` go
    to `serve`. The command shows the change and keeps a copy of the former file beside it. Then it
    starts the server as the client will, and has one task graded.
    """
    if client is None:
        _list()
        return
    name: str = options["name"]
    if client in WEB:
        service("connect web client")(client, name, sources or [options["public_url"] or ""])
        return
    own = own_command()
    variables = {**kept_variables(own), **options["variables"]}
    entry = Entry(own[0], [*own[1:], *serve_arguments(sources, tasksets)], variables)
    environments = _environments(sources, tasksets)
    if client in PASTED:
        shown = {"command": entry.command, "args": list(entry.args), "env": dict(entry.env)}
        click.echo(json.dumps({"mcpServers": {name: shown}}, indent=2))
        click.echo(PASTED[client], err=True)
        return
    chosen, held = _configuration(client, options["config"])
    if options["link"]:
        click.echo(install_link(chosen, name, entry))
        return
    change = _change(chosen, held, name, entry, force=options["force"])
    if options["dry_run"]:
        click.echo("Nothing was written: --dry-run.")
        return
    _bring_browser(environments, is_wanted=options["yes"])
    backup = None if change.is_empty else _write(change)
    if not options["no_start"]:
        try:
            _try(chosen, change, name)
        except BaseException:  # Ctrl-C too: what was not seen to work does not stay
            change.undo(backup)
            raise
    click.echo(chosen.then)


def _change(client: Client, held: Configuration, name: str, entry: Entry, *, force: bool) -> Change:
    """Show the change to make, and return it; raise HudMcpError if another server has the name."""
    if held.content is None and not client.is_on(Machine.here()):
        click.echo(f"{client.title} has no configuration here yet. hud-mcp creates one.")
    change = held.with_entry(name, entry)
    if change.is_empty:
        click.echo(f"{client.title} has this server already: {held.path}")
        return change
    _show(change)
    former = held.find(name)
    if former is not None and not force:
        raise HudMcpError(
            f"{held.path} has a server {name!r} that starts another command, as shown above. "
            "Choose another --name, or replace it with --force. Nothing was written."
        )
    return change


def _environments(sources: Sequence[str], tasksets: Sequence[str]) -> list[Any]:
    """Load the sources. A mistake in them is reported before anything is shown or written."""
    first = next((n for n, each in enumerate(sources) if each.startswith("-")), len(sources))
    return load_sources(sources[:first], tasksets)[0]


def _bring_browser(environments: Sequence[Any], *, is_wanted: bool) -> None:
    """Bring a Chromium if one is needed: a client would wait for it in vain.

    Raise HudMcpError if there is none, and none was wanted or could be had.
    """
    if not lacks_browser(environments):
        return
    if is_wanted:
        bring_browser()
        return
    offer_browser_for(environments)
    if lacks_browser(environments):
        raise HudMcpError(
            "The sources need a Chromium, but none starts here. Call again with --yes, or run "
            f"`{shown_command('browser', 'install', '--yes')}` first. Nothing was written."
        )


def _try(client: Client, change: Change, name: str) -> None:
    """Start the entry that the file has now, and print the grades.

    Raise HudMcpError if it does not start, or a task is not graded.
    """
    entry = Entry.read(Configuration(client, change.path).find(name))
    click.echo(f"Starting: {' '.join([entry.command, *entry.args])}")
    try:
        trials = anyio.run(try_entry, entry)
    except (EnvironmentFailed, InvalidConfiguration) as exc:
        what = "What is there" if change.is_empty else "What was written"
        raise HudMcpError(f"{what} does not work. {change.path} is as it was. {exc}") from exc
    for trial in trials:
        if trial.task is None:
            click.echo(f"Started: {trial.environment} lists tasks, and each needs arguments.")
            continue
        reward = "hidden" if trial.reward is None else f"{trial.reward:g}"
        click.echo(
            f"Graded: {trial.task} of {trial.environment}, reward {reward} for a worthless answer"
            f" ({trial.trajectory})."
        )


def _list() -> None:
    machine = Machine.here()
    click.echo(f"{'client':16}{'here':6}configuration")
    for client in CLIENTS.values():
        found = "yes" if client.is_on(machine) else "no"
        click.echo(f"{client.name:16}{found:6}{client.file(machine)}")
    for name in WEB:
        click.echo(f"{name:16}{'web':6}takes the public address of a server that runs")

"""`hud-mcp serve`: environments over MCP, on stdio unless HTTP is asked for."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from hud_mcp.base.secrets import keep_to_itself
from hud_mcp.cli.help import Command
from hud_mcp.cli.options import (
    WholeNumber,
    allow_option,
    complete_sources,
    no_record_option,
    split_option,
    store_option,
)
from hud_mcp.cli.process import interrupted_quietly, without_collecting
from hud_mcp.cli.tokens import token_file_option
from hud_mcp.cli.wires import read_wires
from hud_mcp.loading.source import Source, default_sources, lasting_source
from hud_mcp.registry import load, service
from hud_mcp.server.stdio.descriptors import claim_stdio
from hud_mcp.session.spec import Limits
from hud_mcp.values.observation import DEFAULT_FORMAT, IMAGE_FORMATS

_LAST_PORT = 65_535

_GROUPS = {
    "Tasks": ("tasksets", "split", "allow", "limits", "reload"),
    "HTTP": ("http", "oauth", "tokens", "token_file", "operator_token_file"),
    "Record": ("reward", "look"),
    "Beside MCP": ("wires", "live"),
    "Operation": ("replica", "log_level"),
}


class _LivePort(click.ParamType[int]):
    """A port. Any other word after `--live` was meant as a source."""

    name = "port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            port = int(value)
        except ValueError:
            self.fail(
                f"{value!r} is not a port. Put SOURCE before it, as in `hud-mcp serve {value} "
                f"--live`, or name a port, as in `--live 0 {value}`; 0 is any free one.",
                param,
                ctx,
            )
        if not 0 <= port <= _LAST_PORT:
            self.fail(f"{port} is not a port: they are 0 to {_LAST_PORT}.", param, ctx)
        return port


def _public_url(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if (
        "@" in parts.netloc
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise click.BadParameter(f"{value!r} is not like https://tasks.example.com.")
    return value.rstrip("/")


def _issuer(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value and not value.startswith(("https://", "http://")):
        raise click.BadParameter(f"{value!r} is no issuer's address. Put SOURCE before --oauth.")
    return value


@click.command(
    cls=Command,
    groups=_GROUPS,
    epilog="Limits: "
    + ", ".join(f"{n} ({f.default})" for n, f in Limits.model_fields.items())
    + ". The default of SOURCE is ./env.py if it exists, or else the quickstart environments.",
)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=complete_sources)
@click.option(
    "--taskset",
    "tasksets",
    multiple=True,
    metavar="FILE",
    help="Offer the tasks of this file by their ids.",
)
@split_option
@click.option(
    "--files",
    metavar="DIR",
    hidden=True,
    help="The files that each session of a server, mcp:COMMAND, begins with.",
)
@click.option(
    "--python",
    metavar="FILE",
    hidden=True,
    help="The Python that has `hud`, for sources of the form hud:….",
)
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP instead of stdio.")
@click.option(
    "--oauth",
    metavar="[ISSUER]",
    is_flag=False,
    flag_value="",
    callback=_issuer,
    help="Let people sign in over HTTP, here or at an ISSUER (put after SOURCE).",
)
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="[NAME=]SECRET",
    envvar="HUD_MCP_TOKEN",
    help="Require a bearer token over HTTP; each NAME sees only its own sessions.",
)
@token_file_option
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    hidden=True,
    help="Also accept requests with this Host header.",
)
@click.option(
    "--public-url",
    metavar="URL",
    callback=_public_url,
    hidden=True,
    help="Its public address behind a proxy; links and sign-in use it.",
)
@allow_option
@store_option
@no_record_option
@click.option(
    "--reward",
    type=click.Choice(["hidden", "on_submit", "per_step"]),
    help="When agents see rewards. Default: as the template says, else on_submit.",
)
@click.option(
    "--look",
    type=click.Choice(["both", "text"]),
    default="both",
    help="Show text and a picture in each step, or text alone.",
)
@click.option("--image", type=click.Choice(IMAGE_FORMATS), default=DEFAULT_FORMAT, hidden=True)
@click.option(
    "--tries",
    type=WholeNumber(1),
    metavar="N",
    hidden=True,
    help="How often one caller may start the same task.",
)
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help="Change a limit.")
@click.option(
    "--live",
    metavar="[PORT]",
    type=_LivePort(),
    is_flag=False,
    flag_value=0,
    help="Serve live pages on 127.0.0.1, as HTTP servers always do (put after SOURCE).",
)
@click.option(
    "--live-log",
    is_flag=True,
    hidden=True,
    help="Show logs on live pages; agents can read them there.",
)
@click.option(
    "--wire",
    "wires",
    multiple=True,
    metavar="NAME[=ARG]",
    help="Also speak another protocol: openenv with --http, or channel=[HOST:]PORT.",
)
@click.option("--openenv", is_flag=True, hidden=True)
@click.option("--channel", metavar="[HOST:]PORT", hidden=True)
@click.option(
    "--channel-token",
    metavar="SECRET",
    envvar="HUD_MCP_CHANNEL_TOKEN",
    hidden=True,
    help="The token that the channel's clients must send. HUD's own send none.",
)
@click.option(
    "--reload",
    is_flag=True,
    help="Load sources and tasksets again after each edit; running sessions keep theirs.",
)
@click.option(
    "--operator-token-file",
    metavar="FILE",
    help="Accept operator calls with the token in FILE. Never give it to agents.",
)
@service("operator options")
# Programs of this package pass the next four. A person has no use for them.
@click.option("--job", hidden=True)
@click.option("--without-mcp", is_flag=True, hidden=True)  # On stdio: take a job's calls as lines.
@click.option("--end-with-stdin", is_flag=True, hidden=True)  # Over HTTP: end once stdin is closed.
@click.option(
    "--token-from-stdin", is_flag=True, hidden=True
)  # Over HTTP: the first line is a token.
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    metavar="LEVEL",
    help="Log to stderr from debug, info, warning or error on.",
)
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:
    """Serve environments over MCP.

    SOURCE is a shipped environment (browser, letter_count), a Python file (path/to/env.py) or one
    environment of a file (env.py:name). It may also be any Gymnasium environment with its options
    (gym:CARLCartPole?context=train&screen=0). You may name several. HUD's environments work too:
    tcp://host:port names a running one, and hud:path/to/env.py names a file that the server runs.
    """
    if options["split"] is not None and not options["tasksets"]:
        raise click.UsageError("--split chooses among the rows of a --taskset; name one.")
    if (files := options.pop("files")) is not None:
        options["sources"] = service("sources with files")(options["sources"], files)
    options["wires"] = read_wires(_wires(options), options)
    if options["reload"] and any(Source(each).is_remote for each in options["sources"]):
        raise click.UsageError(
            "--reload follows files, and a bridged environment has its own "
            "server. Leave out --reload."
        )
    if options["oauth"] is not None and not options["http"]:
        raise click.UsageError("--oauth is for --http; name an address.")
    service("refuse alone")(options)
    options["greeted"] = _configured_arguments(ctx) if _is_watched(options) else None
    if options["greeted"] is not None:
        service("offer browser")(options["sources"] or default_sources())
    if options["http"]:
        if options["token_from_stdin"]:
            keep_to_itself()
            options["tokens"] = (*options["tokens"], _read_token())
        sys.exit(_run(options, None))
    if options["job"]:
        keep_to_itself()  # it may have the keys of the run's model in its environment
    with claim_stdio() as streams:
        code = _run(options, streams)
    sys.exit(code)


def _run(options: dict[str, Any], streams: Any) -> int:
    # A mistake in an option is reported before the time that sessions take to load.
    with interrupted_quietly(), without_collecting():
        run = load("hud_mcp.cli.serving:run")
    return run(options, streams)


def _wires(options: Mapping[str, Any]) -> list[str]:
    named = list(options["wires"])
    if options["openenv"]:
        named.append("openenv")
    if options["channel"] is not None:
        named.append(f"channel={options['channel']}")
    return named


def _read_token() -> str:
    """Read the first line of stdin, and not a byte of what follows."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode().strip()


_PLACES = frozenset({"files", "tasksets", "store", "python", "operator_token_file"})
"""Options whose values are files, perhaps: a client starts the server from another folder."""


def _is_watched(options: Mapping[str, Any]) -> bool:
    """Whether a person reads the server's output: a client has a pipe in place of a terminal."""
    return _is_terminal(2) and (options["http"] is not None or _is_terminal(0))


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:  # closed
        return False


def _configured_arguments(ctx: click.Context) -> list[str]:
    """Return a called command's arguments as a client's configuration has them, in any folder."""
    arguments = [ctx.info_name or ""]
    sources = ctx.params["sources"] or default_sources()
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

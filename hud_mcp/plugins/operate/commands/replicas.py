"""The options of a server that is one of several on a store."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

import click

from hud_mcp.base.text import read_text_file
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.operate import commands

__all__ = ["read_replica", "refuse_alone", "replica_options"]

_SECRET = "HUD_MCP_REPLICA_SECRET"  # noqa: S105  # the name of a variable
_SECRET_CHARS = 32
"""Shorter secrets are guessed."""
_TAG = re.compile(r"[A-Za-z0-9_-]{1,64}")


def replica_options(command: Any) -> Any:
    """Give a command these options."""
    for option in (
        click.option(
            "--drain-s",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            hidden=True,
            help="How long to wait at the end for sessions that cannot move. Default: 60.",
        ),
        click.option(
            "--replica-secret-file",
            metavar="FILE",
            hidden=True,
            help=f"The secret of all replicas; or {_SECRET}.",
        ),
        click.option(
            "--advertise",
            metavar="URL",
            hidden=True,
            help="Where other replicas reach this one. Default: the address of --http.",
        ),
        click.option(
            "--replica",
            metavar="TAG",
            help="Be one of several servers on this store, each with another TAG.",
        ),
    ):
        command = option(command)
    return command


def read_replica(options: dict[str, Any], sessions: Any, host: str) -> Any:
    """Read the options of a replica that listens on `host`; None if the server is the only one.

    Raises:
        HudMcpError: An option is missing or wrong.
    """
    tag, advertised = options["replica"], options["advertise"]
    secret = os.environ.pop(_SECRET, None)  # every child inherits what is left there
    if tag is None:
        return None
    if not _TAG.fullmatch(tag):
        raise HudMcpError(f"--replica {tag!r} is no tag: it takes 1 to 64 of A-Z, a-z, 0-9, _, -.")
    if advertised is None and host in ("0.0.0.0", "::", ""):  # noqa: S104  # refused here
        raise HudMcpError(
            f"Other replicas cannot reach {host!r}; give --advertise, such as http://10.0.0.2:8000."
        )
    if advertised is not None:
        advertised = _address(advertised)
    return commands.ReplicaServing(
        sessions,
        tag,
        _read_secret(options["replica_secret_file"], secret),
        advertised,
        **({} if options["drain_s"] is None else {"drain_s": options["drain_s"]}),
    )


def refuse_alone(options: dict[str, Any]) -> None:
    """Refuse options that say nothing without the others.

    Raises:
        UsageError: The text names the missing option.
    """
    if options["replica"] is None:
        for name in ("advertise", "replica_secret_file", "drain_s"):
            if options[name] is not None:
                shown = name.replace("_", "-")
                raise click.UsageError(f"--{shown} is of a replica; name one with --replica TAG.")
    elif not options["http"]:
        raise click.UsageError("--replica is for servers over HTTP; name an address by --http too.")


def _address(given: str) -> str:
    parts = urlsplit(given)
    bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not bare:
        raise HudMcpError(f"--advertise {given!r} is not like http://10.0.0.2:8000.")
    return f"{parts.scheme}://{parts.netloc}"


def _read_secret(file: str | None, secret: str | None) -> str:
    if file is not None:
        try:
            secret = read_text_file(file).strip()
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "it is not text"
            raise HudMcpError(f"--replica-secret-file {file} cannot be read: {why}.") from None
    if secret is None:
        raise HudMcpError(
            f"--replica needs the secret of all replicas: --replica-secret-file, or {_SECRET}. "
            "Make one with `openssl rand -hex 32`."
        )
    if len(secret) < _SECRET_CHARS:
        raise HudMcpError(
            f"The replicas' secret needs at least {_SECRET_CHARS} characters; make one with "
            "`openssl rand -hex 32`."
        )
    return secret

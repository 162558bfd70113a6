"""`hud-mcp install` for clients on the web: the words of their dialogs, and a server's address."""

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import anyio
import click

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.oauth.clients import split_url
from hud_mcp.plugins.oauth.probe import Check, Probe
from hud_mcp.server.http import PATH


class Connector(NamedTuple):
    """A client on the web, which reaches servers by their public addresses alone."""

    title: str
    redirect: str  # the address of its answers from a sign-in, or one of the same shape
    document: str  # the address of its own document; empty if it is not known
    steps: str  # the things that a person does there, in the words of its dialogs


CONNECTORS: Mapping[str, Connector] = {
    "chatgpt": Connector(
        "ChatGPT",
        redirect="https://chatgpt.com/connector/oauth/hud-mcp",
        document="",
        steps="""\
1. In ChatGPT on the web, open Settings, Apps, Advanced settings: switch `Developer mode` on.
   In a workspace, an admin allows it first.
2. Press `Create app`, and enter:
   Name: {name}
   MCP Server URL: {url}
   Authentication: OAuth. Leave the OAuth client's settings as they are.
3. Tick `I understand and want to continue`, and press `Create`.
4. Sign in on this server's page. In a chat, press `+`, and choose {name} under `Developer mode`.\
""",
    ),
    "claude-web": Connector(
        "Claude",
        redirect="https://claude.ai/api/mcp/auth_callback",
        document="https://claude.ai/oauth/mcp-oauth-client-metadata",
        steps="""\
1. In Claude on the web or Desktop, open Customize, Connectors: press `+`, `Add custom connector`.
   In Team and Enterprise, an owner adds it for the organization.
2. Enter:
   Name: {name}
   Remote MCP server URL: {url}
3. Keep the settings that Claude detects: Authentication `Always required`, OAuth client
   `Use Anthropic's hosted client metadata`. OAuth Client ID and OAuth Client Secret stay empty.
4. Press `Add`, then `Connect`, and sign in on this server's page.\
""",
    ),
}
"""The clients on the web, by their names on the command line."""


def connect(client: str, name: str, addresses: Sequence[str]) -> None:
    """Ask a server as a client on the web does, and print what a person enters there.

    It exits with the status 1 if a check fails. Raise HudMcpError unless there is one address.
    """
    found, url = CONNECTORS[client], _url(client, addresses)
    checks: list[Check] = []

    async def ask() -> None:
        async for each in Probe(url, found.redirect, found.document).checks():
            checks.append(each)
            state, colour = ("failed", "red") if each.do else ("ok    ", "green")
            click.secho(state, fg=colour, nl=False)
            click.echo(f" {each.name}: {each.said}. {each.do}".rstrip(" .") + ".")

    anyio.run(ask)
    failed = any(each.do for each in checks)
    click.echo(f"\n{found.title} cannot connect yet. Later:\n" if failed else "")
    click.echo(found.steps.format(name=name, url=url))
    sys.exit(failed)


def _url(client: str, addresses: Sequence[str]) -> str:
    """Return the address of MCP."""
    given = addresses[0] if len(addresses) == 1 else ""
    parts = split_url(given)
    is_web = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    if not is_web or "@" in given or "?" in given:
        raise HudMcpError(
            f"{client} reaches servers by one public address. Start one with `hud-mcp serve SOURCE "
            "--http 127.0.0.1:8000 --oauth --set public_url=https://tasks.example.com`, then call "
            f"`hud-mcp install {client} https://tasks.example.com`."
        )
    return given.rstrip("/").removesuffix(PATH) + PATH

"""Links that add a server to an editor, with a press of a button."""

import base64
import json
from urllib.parse import quote

from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.install.clients.client import Client
from hud_mcp.plugins.install.clients.entry import Entry

__all__ = ["LINKED", "install_link"]

LINKED = ("cursor", "vscode")
"""The clients that take links."""


def install_link(client: Client, name: str, entry: Entry, *, web: bool = False) -> str:
    """The link that makes an editor ask whether to add a server.

    Args:
        client: The editor.
        name: What it is to call the server.
        entry: What it is to start.
        web: Whether the link leads to the editor's site, which opens the editor: pages such as
            GitHub's show no links of an editor's own kind.

    Raises:
        SourceNotFound: The client takes no links.
    """
    value = {key: each for key, each in entry.value(client).items() if key != "type"}
    if client.name == "cursor":
        packed = base64.b64encode(json.dumps(value).encode()).decode()
        begins = "https://cursor.com/en/install-mcp" if web else _CURSOR
        return f"{begins}?name={quote(name)}&config={quote(packed, safe='')}"
    if client.name == "vscode":
        if web:
            text = quote(json.dumps(value), safe="")
            return (
                f"https://insiders.vscode.dev/redirect/mcp/install?name={quote(name)}&config={text}"
            )
        return f"vscode:mcp/install?{quote(json.dumps({'name': name, **value}), safe='')}"
    raise SourceNotFound(f"{client.title} takes no links. These do: {', '.join(LINKED)}.")


_CURSOR = "cursor://anysphere.cursor-deeplink/mcp/install"

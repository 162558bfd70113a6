"""The programs that start servers over stdio, their configurations, and the entries in these."""

import base64
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

from hud_mcp.errors import InvalidConfiguration, SourceNotFound, did_you_mean
from hud_mcp.loading.source import default_sources, lasting_source


@dataclass(frozen=True)
class Machine:
    """The person and the system whose files are looked for. `platform` is as in `sys.platform`."""

    platform: str
    home: Path
    variables: Mapping[str, str]

    @classmethod
    def here(cls) -> "Machine":
        """Return the machine that this process runs on."""
        return cls(sys.platform, Path.home(), os.environ)

    def folder(self, variable: str, *otherwise: str) -> Path:
        """Return a folder that a variable names, else one in the person's home."""
        named = self.variables.get(variable)
        return Path(named) if named else self.home.joinpath(*otherwise)

    @property
    def settings(self) -> Path:
        """Return the folder in which programs with windows keep their settings."""
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_CONFIG_HOME", ".config")


@dataclass(frozen=True)
class Client:
    """A program that starts servers.

    Attributes:
        name: The name on the command line.
        title: The name that it calls itself.
        file: A function that returns the path of its configuration on a machine.
        keys: The names in the configuration that lead to the servers, from the outermost.
        style: The configuration's language; `json` is read with comments.
        has_type: Whether an entry says that it speaks over stdio.
        then: The next thing for the person to do.
        project: The path of its configuration in a project's folder; empty without one.
    """

    name: str
    title: str
    file: Callable[[Machine], Path]
    keys: tuple[str, ...]
    then: str
    style: Literal["json", "toml"] = "json"
    has_type: bool = False
    project: str = ""

    def is_on(self, machine: Machine) -> bool:
        """Whether it was ever started there: its configuration, or the folder of it, is there."""
        file = self.file(machine)
        return file.exists() or (file.parent != machine.home and file.parent.is_dir())


def _claude_desktop(machine: Machine) -> Path:
    name = "claude_desktop_config.json"
    plain = machine.settings / "Claude" / name
    if machine.platform != "win32":
        return plain
    # Installed as a package, it sees a copy of the folder and not the folder itself, as issue
    # 26073 of anthropics/claude-code tells.
    packages = machine.folder("LOCALAPPDATA", "AppData", "Local") / "Packages"
    found = [
        each / "LocalCache" / "Roaming" / "Claude" / name
        for each in sorted(packages.glob("Claude_*"))
    ]
    return next((each for each in found if each.exists()), found[0] if found else plain)


def _zed(machine: Machine) -> Path:
    folder = machine.home / ".config" if machine.platform == "darwin" else machine.settings
    return folder / ("Zed" if machine.platform == "win32" else "zed") / "settings.json"


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-desktop",
            "Claude Desktop",
            _claude_desktop,
            ("mcpServers",),
            "Quit Claude Desktop and open it again.",
        ),
        Client(
            "claude-code",
            "Claude Code",
            lambda machine: machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json",
            ("mcpServers",),
            "Start `claude` anew; `claude mcp list` shows the server.",
            has_type=True,
            project=".mcp.json",
        ),
        Client(
            "cursor",
            "Cursor",
            lambda machine: machine.home / ".cursor" / "mcp.json",
            ("mcpServers",),
            "Switch the server on in Cursor's settings, under MCP.",
            has_type=True,
            project=".cursor/mcp.json",
        ),
        Client(
            "vscode",
            "VS Code",
            lambda machine: machine.settings / "Code" / "User" / "mcp.json",
            ("servers",),
            "Run `MCP: List Servers` in VS Code, and start the server there.",
            has_type=True,
            project=".vscode/mcp.json",
        ),
        Client(
            "codex",
            "Codex",
            lambda machine: machine.folder("CODEX_HOME", ".codex") / "config.toml",
            ("mcp_servers",),
            "Start `codex` anew; `codex mcp list` shows the server.",
            style="toml",
            project=".codex/config.toml",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            lambda machine: machine.folder("GEMINI_CLI_HOME") / ".gemini" / "settings.json",
            ("mcpServers",),
            "Start `gemini` anew; `/mcp` shows the server.",
            project=".gemini/settings.json",
        ),
        Client(
            "windsurf",
            "Windsurf",
            lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
            ("mcpServers",),
            "Press the refresh button of Windsurf's MCP servers.",
        ),
        Client(
            "zed",
            "Zed",
            _zed,
            ("context_servers",),
            "Zed starts the server at once; its agent panel's settings show it.",
            project=".zed/settings.json",
        ),
    )
}
"""Every client that can be configured, by name."""

PASTED = {
    "jetbrains": "Paste this in the IDE: Settings, Tools, AI Assistant, Model Context Protocol "
    "(MCP), Add, As JSON. Its agents of the Agent Client Protocol get the server too, if "
    "`Pass custom MCP servers` is on."
}
"""The clients that keep servers in a place of their own, and where a person gives them one."""

WEB = ("chatgpt", "claude-web")
"""The clients on the web, which start no server: they take the address of one."""

_ALSO = {"gemini-cli": "gemini", "vs-code": "vscode", "code": "vscode", "claude": "claude-code"}


def find_client(name: str) -> Client:
    """Return a client by its name.

    Raises:
        SourceNotFound: No client has the name; the text lists the known ones.
    """
    wanted = name.strip().lower().replace(" ", "-")
    found = CLIENTS.get(_ALSO.get(wanted, wanted))
    if found is None:
        raise SourceNotFound(
            f"There is no client {name!r}.{did_you_mean(wanted, CLIENTS)} There are: "
            f"{', '.join(CLIENTS)}."
        )
    return found


_KEPT = ("HUD_MCP_CHROMIUM", "HUD_MCP_STORE", "PLAYWRIGHT_BROWSERS_PATH", "XDG_DATA_HOME")
"""Variables that servers read and that no client passes on."""

_KEPT_FOR_UV = (
    *("SSL_CERT_DIR", "SSL_CERT_FILE", "UV_CACHE_DIR", "UV_DEFAULT_INDEX", "UV_FIND_LINKS"),
    *("UV_INDEX_URL", "UV_NATIVE_TLS", "UV_PYTHON_INSTALL_DIR", "UV_SYSTEM_CERTS"),
)
"""The same of `uvx`, which may have to fetch packages again."""


@dataclass(frozen=True)
class Entry:
    """A server in a client's configuration. `env` has variables that clients do not pass on."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def value(self, client: Client) -> dict[str, Any]:
        """Return the entry as a client's configuration has it."""
        kind = {"type": "stdio"} if client.has_type else {}
        env = {"env": dict(self.env)} if self.env else {}
        return {**kind, "command": self.command, "args": list(self.args), **env}

    @classmethod
    def read(cls, value: Any) -> "Entry":
        """Read an entry of a configuration as its client does.

        Raises:
            InvalidConfiguration: It names no command, or its arguments or variables are odd.
        """
        known = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        command = known.get("command")
        args: object = known.get("args") or []
        env: object = known.get("env") or {}
        if not (isinstance(command, str) and isinstance(args, list) and isinstance(env, dict)):
            raise InvalidConfiguration("The entry names no command, or its args or env are odd.")
        words, variables = cast("list[Any]", args), cast("dict[str, Any]", env)
        return cls(command, [*map(str, words)], {n: str(each) for n, each in variables.items()})


def is_own(value: Any) -> bool:
    """Whether an entry of a configuration starts this package."""
    try:
        entry = Entry.read(value)
    except InvalidConfiguration:
        return False
    return any("hud-mcp" in each or "hud_mcp" in each for each in (entry.command, *entry.args))


def serve_arguments(sources: Sequence[str], tasksets: Sequence[str] = ()) -> list[str]:
    """Return the arguments of `serve`, such that they mean the same from any folder.

    Args:
        sources: The names of environments, then options of `serve`. The options start at the first
            that begins with `-`, and stay unchanged.
        tasksets: Files of tasks, or names of sets.
    """
    names = list(sources)
    first = next((n for n, each in enumerate(names) if each.startswith("-")), len(names))
    named = [lasting_source(each) for each in names[:first] or default_sources()]
    offered = [
        part
        for each in tasksets
        for part in ("--taskset", str(Path(each).resolve()) if Path(each).exists() else each)
    ]
    return ["serve", *named, *offered, *names[first:]]


def kept_variables(
    command: Sequence[str], variables: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables of this process that its servers need too, without any password."""
    names = (*_KEPT, *(_KEPT_FOR_UV if Path(command[0]).stem == "uvx" else ()))
    return {
        name: value for name in names if (value := variables.get(name, "")) and "@" not in value
    }


LINKED = ("cursor", "vscode")
"""The clients that take links."""


def install_link(client: Client, name: str, entry: Entry, *, web: bool = False) -> str:
    """Return the link that makes an editor ask whether to add a server.

    With `web`, it leads to the editor's site, which opens the editor: pages such as GitHub's show
    no links of an editor's own kind.

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

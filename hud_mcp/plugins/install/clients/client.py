"""The programs that start servers over stdio, and the places of their configurations."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hud_mcp.errors import SourceNotFound, did_you_mean

__all__ = ["CLIENTS", "Client", "Machine", "find_client"]


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
    """

    name: str
    title: str
    file: Callable[[Machine], Path]
    keys: tuple[str, ...]
    then: str
    style: Literal["json", "toml"] = "json"
    has_type: bool = False

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
    if machine.platform == "win32":
        return machine.settings / "Zed" / "settings.json"
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.settings / "zed" / "settings.json"


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
        ),
        Client(
            "cursor",
            "Cursor",
            lambda machine: machine.home / ".cursor" / "mcp.json",
            ("mcpServers",),
            "Switch the server on in Cursor's settings, under MCP.",
            has_type=True,
        ),
        Client(
            "vscode",
            "VS Code",
            lambda machine: machine.settings / "Code" / "User" / "mcp.json",
            ("servers",),
            "Run `MCP: List Servers` in VS Code, and start the server there.",
            has_type=True,
        ),
        Client(
            "codex",
            "Codex",
            lambda machine: machine.folder("CODEX_HOME", ".codex") / "config.toml",
            ("mcp_servers",),
            "Start `codex` anew; `codex mcp list` shows the server.",
            style="toml",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            lambda machine: machine.folder("GEMINI_CLI_HOME") / ".gemini" / "settings.json",
            ("mcpServers",),
            "Start `gemini` anew; `/mcp` shows the server.",
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
        ),
    )
}
"""Every client that can be configured, by name."""

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

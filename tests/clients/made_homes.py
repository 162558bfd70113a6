"""Homes as each client leaves them on each system, with settings of a person in them."""

from pathlib import Path

from hud_mcp.plugins.install.client import Machine

__all__ = ["FILES", "PLATFORMS", "SETTINGS", "make_home"]

PLATFORMS = ("linux", "darwin", "win32")

_MAC, _ROAMING = "Library/Application Support", "AppData/Roaming"

_DESKTOP = "Claude/claude_desktop_config.json"
_PACKAGED = "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming"
_CODE = "Code/User/mcp.json"

FILES: dict[str, tuple[str, ...]] = {
    "claude-desktop": (f".config/{_DESKTOP}", f"{_MAC}/{_DESKTOP}", f"{_PACKAGED}/{_DESKTOP}"),
    "claude-code": (".claude.json",) * 3,
    "cursor": (".cursor/mcp.json",) * 3,
    "vscode": (f".config/{_CODE}", f"{_MAC}/{_CODE}", f"{_ROAMING}/{_CODE}"),
    "codex": (".codex/config.toml",) * 3,
    "gemini": (".gemini/settings.json",) * 3,
    "windsurf": (".codeium/windsurf/mcp_config.json",) * 3,
    "zed": (".config/zed/settings.json",) * 2 + (f"{_ROAMING}/Zed/settings.json",),
}
"""By client, its configuration on Linux, macOS and Windows."""

_PLAIN = (
    '{\n  "mcpServers": {\n    "other": {"command": "npx", "args": ["-y", "other"]}\n  },\n%s}\n'
)
_COMMENTED = """// settings of mine
{
    "theme": "dark", // at night
    "%s": {
        /* the one that I need */
        "other": {
            "command": "npx",
            "args": ["-y", "other"],
        },
    },
    // "telemetry": false,
}
"""
SETTINGS: dict[str, str] = {
    "claude-desktop": _PLAIN % '  "globalShortcut": ""\n',
    "claude-code": _PLAIN % '  "numStartups": 3,\n  "projects": {"/p": {"mcpServers": {}}}\n',
    "cursor": _COMMENTED % "mcpServers",
    "vscode": _COMMENTED % "servers",
    "codex": 'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "npx"\n\n# more\n[a]\nb = 1\n',
    "gemini": _COMMENTED % "mcpServers",
    "windsurf": _PLAIN % '  "disabled": []\n',
    "zed": _COMMENTED % "context_servers",
}
"""What each client has in its configuration before."""


def make_home(folder: Path, client: str, platform: str) -> tuple[Machine, Path]:
    """A machine whose person has used a client, and where the client's configuration is."""
    path = folder / FILES[client][PLATFORMS.index(platform)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SETTINGS[client].encode())
    return Machine(platform, folder, {}), path

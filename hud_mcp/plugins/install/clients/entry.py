"""The entry of a client's configuration: an absolute command, its arguments and its environment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from hud_mcp.errors import InvalidConfiguration
from hud_mcp.loading.source import default_sources, lasting_source
from hud_mcp.plugins.install.clients.client import Client

__all__ = ["Entry", "is_own", "kept_variables", "serve_arguments"]

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
            InvalidConfiguration: It names no command.
        """
        known = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if not isinstance(known.get("command"), str):
            raise InvalidConfiguration("The entry names no command.")
        env = cast("dict[str, Any]", known.get("env") or {})
        args = cast("list[Any]", known.get("args") or [])
        return cls(
            known["command"],
            [str(each) for each in args],
            {name: str(each) for name, each in env.items()},
        )


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

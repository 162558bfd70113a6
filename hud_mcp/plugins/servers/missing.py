"""The packages of servers that are not installed here: found, and installed."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.servers.install import Wanted, is_installed, parse, resolve
from hud_mcp.plugins.servers.spec import ToolServer

__all__ = ["SERVER", "find_servers", "install_servers"]

SERVER = "server "  # the beginning of the names of findings about packages of servers


def _wanted(environments: Iterable[Any]) -> Iterator[tuple[tuple[str, ...], Wanted]]:
    for world in (each.world for each in environments):
        for spec in world.members.values() if isinstance(world, ToolServer) else ():
            if spec.command and (wanted := parse(spec.command)) is not None:
                yield spec.command, wanted


def find_servers(environments: Iterable[Any]) -> Iterator[tuple[str, bool]]:
    """Yield each package that servers of environments need, and whether it is installed."""
    for _, wanted in _wanted(environments):
        yield f"{SERVER}{wanted.name} {wanted.version}".strip(), is_installed(wanted)


def install_servers(environments: Iterable[Any], tell: Callable[[str], Any]) -> None:
    """Install those packages; a fault is told, and the others are installed."""
    for command, _ in _wanted(environments):
        try:
            resolve(command)
        except InvalidEnvironment as exc:
            tell(str(exc))

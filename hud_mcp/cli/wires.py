"""The wires of `serve`: protocols beside MCP, which plugins add by name."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from hud_mcp.errors import HudMcpError, name_known
from hud_mcp.registry import find, names_of


@dataclass(frozen=True)
class Served:
    """The server that a wire speaks for.

    Attributes:
        sessions: The registry of its sessions.
        options: The options of the command, by name.
        hosts: The Host headers that its HTTP address accepts; None over stdio.
        access: The credentials of its HTTP address; None if it asks for none.
        argument: The text after `NAME=` of `--wire`; empty without one.
    """

    sessions: Any
    options: Mapping[str, Any]
    hosts: Any = None
    access: Any = None
    argument: str = ""


@dataclass(frozen=True)
class Wire:
    """One protocol beside MCP, as a plugin's table `wires` names it.

    Attributes:
        routes: A function that makes the routes beside MCP over HTTP; None for a wire of sockets.
        listening: Serves a socket while its context is entered. The context gives a line for
            standard
            output, such as `HUD_SERVE_PORT=8765`.
        sockets: Whether its routes take WebSockets.
    """

    routes: Callable[[Served], list[Any]] | None = None
    listening: Callable[[Served], AbstractAsyncContextManager[str]] | None = None
    sockets: bool = False


Wires = Sequence[tuple[str, Wire, str]]


def read_wires(given: Sequence[str], options: Mapping[str, Any]) -> Wires:
    """Find the wires that `--wire` names, each with its argument.

    Raises:
        HudMcpError: There is no such wire, or it does not go with another option.
    """
    found: list[tuple[str, Wire, str]] = []
    for each in given:
        name, _, argument = each.partition("=")
        wire = find("wires", name)
        if wire is None:
            known = name_known(name, names_of("wires"), what="There are", listing="")
            raise HudMcpError(f"There is no wire {name!r}.{known}")
        if wire.routes is not None and not options["http"]:
            raise HudMcpError(f"--wire {name} is a wire over HTTP; name an address by --http too.")
        if wire.listening is not None and options["reload"]:
            raise HudMcpError(f"--reload works only over MCP; leave out --wire {name}.")
        found.append((name, wire, argument))
    return found


def routes_of(wires: Wires, served: Callable[[str], Served]) -> list[Any]:
    """Return the routes of the wires that are served over HTTP."""
    made = [wire.routes(served(arg)) for _, wire, arg in wires if wire.routes is not None]
    return [route for routes in made for route in routes]


@asynccontextmanager
async def running(wires: Wires, served: Callable[[str], Served]) -> AsyncGenerator[list[str]]:
    """Serve the wires with sockets of their own during the block; give their lines."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(wire.listening(served(argument)))
            for _, wire, argument in wires
            if wire.listening is not None
        ]

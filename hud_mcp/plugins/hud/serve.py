"""Serve an environment on the HUD control channel, by the names of HUD's documents.

A container runs `python -m hud_mcp.environment.server SOURCE`. The server itself is
`hud_mcp.channel`, and loads when it is called.
"""

import sys
from typing import TYPE_CHECKING, Any

import hud_mcp.plugins.hud.wire

if TYPE_CHECKING:
    from hud_mcp.environment.environment import Environment
    from hud_mcp.plugins.hud.wire.server import BoundChannel

__all__ = ["bind", "serve"]


async def serve(env: "Environment", host: str = "127.0.0.1", port: int = 0, **options: Any) -> int:
    """Run the initialize hooks, and serve until a signal arrives or this is cancelled.

    Standard output announces the port as `HUD_SERVE_PORT=…` to the program that started this.

    Args:
        env: The environment.
        host: The address to listen on.
        port: 0 for any free port.
        options: As for `hud_mcp.channel.serve`.

    Returns:
        The exit status: 128 and the signal's number.
    """
    options.setdefault("announce", _announce)
    return await hud_mcp.plugins.hud.wire.serve(env, host, port, **options)


async def bind(
    env: "Environment", host: str = "127.0.0.1", port: int = 0, **options: Any
) -> "BoundChannel":
    """Listen, and return the server; `serve_forever` waits, `close` ends it.

    Args:
        env: The environment; its initialize hooks have run when this returns.
        host: The address to listen on.
        port: 0 for any free port.
        options: As for `hud_mcp.channel.bind`.
    """
    return await hud_mcp.plugins.hud.wire.bind(env, host, port, **options)


def _announce(port: int) -> None:
    sys.stdout.write(f"HUD_SERVE_PORT={port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    from hud_mcp.plugins.hud.wire.command import serve_command

    serve_command(prog_name="python -m hud_mcp.environment.server")

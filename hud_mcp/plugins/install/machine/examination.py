"""Looking at everything that environments may need of the machine."""

from collections.abc import AsyncGenerator, Iterable
from typing import Any

from hud_mcp.plugins.gymnasium.world.spec import Gymnasium
from hud_mcp.plugins.install.machine.finding import Finding
from hud_mcp.plugins.install.machine.places import (
    look_at_clock,
    look_at_extras,
    look_at_fonts,
    look_at_opengl,
    look_at_ports,
    look_at_store,
)
from hud_mcp.plugins.install.machine.platforms import refusal
from hud_mcp.plugins.install.machine.programs import (
    look_at_browser,
    look_at_python,
    look_at_sandbox,
)
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.shell.spec import Shell

__all__ = ["examine"]


async def examine(environments: Iterable[Any], store: str | None) -> AsyncGenerator[Finding]:
    """Look at one thing after the other.

    Args:
        environments: What is to be run: what these need, and is not there, has failed.
        store: Where the record is; the usual place where it is None.
    """
    served = list(environments)
    worlds = [each.world for each in served]
    needs_browser = any(isinstance(world, Browser) for world in worlds)
    needs_shell = any(
        isinstance(world, Shell) and world.options.isolation == "bwrap" for world in worlds
    )
    yield look_at_python()
    async for finding in look_at_browser(needed=needs_browser):
        yield finding
    yield look_at_fonts(needed=needs_browser)
    async for finding in look_at_sandbox(needed=needs_shell):
        yield finding
    for finding in look_at_opengl():
        yield finding
    yield await look_at_store(store)
    yield look_at_ports()
    yield look_at_clock()
    wanted = ["gymnasium"] if any(isinstance(world, Gymnasium) for world in worlds) else []
    for finding in look_at_extras(wanted):
        yield finding
    for environment in served:
        if (why := refusal(environment.world)) is not None:
            yield Finding.lack(f"environment {environment.name}", why, "", needed=True)

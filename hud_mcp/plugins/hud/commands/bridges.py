"""HUD environments among the sources of a server."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.loading.bridged import is_bridged
from hud_mcp.plugins.hud import commands

__all__ = ["listed_by", "offer_published", "open_bridges"]

logger = logging.getLogger(__name__)

_HOOKS_S = 20.0


async def offer_published(sessions: Any) -> None:
    """Run the hooks of the served environments, and offer the tools of their MCP servers.

    The list of tools is fixed when the server is built, so this comes first. Slow hooks go on in
    the background after `_HOOKS_S`, because a host waits no longer. The first task waits for them,
    and repeats hooks that failed.
    """
    for environment in sessions.environments.values():
        if environment.has_hooks:
            hooks = asyncio.ensure_future(sessions.initialize(environment))
            done, _pending = await asyncio.wait([hooks], timeout=_HOOKS_S)
            hooks.add_done_callback(_note)
            if not done:
                logger.warning(
                    "the initialize hooks of %s take longer than %g s: tools of MCP servers that "
                    "they publish are not offered",
                    environment.name,
                    _HOOKS_S,
                )
        if any(c.protocol.partition("/")[0] == "mcp" for c in environment.capabilities):
            await commands.offer_published_tools(environment)


def _note(hooks: "asyncio.Future[None]") -> None:
    """Log hooks that failed; the first task repeats them, and gets their error."""
    if not hooks.cancelled() and (exc := hooks.exception()) is not None:
        logger.warning("%s", exc)


def listed_by(bridged: Sequence[Any]) -> list[Any]:
    """Return the tasks in the sources of bridged environments, as tasksets."""
    return [commands.Taskset(each.listed, name=each.name) for each in bridged if each.listed]


@asynccontextmanager
async def open_bridges(
    sources: Sequence[str], python: str | None, taken: Collection[str]
) -> AsyncGenerator[list[Any]]:
    """Bridge the HUD environments among some sources while the block runs.

    Args:
        sources: The sources; those without a HUD environment are ignored.
        python: The interpreter that has `hud`.
        taken: The names of the other environments.

    Raises:
        InvalidEnvironment: Two environments have one name.
        EnvironmentFailed, ChannelFailed, SourceNotFound: A HUD environment cannot be reached.
    """
    opened: list[Any] = []
    try:
        for source in filter(is_bridged, sources):
            opened.append(await commands.bridge(source, python=python))
            names = [*taken, *(environment.name for environment in opened)]
            if names.count(opened[-1].name) > 1:
                raise InvalidEnvironment(
                    f"Two environments are named {opened[-1].name!r}, and one is at {source}. "
                    "Serve them separately, or rename one."
                )
        yield opened
    finally:
        with anyio.CancelScope(shield=True):
            for environment in opened:
                await environment.close()

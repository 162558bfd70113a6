"""The schemes `hud:` and `tcp:`: environments of HUD's SDK, bridged from their own server."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from hud_mcp.environment.environment import Environment
from hud_mcp.environment.taskset import Taskset
from hud_mcp.loading.source import Scheme
from hud_mcp.plugins.hud import bridge
from hud_mcp.registry import service

logger = logging.getLogger(__name__)

_HOOKS_S = 20.0


@asynccontextmanager
async def _open(source: str, *, python: str | None) -> AsyncGenerator[list[Environment]]:
    environment = await bridge.bridge(source, python=python)
    try:
        yield [environment]
    finally:
        # The server that was started for it ends, also if this block is cancelled.
        with anyio.CancelScope(shield=True):
            await environment.close()


SCHEME = Scheme(open=_open)


async def offer_published(sessions: Any, environment: Environment) -> None:
    """Run the hooks of a served environment, and offer the tools of its MCP servers.

    The list of tools is fixed when the server is built. Slow hooks go on in the background, as a
    host waits no longer than `_HOOKS_S`; the first task waits for them, and repeats failed ones.
    """
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
        await service("server tools")(environment)


def _note(hooks: "asyncio.Future[None]") -> None:
    """Log hooks that failed; the first task repeats them, and gets their error."""
    if not hooks.cancelled() and (exc := hooks.exception()) is not None:
        logger.warning("%s", exc)


def listed_by(bridged: Sequence[Any]) -> list[Any]:
    """Return the tasks in the sources of bridged environments, as tasksets."""
    return [Taskset(each.listed, name=each.name) for each in bridged if each.listed]

"""The hooks of environments: run once in the life of a process, before the first session."""

import logging

import anyio

from hud_mcp.environment import Environment
from hud_mcp.errors import EnvironmentFailed, HudMcpError

__all__ = ["Lifecycle"]

logger = logging.getLogger(__name__)


class Lifecycle:
    """Runs the initialize hooks of environments, and at the end the shutdown hooks of the same."""

    def __init__(self) -> None:
        self._starting = anyio.Lock()
        self._started: dict[int, Environment] = {}

    async def start(self, environment: Environment, limit_s: float) -> None:
        """Run an environment's initialize hooks, if they have not run.

        Raises:
            EnvironmentFailed: One failed; the next call begins with the first again.
        """
        if id(environment) in self._started:
            return
        async with self._starting:
            if id(environment) in self._started:
                return
            try:
                with anyio.fail_after(limit_s):
                    await environment.start()
            except HudMcpError:
                raise
            except Exception as exc:
                logger.exception("an initialize hook of %s failed", environment.name)
                raise EnvironmentFailed(
                    f"An initialize hook of environment {environment.name!r} failed "
                    f"({type(exc).__name__}); the server's log says why."
                ) from exc
            self._started[id(environment)] = environment

    async def stop(self) -> None:
        """Run the shutdown hooks of every environment whose initialize hooks have run."""
        for environment in self._started.values():
            try:
                await environment.stop()
            except Exception:  # an author's hook; what it leaves open is its own
                logger.exception("a shutdown hook of %s failed", environment.name)

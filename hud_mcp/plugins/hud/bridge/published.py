"""The tools of MCP servers that an environment of ours publishes, offered to MCP clients.

HUD's agents open such a capability themselves. A client of ours has one server, this one: it
calls the tool here, and each session has a connection of its own to the author's server.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from hud_mcp.environment import Environment
from hud_mcp.environment.world import SharedService
from hud_mcp.errors import (
    ActionFailed,
    CapabilityNotFound,
    HudMcpError,
    InvalidEnvironment,
    sole_cause,
)
from hud_mcp.plugins.hud.bridge.proxy import (
    ServerTool,
    ToolServer,
    list_tools,
    server_problem,
    tool_name,
)
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.capability import Capability

__all__ = ["offer_published_tools"]

logger = logging.getLogger(__name__)

_PORTS = {"http": 80, "https": 443}


async def offer_published_tools(environment: Environment) -> None:
    """Offer the tools of every MCP server that an environment publishes now.

    What cannot be offered is said in the environment's notes, which agents read too.
    """
    for capability in list(environment.capabilities):
        if capability.protocol.partition("/")[0] != "mcp":
            continue
        problem = await _offer(environment, capability)
        if problem is not None:
            note = f"The tools of {capability.name!r} ({capability.protocol}) are not offered"
            environment.tell_agents(f"{note}: {problem}")
            logger.warning("%s: %s", note, problem)


async def _offer(environment: Environment, capability: Capability) -> str | None:
    """Offer the tools of one server; return why not, None where they are."""
    binding = capability.to_manifest()
    problem = server_problem(binding, carried=False)
    if problem is not None:
        return problem
    try:
        declared = await list_tools(_direct(capability), capability.name, binding)
    except Exception as exc:  # noqa: BLE001  # whatever another's server does is named
        cause = sole_cause(exc)
        return f"it does not list its tools: {type(cause).__name__}: {cause}"
    for each in declared:
        name = tool_name(capability.name, each.name, {*environment.tools, *CORE_TOOLS})
        try:
            tool = PublishedTool(each, environment=environment, server=capability.name, name=name)
        except InvalidEnvironment as exc:
            return f"{each.name!r} cannot be offered ({exc})"
        environment.offer(tool)
    return None


class PublishedTool(ServerTool):
    """A tool of an MCP server that an environment of ours publishes.

    Args:
        declared: As the server declares it.
        environment: Whose it is.
        server: The capability's name.
        name: What it is called here.

    Raises:
        InvalidEnvironment: Its schema cannot be used.
    """

    def __init__(self, declared: Any, *, environment: Environment, server: str, name: str) -> None:
        super().__init__(declared, server=server, name=name, world=environment.world.world_type)
        self.where = f"MCP server {server!r} of environment {environment.name!r}"
        self._environment = environment

    async def call_in(
        self, args: Mapping[str, Any], world: Any, services: dict[str, SharedService]
    ) -> Any:
        """Call it over the session's own connection, which is made where there is none.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; it did not run.
            ActionFailed: The tool says so, or the server does not answer.
        """
        del world  # it works on what the author's server holds
        given = self.arguments.parse(args)
        key = f"mcp:{self._server}"
        try:
            found = services.get(key)
            if not isinstance(found, ToolServer) or not found.is_open:
                found = await self._connect()
                services[key] = found
            return await found.call(self._tool, given)
        except HudMcpError:
            raise
        except (Exception, asyncio.CancelledError) as exc:
            if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
                raise
            cause = sole_cause(exc)
            reason = f"{cause}".partition("\n")[0][:200].rstrip(". ") or type(cause).__name__
            logger.info("%s: %s: %s", self.where, type(cause).__name__, cause)
            raise ActionFailed(
                f"{self._server!r}, which has this tool, does not answer: {reason}. Try again."
            ) from exc

    async def _connect(self) -> ToolServer:
        try:
            capability = self._environment.capability(self._server)
        except CapabilityNotFound as exc:
            raise ActionFailed(f"{exc} Its tools are gone.") from exc
        return await ToolServer.open(_direct(capability), self._server, capability.to_manifest())


def _direct(capability: Capability) -> Any:
    """What hands out the capability's own address, as a control channel does its forwarder's."""
    parts = urlsplit(capability.url)
    address = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80))

    @asynccontextmanager
    async def forward(_name: str) -> AsyncGenerator[tuple[str, int]]:
        yield address

    return forward


def _is_cancelled() -> bool:
    """Whether it is this task that is to end, and not what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

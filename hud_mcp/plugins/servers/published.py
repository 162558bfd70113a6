"""The tools of MCP servers that an environment publishes as capabilities, whatever its world is."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from hud_mcp.environment.environment import Environment
from hud_mcp.environment.schema_arguments import SchemaArguments
from hud_mcp.environment.tool import Exchange, prefixed_name
from hud_mcp.environment.world import SharedService
from hud_mcp.errors import (
    ActionFailed,
    CapabilityNotFound,
    EnvironmentFailed,
    InvalidEnvironment,
    sole_cause,
)
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.listing import Listing, offers
from hud_mcp.plugins.servers.peer import Json
from hud_mcp.plugins.servers.reply import LEAST_SECRET_CHARS, Masker
from hud_mcp.plugins.servers.tool import ServerTool, tell_once
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.capability import Capability
from hud_mcp.values.reply import InputNeeded, ToolReply

logger = logging.getLogger(__name__)

__all__ = ["PublishedTool", "offer_published_tools"]

_LIST_S = 20.0
_TRANSPORTS = ("streamable-http", "sse")
_HANDSHAKE = "2025-11-25"


async def offer_published_tools(environment: Environment) -> None:
    """Offer the tools of every MCP server that an environment publishes now.

    The environment's notes, which agents read too, name the tools that cannot be offered.
    """
    for capability in list(environment.capabilities):
        if capability.protocol.partition("/")[0] != "mcp":
            continue
        try:
            listing = await _list(capability)
        except InvalidEnvironment as exc:
            problem = f"The tools of {capability.name!r} ({capability.protocol}) are not offered"
            tell_once(environment, f"{problem}: {exc}")
            logger.warning("%s: %s", problem, exc)
            continue
        tell_once(environment, f"The server of {capability.name!r} is shared by sessions.")
        _offer(environment, capability, listing)


def _offer(environment: Environment, capability: Capability, listing: Listing) -> None:
    name = capability.name
    facts: Json = {"name": name, "tokens": 0, "count": 0}
    tools = environment.tools.values()
    others = {each.name for each in tools if getattr(each, "capability", None) != name}
    taken = {*others, *CORE_TOOLS}
    for offer in offers(listing.tools, prefix=name):
        called = str(offer.entry.get("name"))
        if offer.name is None:
            tell_once(environment, offer.note)
            continue
        own = prefixed_name(name, called, taken)
        try:
            tool = PublishedTool(
                offer.entry, environment=environment, capability=name, name=own, server=facts
            )
        except InvalidEnvironment as exc:
            tell_once(environment, f"The server's tool {called!r} is left out: {exc}")
            continue
        tool.offer(environment)
        taken.add(own)


async def _list(capability: Capability) -> Listing:
    """Return a server's lists, by a connection for this; `InvalidEnvironment` says why not."""
    transport = str(capability.params.get("transport") or "streamable-http")
    if transport not in _TRANSPORTS:
        known = " and ".join(_TRANSPORTS)
        raise InvalidEnvironment(f"its transport is {transport}; {known} can be offered")
    world = _connection(capability)
    try:
        async with asyncio.timeout(_LIST_S):
            return await world.list()
    except TimeoutError:
        raise InvalidEnvironment(f"it did not list its tools within {_LIST_S:g} s") from None
    except EnvironmentFailed as exc:
        raise InvalidEnvironment(f"it does not list its tools: {exc}") from exc
    finally:
        await world.close()


def _connection(capability: Capability) -> ToolServerWorld:
    """Return a connection to a server, which is made with the first call."""
    token = capability.params.get("auth_token")
    secret = str(token or "")
    launch = Launch(
        name=capability.name,
        url=capability.url,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        sse=capability.params.get("transport") == "sse",
        # A shorter one would mask words of every reply.
        masker=Masker([("auth_token", secret)] if len(secret) >= LEAST_SECRET_CHARS else ()),
        era=_HANDSHAKE if capability.protocol.endswith(_HANDSHAKE) else "auto",
        start_s=_LIST_S,
    )
    return ToolServerWorld(None, launch, log=logger.info)


class PublishedTool(ServerTool):
    """A tool of an MCP server among an environment's capabilities.

    Each session has its own connection, beside its world. Arguments are read and checked here, as
    those of an environment's other tools; the reply passes unchanged.

    Args:
        listed: Its entry in the server's own words.
        environment: The environment that publishes the server.
        capability: The name under which it does.
        more: The name here, and facts on the server, as for `ServerTool`.

    Raises:
        InvalidEnvironment: Its schema is unusable.
    """

    passes_through = False

    def __init__(
        self, listed: Json, *, environment: Environment, capability: str, **more: Any
    ) -> None:
        hints: Json = listed.get("annotations") or {}
        read_only = hints.get("readOnlyHint") is True
        # What a server leaves unsaid has these values in the protocol, and not in every host.
        said = {"readOnlyHint": read_only, "destructiveHint": not read_only, "openWorldHint": True}
        super().__init__({**listed, "annotations": {**said, **hints}}, **more)
        self.capability = capability
        self.where = f"MCP server {capability!r} of environment {environment.name!r}"
        self._environment = environment
        self.arguments = SchemaArguments(
            listed["inputSchema"], noun=f"tool {self.name!r}", where=self.where, worlds={}
        )

    async def call_in(
        self,
        args: Mapping[str, Any],
        world: Any,
        services: dict[str, SharedService],
        exchange: Exchange | None = None,
    ) -> ToolReply | InputNeeded:
        """Call it over the session's own connection, and connect first if needed.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; it did not run.
            ActionFailed: The server does not answer.
        """
        del world  # it works on what the author's server holds
        given = self.arguments.parse(args)
        key = f"mcp:{self.capability}"
        found = services.get(key)
        if not isinstance(found, ToolServerWorld) or found.died is not None:
            services.pop(key, None)
            if found is not None:
                await found.close()
            services[key] = found = self._connect()
        try:
            return await found.call(self, given, exchange)
        except EnvironmentFailed as exc:
            reason = str(sole_cause(exc)).partition("\n")[0][:200].rstrip(". ")
            raise ActionFailed(
                f"{self.capability!r}, which has this tool, does not answer: {reason}. Try again."
            ) from exc

    def _connect(self) -> ToolServerWorld:
        try:
            return _connection(self._environment.capability(self.capability))
        except CapabilityNotFound as exc:
            raise ActionFailed(f"{exc} Its tools are gone.") from exc

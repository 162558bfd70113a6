"""The tools of a server as tools of an environment: its own entries, and calls that pass on."""

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hud_mcp.base import libraries
from hud_mcp.environment.arguments import Arguments
from hud_mcp.environment.tool import Exchange, Tool
from hud_mcp.environment.world import SharedService
from hud_mcp.errors import InvalidTask
from hud_mcp.plugins.servers.listing import tokens
from hud_mcp.plugins.servers.peer import Json, as_object
from hud_mcp.plugins.servers.reply import NOTICE, kept_reply
from hud_mcp.values.call import OWN_SESSION
from hud_mcp.values.reply import InputNeeded, ToolReply

if TYPE_CHECKING:
    import mcp_types as types

    from hud_mcp.environment.environment import Environment

__all__ = ["ServerTool", "tell_once"]

_LISTED = 100
"""The names that each step's record keeps of a server's list."""
_SESSION: Json = {"type": "string", "description": "The session id that start_task returned."}


class PassedArguments(Arguments):
    """Arguments that the server itself reads: its own error is the truth."""

    def __init__(self, noun: str, schema: Mapping[str, Any]) -> None:
        self.noun, self.where = noun, "its server"
        self.world_types = {}
        self.schema = dict(schema)
        self.names = tuple(as_object(schema.get("properties")))

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged; numbers that JSON has not are an `InvalidTask`."""
        plain = dict(given)
        try:
            self._refuse_non_finite(plain)
        except RecursionError:
            raise InvalidTask(f"{self.noun}: its arguments are nested too deeply.") from None
        return plain


class ServerTool(Tool):
    """A tool that a server lists.

    Args:
        listed: Its entry in the server's own words.
        name: Its name here.
        description: A description in place of the server's.
        masked: The names of arguments that the record does not keep.
        replayable: Whether a call may be repeated to rebuild the server's state.
        server: Facts on its server, which the record keeps beside each of its calls.
        member: The name of its server among several.
    """

    passes_through = True

    def __init__(
        self,
        listed: Json,
        *,
        name: str,
        description: str | None = None,
        masked: frozenset[str] = frozenset(),
        replayable: bool = False,
        server: Json | None = None,
        member: str = "",
    ) -> None:
        self.server, self.member = {} if server is None else server, member
        self.listed = {**listed, **({} if description is None else {"description": description})}
        self.name, self.called = name, str(listed["name"])
        self.function, self.where = self._refuse, "its server"
        self.description = str(self.listed.get("description") or "")
        hints: Json = listed.get("annotations") or {}
        self.read_only = hints.get("readOnlyHint") is True
        self.open_world = hints.get("openWorldHint", True) is not False
        self._schema: Json = listed["inputSchema"]
        self._masked = masked & set(as_object(self._schema.get("properties")))
        self.replayable = replayable and not self._masked
        self.arguments = PassedArguments(f"tool {name!r}", self._schema)
        taken = "session" in self.arguments.names
        self.session_argument = OWN_SESSION if taken else "session"

    async def _refuse(self, **_: Any) -> None:
        raise InvalidTask(f"{self.name} is a tool of a server; call it in a session.")

    def offer(self, environment: "Environment") -> None:
        """Offer it to agents, and count it among the facts on its server."""
        environment.offer(self)
        facts = self.server
        facts["tokens"] = facts.get("tokens", 0) + tokens(self.listed)
        facts["count"] = facts.get("count", 0) + 1
        facts["listed"] = [*facts.get("listed", ()), self.name][:_LISTED]

    def entry(self, name: str) -> "types.Tool":
        """Return the server's own entry, with the argument that names the session."""
        fields = {**as_object(self._schema.get("properties")), self.session_argument: _SESSION}
        schema = {**self._schema, "properties": fields}
        entry = {**self.listed, "name": name, "inputSchema": schema}
        return libraries.mcp_types.Tool.model_validate(entry)

    def recorded(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments as the record keeps them."""
        if not self._masked:
            return args
        return {name: _digest(v) if name in self._masked else v for name, v in args.items()}

    def kept(self, reply: ToolReply) -> dict[str, Any]:
        """Return what the record keeps of a reply."""
        return {**kept_reply(reply), "server": self.server}

    def is_same(self, reply: Any, text: str | None, kept: Mapping[str, Any]) -> bool:
        """Whether a repeated call has the recorded result."""
        del text
        return _theirs(kept_reply(reply)) == _theirs(kept)

    async def call(self, args: Mapping[str, Any], world: Any) -> ToolReply | InputNeeded:
        """Call it on a world's own server."""
        return await world.call(self, args)

    async def call_in(
        self,
        args: Mapping[str, Any],
        world: Any,
        services: dict[str, SharedService],
        exchange: Exchange | None = None,
    ) -> ToolReply | InputNeeded:
        """Call it in a session."""
        del services
        return await world.call(self, args, exchange)


def tell_once(environment: "Environment", note: str) -> None:
    """Tell agents a note, once: an environment may be served again."""
    if note not in environment.notes:
        environment.tell_agents(note)


_KEY = os.urandom(32)


def _digest(value: Any) -> str:
    """Return a mask that is another for another value, or after a restart.

    Else two calls that differ in a masked argument would count as one call, made twice.
    """
    data = json.dumps(value, sort_keys=True, default=str).encode()
    return f"[masked {blake2b(data, key=_KEY, digest_size=4).hexdigest()}]"


def _theirs(kept: Mapping[str, Any]) -> list[Any]:
    """Return the parts of a kept reply that are the server's."""
    content: list[Json] = kept.get("content") or []
    blocks = [each for each in content if NOTICE not in (each.get("_meta") or {})]
    return [blocks, kept.get("structured"), kept.get("is_error")]

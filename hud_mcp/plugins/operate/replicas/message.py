"""The session that a request means, as far as its body says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from hud_mcp.session.caller import CHOSEN_SESSION, ONLY

TAG = "hud-mcp/replica"
"""The key of a result's `_meta` with the tag of the replica that answered."""
_OF_SESSION = re.compile(r"hud://sessions/([^/]+)/")
_WITHOUT = frozenset({"list_tasks", "start_task"})
"""Tools that are called without a session."""
_OPERATORS = "hud-mcp/"
"""The beginning of the names of the operator's tools. Any replica answers them."""
_REPEATABLE = frozenset({"task_status", "screenshot", "response", "cancel_task", "list_tasks"})
"""Tools that do nothing twice when the same call comes again."""


@dataclass(frozen=True)
class Message:
    """The parts of a JSON-RPC message that forwarding needs.

    Attributes:
        id: The request's id; None for a notification.
        method: The method.
        params: Its parameters.
        session: The id of the session that it names; None if it names none.
        wants_session: Whether it means a session, named or not.
        begins: Whether it may begin a session.
        repeats: Whether the same message again does nothing twice.
    """

    id: Any
    method: str
    params: Mapping[str, Any]
    session: str | None = None
    wants_session: bool = False
    begins: bool = False
    repeats: bool = False


def read_message(body: bytes) -> Message | None:
    """Read a message; None for a batch or bad JSON, which the server itself refuses."""
    try:
        row: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    given = _mapping(row)
    method = given.get("method")
    if not isinstance(method, str):
        return None
    params = _mapping(given.get("params"))
    plain = Message(given.get("id"), method, params)
    if method == "tools/call":
        return _tool_call(plain)
    if method == "prompts/get":
        session = _text(_mapping(params.get("arguments")).get("session"))  # of a server's prompt
        wants = session is not None
        return Message(plain.id, method, params, session, wants_session=wants, begins=not wants)
    if method == "resources/read":
        session = _session_of(params.get("uri"))
        return Message(
            plain.id, method, params, session, wants_session=session is not None, repeats=True
        )
    return plain


def _tool_call(plain: Message) -> Message:
    arguments, meta = _mapping(plain.params.get("arguments")), _mapping(plain.params.get("_meta"))
    name = plain.params.get("name")
    is_operators = isinstance(name, str) and name.startswith(_OPERATORS)
    begins = name == "start_task"
    chosen = meta.get(CHOSEN_SESSION) if begins else meta.get(ONLY)
    session = _text(arguments.get("session")) or _text(chosen)
    lists = name == "task_status" and arguments.get("list") is True
    return Message(
        plain.id,
        plain.method,
        plain.params,
        None if lists or is_operators else session,
        wants_session=not (lists or is_operators or name in _WITHOUT),
        begins=begins,
        repeats=name in _REPEATABLE
        or (begins and session is not None)
        or (name == "step" and isinstance(arguments.get("after_step"), int)),
    )


def _session_of(uri: Any) -> str | None:
    found = _OF_SESSION.match(uri) if isinstance(uri, str) else None
    return found[1] if found else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Announced:
    """The description that a replica publishes to the others. `tag` is the mark of its replies."""

    advertised: str
    tag: str
    is_draining: bool = False


_CALL = "tools/call"


def mark_results(server: Server[Any], tag: str) -> None:
    """Let the result of each tool call name the replica that performed it."""
    entry = server.get_request_handler(_CALL)

    async def call(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Any:
        replied: Any = await entry.handler(ctx, params) if entry is not None else {}
        result = cast("Mapping[str, Any]", replied)
        meta: Mapping[str, Any] = result.get("_meta") or {}
        return {**result, "_meta": {**meta, TAG: tag}}

    server.add_request_handler(_CALL, types.CallToolRequestParams, call)

"""The MCP server. Its surface is complete when it is built, and fixed without `--reload`.

It stands on the SDK's low-level server, because its tools come from declarations, and a failure of
one must reach the model as text.
"""

import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hud_mcp.base import __version__
from hud_mcp.environment.tool import Exchange
from hud_mcp.errors import clipped
from hud_mcp.registry import service
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import perform_call
from hud_mcp.server.middleware import (
    ListChanges,
    changing,
    explain_envelope,
    introduced,
    trace_where_seen,
)
from hud_mcp.server.own_tools import own_tools
from hud_mcp.server.prompts import Prompts
from hud_mcp.server.resources import Resources
from hud_mcp.server.texts import instructions
from hud_mcp.server.tools import CORE, CoreTool, listed_core_tools
from hud_mcp.server.view import View
from hud_mcp.server.web.auth import caller_of_token
from hud_mcp.session.caller import CONNECTION, HTTP, LOCAL, ONLY, Caller
from hud_mcp.session.receipts import digest
from hud_mcp.session.registry import Sessions
from hud_mcp.values.observation import DEFAULT_FORMAT, ImageFormat

__all__ = ["build_server", "caller_of"]

logger = logging.getLogger(__name__)

Context = ServerRequestContext[str, Any]

_LASTING_MS = 60_000
"""The time for which a client may keep a list."""

_ANSWER_S = 600.0
"""The longest wait for a client's answer to a question of a server."""

_HEADER = "x-mcp-header"
"""The keyword of an argument that also comes as a header."""

_BEGINNINGS = frozenset({"initialize", "server/discover"})
"""A client's first request, of either era."""


def build_server(
    sessions: Sessions,
    *,
    image: ImageFormat = DEFAULT_FORMAT,
    tools: Iterable[CoreTool] = CORE.values(),
) -> Server[str]:
    """Build the server for a registry of sessions; the registry outlives it.

    Args:
        sessions: The registry to serve.
        image: The format of pictures, unless a call names one.
        tools: The core tools, in the order in which clients see them.

    Raises:
        InvalidEnvironment: An environment's own tool has the name of a core tool.
    """
    surface = _Surface(sessions, image, tools)
    lasting_ms = 0 if sessions.reloads else _LASTING_MS
    server: Server[str] = Server(
        "hud-mcp",
        version=__version__,
        title="hud-mcp",
        instructions=surface.instructions,
        lifespan=_lifespan,
        get_tool_input_schema=surface.schema_of_headers,
        # Private: an agent of one session and its principal get different lists.
        cache_hints={
            "tools/list": CacheHint(ttl_ms=lasting_ms, scope="private"),
            "prompts/list": CacheHint(ttl_ms=lasting_ms, scope="private"),
            "resources/list": CacheHint(ttl_ms=lasting_ms, scope="private"),
            "resources/templates/list": CacheHint(ttl_ms=lasting_ms, scope="private"),
        },
        on_list_tools=surface.list_tools,
        on_call_tool=surface.call_tool,
        on_list_prompts=surface.list_prompts,
        on_get_prompt=surface.get_prompt,
        on_list_resources=surface.list_resources,
        on_list_resource_templates=surface.list_resource_templates,
        on_read_resource=surface.read_resource,
        on_completion=surface.complete,
    )
    surface.lists = ListChanges(service("subscriptions")(server, sessions, surface.resources))
    trace_where_seen(server)
    introduce = cast("ServerMiddleware[Any]", surface.introduce)
    server.middleware.extend([explain_envelope, introduce])
    return server


@asynccontextmanager
async def _lifespan(_server: Server[str]) -> AsyncGenerator[str]:
    """The name of a connection that has a lifespan of its own: on stdio and in memory."""
    yield f"{LOCAL}{secrets.token_hex(8)}"


def caller_of(ctx: Context) -> Caller:
    """Return the caller of a request.

    The session header counts only on the 2025-era leg of HTTP, where the SDK has checked it. On
    modern requests a client may send any.
    """
    token = get_access_token()
    caller = Caller() if token is None else caller_of_token(token)
    if ctx.request is None:
        local = Caller(connection=ctx.lifespan_context)
        caller = local if token is None else replace(caller, connection=local.connection)
    elif ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        known = ctx.request.scope.get(CONNECTION)  # the connection that another replica opened
        if header := known or ctx.request.headers.get("mcp-session-id"):
            caller = replace(caller, connection=f"{HTTP}{header}")
    meta = (ctx.params or {}).get("_meta")
    only = cast("Mapping[str, Any]", meta).get(ONLY) if isinstance(meta, Mapping) else None
    return caller.only(digest(only)) if isinstance(only, str) else caller


class _Surface:
    """The handlers of a server."""

    lists: ListChanges

    def __init__(self, sessions: Sessions, image: ImageFormat, tools: Iterable[CoreTool]) -> None:
        self._sessions = sessions
        self._image: ImageFormat = image
        self.resources = Resources(sessions, image)
        self._core = {tool.name: tool for tool in tools}
        self._declare()
        sessions.changes.at_replacement(self._replace)

    def _replace(self) -> None:
        self._declare()
        self.lists.tell()

    def _declare(self) -> None:
        """Make the surface of the environments that are served now.

        Raises:
            InvalidEnvironment: A tool has the name of a core tool; the surface stays unchanged.
        """
        core, sessions = self._core, self._sessions
        own = own_tools(sessions, taken=core)
        self._prompts = Prompts(sessions)
        self.resources.refresh()
        self._tools, self._agent_tools = (
            {name: t for name, t in core.items() if t.is_for(one_session=one)} | own
            for one in (False, True)
        )
        environments = list(sessions.environments.values())
        self.view = View.of(environments, look=sessions.look)
        if self.view.talks:
            service("person as user")(1.0)  # a wrong setting is told before anybody talks
        agents_view = View.of(environments, one_session=True, look=sessions.look)
        self._listed, self._agents_listed = (
            types.ListToolsResult(
                tools=[
                    *listed_core_tools(view, core.values()),
                    *(tool.listed() for tool in own.values() if tool.is_listed),
                ]
            )
            for view in (self.view, agents_view)
        )
        self._with_headers = {
            tool.name: tool.input_schema
            for tool in self._listed.tools
            if _HEADER in repr(tool.input_schema)
        }
        self.instructions = "\n".join([instructions(self.view), *sessions.catalogue.notes()])
        self._agents_instructions = instructions(agents_view)

    def schema_of_headers(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool with arguments that also come as HTTP headers.

        The SDK checks them with each call over HTTP, and would list all tools to find them.
        """
        return self._with_headers.get(name)

    def introduce(self, ctx: Context, call_next: CallNext) -> Awaitable[HandlerResult]:
        """Begin a connection. An agent of one session hears only what it can do."""
        if ctx.method == "tools/list" and self._sessions.reloads:
            self.lists.note(ctx, caller_of(ctx))
        return self._introduced(ctx, call_next) if ctx.method in _BEGINNINGS else call_next(ctx)

    async def _introduced(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        told: dict[str, Any] = introduced(cast("Mapping[str, Any]", await call_next(ctx)))
        if self._sessions.reloads:
            told = changing(told) | {"instructions": self.instructions}
        if not caller_of(ctx).is_agent:
            return told
        shown = {k: v for k, v in told["capabilities"].items() if k != "prompts"}
        return {**told, "capabilities": shown, "instructions": self._agents_instructions}

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        _refuse_cursor(params)
        return self._agents_listed if caller_of(ctx).is_agent else self._listed

    def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Awaitable[Any]:
        name = params.name
        meta = cast("Mapping[str, Any]", params.meta or {})
        caller = caller_of(ctx)
        tools = self._tools
        if caller.session is not None:
            tools = self._agent_tools
            self._note_called(caller, caller.session)
        tool = tools.get(name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name}")
        call = Call(
            sessions=self._sessions,
            caller=caller,
            arguments=params.arguments or {},
            progress=ctx.session.report_progress if "progress_token" in meta else None,
            image=self._image,
            meta=meta,
            exchange=_exchange(ctx, params),
        )
        return perform_call(call, tool)

    def _note_called(self, caller: Caller, key: str) -> None:
        """Note for the program that runs an agent: the agent itself works on its session."""
        session = self._sessions.roster.get(key) if caller.has_session_token else None
        if session is not None:
            session.agent_called = True

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        _refuse_cursor(params)
        # A prompt begins a session, which an agent of one may not.
        prompts = [] if caller_of(ctx).is_agent else self._prompts.declared()
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await self._prompts.get(params.name, params.arguments or {}, caller_of(ctx))

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        _refuse_cursor(params)
        # Manifests describe what can be begun.
        resources = [] if caller_of(ctx).is_agent else self.resources.declared()
        return types.ListResourcesResult(resources=resources)

    async def list_resource_templates(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        _refuse_cursor(params)
        return types.ListResourceTemplatesResult(resource_templates=self.resources.templates())

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self.resources.read(str(params.uri), caller_of(ctx))

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        typed, caller = params.argument.value, caller_of(ctx)
        if not isinstance(params.ref, types.PromptReference):
            values = self.resources.complete(typed, caller)
        elif caller.is_agent:
            values = []
        else:
            values = self._prompts.complete(params.ref.name, params.argument.name, typed)
        shown = values[:100]
        completion = types.Completion(
            values=shown, total=len(values), has_more=len(shown) < len(values)
        )
        return types.CompleteResult(completion=completion)


def _exchange(ctx: Context, params: types.CallToolRequestParams) -> Exchange:
    capabilities = ctx.session.client_capabilities
    modes = capabilities.elicitation if capabilities is not None else None
    if modes is None:
        return Exchange(state=params.request_state)
    declared = frozenset(n for n in ("form", "url") if getattr(modes, n) is not None)
    declared = declared or frozenset({"form"})
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        answers = (params.input_responses or {}).items()
        given = {key: each.model_dump(mode="json", exclude_none=True) for key, each in answers}
        return Exchange(declared=declared, responses=given, state=params.request_state)
    can_ask = ctx.session.can_send_request
    return Exchange(declared=declared, ask=partial(_ask, ctx)) if can_ask else Exchange()


async def _ask(ctx: Context, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask a client of the earlier era; its failure to answer dismisses the question."""
    asked = types.ElicitRequest.model_validate(request)
    beside = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        found = await ctx.session.send_request(asked, types.ElicitResult, _ANSWER_S, beside)
    except (MCPError, ValidationError) as exc:
        logger.info("the client did not answer a server's question: %s", exc)
        return {"action": "cancel"}
    return found.model_dump(mode="json", exclude_none=True)


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    """Refuse a cursor. Every list is whole, so no cursor was given out.

    Raises:
        MCPError: -32602 for any but an empty cursor.
    """
    cursor = None if params is None else params.cursor
    if cursor:
        text = f"Invalid cursor {clipped(cursor)}: this list has one page. Leave the cursor out."
        raise MCPError(code=INVALID_PARAMS, message=text)

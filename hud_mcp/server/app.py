"""The MCP server: its surface is complete and fixed when it is built.

It stands on the SDK's low-level server: its tools come from declarations, and what goes
wrong in one must reach the model as text.
"""

import logging
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hud_mcp import __version__
from hud_mcp.caller import CREDENTIAL
from hud_mcp.errors import (
    HudMcpError,
    InvalidTask,
    LimitReached,
    SessionResuming,
    sole_cause,
)
from hud_mcp.operations import OPERATIONS, Operations
from hud_mcp.server.arguments import clean_arguments
from hud_mcp.server.call import Call, Pictures
from hud_mcp.server.calls import CALLS, call_environment_tool, environment_tools
from hud_mcp.server.prompts import Prompts
from hud_mcp.server.resources import Resources
from hud_mcp.server.results import error_result, structured_result
from hud_mcp.server.schemas import SESSION, core_tools, instructions, make_tool
from hud_mcp.session import Caller
from hud_mcp.sessions import Sessions
from hud_mcp.tool import Tool

__all__ = ["build_server"]

logger = logging.getLogger(__name__)

Context = ServerRequestContext[str, Any]


def build_server(
    sessions: Sessions,
    *,
    pictures: Pictures | None = None,
    operations: Operations | None = None,
) -> Server[str]:
    """Build the server for a registry of sessions; the registry outlives it.

    Args:
        sessions: What is served.
        pictures: How pictures are sent.
        operations: What the operator may call, with its credential; no tool is listed for it.
    """
    surface = _Surface(sessions, pictures or Pictures(), operations)
    server: Server[str] = Server(
        "hud-mcp",
        version=__version__,
        title="hud-mcp",
        instructions="\n".join([instructions(sessions.environments.values()), *sessions.notes()]),
        lifespan=_lifespan,
        cache_hints={
            "tools/list": CacheHint(ttl_ms=60_000, scope="public"),
            "prompts/list": CacheHint(ttl_ms=60_000, scope="public"),
            "resources/list": CacheHint(ttl_ms=60_000, scope="public"),
            "resources/templates/list": CacheHint(ttl_ms=60_000, scope="public"),
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
    return server


@asynccontextmanager
async def _lifespan(_server: Server[str]) -> AsyncGenerator[str]:
    """A name for the connection, where a lifespan is one: on stdio and in memory."""
    yield f"local:{secrets.token_hex(8)}"


def caller_of(ctx: Context) -> Caller:
    """Who makes a request.

    The session header is only believed on the 2025-era leg of HTTP, where the SDK has
    checked it; on modern requests a client may send anything.
    """
    token = get_access_token()
    principal = None if token is None else f"{token.client_id}"
    if ctx.request is None:
        return Caller(principal=principal, connection=ctx.lifespan_context)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return Caller(principal=principal)
    header = ctx.request.headers.get("mcp-session-id")
    return Caller(principal=principal, connection=f"http:{header}" if header else None)


class _Surface:
    """The handlers."""

    def __init__(
        self, sessions: Sessions, pictures: Pictures, operations: Operations | None
    ) -> None:
        self._sessions = sessions
        self._operations = operations
        self._pictures = pictures
        self._prompts = Prompts(sessions)
        self._resources = Resources(sessions)
        self._own = environment_tools(sessions)
        core = core_tools(sessions.environments.values())
        # What is not of these environments is refused by the session, which knows why.
        self._schemas: dict[str, Mapping[str, Any]] = {t.name: t.input_schema for t in core_tools()}
        own = [_declare(name, tool) for name, (_, tool) in self._own.items()]
        self._tools = types.ListToolsResult(tools=[*core, *own])

    async def list_tools(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._tools

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        name = params.name
        meta = cast("Mapping[str, Any]", params.meta or {})
        operations = self._operations_of(name, meta)
        if operations is not None:
            return await _operate(operations, name, params.arguments or {})
        return await self._call_tool(ctx, params, meta)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams, meta: Mapping[str, Any]
    ) -> Any:
        name = params.name
        if name not in CALLS and name not in self._own:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name}")
        try:
            call = Call(
                sessions=self._sessions,
                caller=caller_of(ctx),
                arguments=self._arguments(name, params.arguments or {}),
                progress=_progress(ctx),
                pictures=self._pictures,
                meta=meta,
            )
            if name in CALLS:
                return await CALLS[name](call)
            return await call_environment_tool(call, *self._own[name])
        except HudMcpError as exc:
            # A program calls again by itself where a session only takes its time.
            waits = isinstance(exc, SessionResuming)
            return error_result(str(exc), kind=SessionResuming.__name__ if waits else None)
        except BaseExceptionGroup as group:
            # A task group somewhere below wraps what its body raised.
            inner = sole_cause(group)
            if isinstance(inner, HudMcpError):
                return error_result(str(inner))
            logger.exception("tool %s failed", name)
            return error_result(f"{name} failed inside the server; its log says why.")
        except Exception:  # the boundary of a tool call: a model must be told something
            logger.exception("tool %s failed", name)
            return error_result(f"{name} failed inside the server; its log says why.")

    def _operations_of(self, name: str, meta: Mapping[str, Any]) -> Operations | None:
        """What performs an operation, where its caller may; to others no such tool exists."""
        if self._operations is None or name not in OPERATIONS:
            return None
        return self._operations if self._operations.admits(meta.get(CREDENTIAL)) else None

    async def list_prompts(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=self._prompts.declared())

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await self._prompts.get(params.name, params.arguments or {}, caller_of(ctx))

    async def list_resources(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._resources.declared())

    async def list_resource_templates(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=self._resources.templates())

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self._resources.read(str(params.uri), caller_of(ctx))

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        typed = params.argument.value
        if isinstance(params.ref, types.PromptReference):
            values = self._prompts.complete(params.ref.name, params.argument.name, typed)
        else:
            values = self._resources.complete(typed, caller_of(ctx))
        shown = values[:100]
        completion = types.Completion(
            values=shown, total=len(values), has_more=len(shown) < len(values)
        )
        return types.CompleteResult(completion=completion)

    def _arguments(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        limit = self._sessions.limits.argument_bytes
        if name in CALLS:
            return clean_arguments(name, self._schemas[name], given, max_bytes=limit)
        tool = self._own[name][1]
        if len(str(given)) > limit:
            raise LimitReached(f"{name}: the arguments are larger than {limit} bytes.")
        kept = {k: v for k, v in given.items() if v is not None or k in tool.arguments.required}
        session = kept.get("session")
        if session is not None and not isinstance(session, str):
            raise InvalidTask(f"{name}: 'session' must be a string.")
        return kept


async def _operate(
    operations: Operations, name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Perform an operation; a failure says its class, which the operator's client raises."""
    try:
        return structured_result(await operations.perform(name, arguments), "Done.")
    except HudMcpError as exc:
        return error_result(str(exc), kind=type(exc).__name__)
    except Exception:  # the boundary of a tool call
        logger.exception("%s failed", name)
        return error_result(f"{name} failed inside the server; its log says why.")


def _declare(name: str, tool: Tool) -> types.Tool:
    schema = tool.arguments.schema
    properties = {**schema["properties"], "session": SESSION}
    description = tool.description or f"{tool.name}: a tool of the environment's own."
    return make_tool(
        name,
        name.replace("_", " ").capitalize(),
        description[:1000],
        {**schema, "properties": properties},
        read_only=tool.read_only,
        destructive=not tool.read_only,
        idempotent=tool.read_only,
    )


def _progress(ctx: Context) -> Any:
    async def report(done: float, message: str) -> None:
        await ctx.session.report_progress(done, None, message)

    return report

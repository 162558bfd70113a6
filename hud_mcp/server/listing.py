"""Lists of tools, as clients of one kind see them."""

from collections.abc import Iterable, Mapping
from typing import Any

import mcp_types as types

from hud_mcp.schema import plain_schema
from hud_mcp.server.own_tools import OwnTool
from hud_mcp.server.tools import CORE, CoreTool
from hud_mcp.server.view import View

__all__ = ["listed_core_tools", "listed_own_tools"]


def listed_core_tools(view: View, tools: Iterable[CoreTool] = CORE.values()) -> list[types.Tool]:
    """Those of the core tools that clients of a view have, in order."""
    return [
        _listed(
            tool.name,
            tool.title,
            tool.describe(view),
            tool.schema(view),
            read_only=tool.read_only,
            destructive=tool.is_destructive(view),
            idempotent=tool.idempotent,
            open_world=tool.is_open_world(view),
            returns=tool.returns,
        )
        for tool in tools
        if tool.is_shown(view)
    ]


def listed_own_tools(view: View, tools: Iterable[OwnTool]) -> list[types.Tool]:
    """The environments' own tools, which all clients have."""
    return [
        _listed(
            own.name,
            own.title,
            own.description,
            own.schema(view.session),
            read_only=own.tool.read_only,
            destructive=own.is_destructive,
            idempotent=own.tool.read_only,
            open_world=own.is_open_world,
        )
        for own in tools
        if own.is_listed
    ]


def _listed(
    name: str,
    title: str,
    description: str,
    schema: dict[str, Any],
    *,
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
    returns: Mapping[str, Any] | None = None,
) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        # Also those of worlds, whose authors write the schemas of custom actions themselves.
        input_schema=plain_schema(schema),
        output_schema=None if returns is None else plain_schema(returns),
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=open_world,
        ),
        # Claude Code otherwise hides the tools of a server behind a search.
        _meta={"anthropic/alwaysLoad": True},
    )

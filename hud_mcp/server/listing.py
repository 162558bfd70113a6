"""Lists of tools, as clients of one kind see them."""

from collections.abc import Iterable
from typing import Any

import mcp_types as types

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
            destructive=tool.destructive,
            idempotent=tool.idempotent,
            open_world=tool.open_world,
        )
        for tool in tools
        if not (tool.begins and view.one_session)
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
            destructive=not own.tool.read_only,
            idempotent=own.tool.read_only,
            open_world=False,
        )
        for own in tools
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
) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=schema,
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

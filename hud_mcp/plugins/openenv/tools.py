"""The tools of a server as a trainer sees them: one by one, with description and schema."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, cast

from hud_mcp.base import libraries
from hud_mcp.server.local import LocalTools
from hud_mcp.server.view import View


def answer_tool(tools: LocalTools) -> str:
    """Return the name of the tool that ends the episode; a server's own may be called `answer`."""
    name = "answer"
    while name in tools.own:
        name = f"submit_{name}"
    return name


def world_actions(tools: LocalTools) -> dict[str, Mapping[str, Any]]:
    """Return the worlds' own actions by name, with the schemas of their arguments."""
    own = [e.world.custom_actions for e in tools.sessions.environments.values()]
    return {name: schema for actions in own for name, schema in actions.items()}


def listed_tools(tools: LocalTools) -> list[dict[str, Any]]:
    """Return all tools in OpenEnv's form: the environments', the worlds' actions, the answer."""
    return list(_tools(tools))


def _tools(tools: LocalTools) -> Iterator[dict[str, Any]]:
    for name, tool in tools.own.items():
        if tool.is_listed:
            yield _row(name, tool.description, tool.tool.arguments.schema)
    for name, schema in world_actions(tools).items():
        if name not in tools.own:
            yield _row(name, str(schema.get("description") or f"The action {name!r}."), schema)
    if _has_world(tools):
        actions = _actions_schema(tools)
        told = "Perform actions in order, and look."
        yield _row("step", told, {"type": "object", "properties": {"actions": actions}})
    yield _row(
        answer_tool(tools),
        "Submit the final answer: the episode ends and is graded.",
        {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
    )


def action_schema(tools: LocalTools) -> dict[str, Any]:
    """Return the schema of a step. Without anything to act on, a step is an answer."""
    answer = {"type": "string", "description": "The final answer; the episode ends by it."}
    title = "TaskAction"
    if not _has_world(tools) and not tools.own:
        fields: dict[str, Any] = {"answer": answer}
        return {"title": title, "type": "object", "properties": fields, "required": ["answer"]}
    fields = {
        "actions": _actions_schema(tools),
        "tool": {"type": "string", "enum": [row["name"] for row in listed_tools(tools)]},
        "arguments": {"type": "object", "description": "Those of the tool."},
        "answer": answer,
    }
    if not _has_world(tools):
        del fields["actions"]
    return {
        "title": title,
        "type": "object",
        "properties": fields,
        "oneOf": [{"required": [name]} for name in fields if name != "arguments"],
    }


def _actions_schema(tools: LocalTools) -> dict[str, Any]:
    fields = View.of(tools.sessions.environments.values()).action
    one = {"type": "object", "properties": fields, "required": ["type"]}
    return {"type": "array", "items": one, "description": "Actions in order."}


def _has_world(tools: LocalTools) -> bool:
    """Whether a world has any action but waiting."""
    worlds = [e.world for e in tools.sessions.environments.values()]
    return any(world.actions - {"wait"} or world.custom_actions for world in worlds)


def _row(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": dict(schema)}


def plain_values(values: Any) -> Any:
    """Return values with lists of numbers in place of arrays (base64, `dtype`, `shape`)."""
    if isinstance(values, list):
        return [plain_values(each) for each in cast("list[Any]", values)]
    if not isinstance(values, Mapping):
        return values
    parts = cast("Mapping[str, Any]", values)
    if set(parts) == {"parts"}:
        return {name: plain_values(part) for name, part in parts["parts"].items()}
    if set(parts) == {"array", "dtype", "shape"}:
        data = libraries.numpy.frombuffer(base64.b64decode(parts["array"]), dtype=parts["dtype"])
        return data.reshape(parts["shape"]).tolist()
    return {name: plain_values(part) for name, part in parts.items()}

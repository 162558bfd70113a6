"""How an environment's tools appear to a trainer: one by one, with docstring and schema."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, cast

from hud_mcp.base.lazy import libraries
from hud_mcp.plugins.openenv.calls import Calls
from hud_mcp.server.view import View

__all__ = ["ANSWER", "action_schema", "listed_tools", "plain_values", "world_actions"]


ANSWER = "answer"
"""The tool that submits the final answer."""


def world_actions(calls: Calls) -> dict[str, Mapping[str, Any]]:
    """The worlds' own actions by name, with the schemas of their arguments."""
    own = [e.world.custom_actions for e in calls.sessions.environments.values()]
    return {name: schema for actions in own for name, schema in actions.items()}


def listed_tools(calls: Calls) -> list[dict[str, Any]]:
    """All tools as OpenEnv lists them: the environments' own, the worlds' actions, the answer."""
    return list(_tools(calls))


def _tools(calls: Calls) -> Iterator[dict[str, Any]]:
    for name, tool in calls.own.items():
        if tool.is_listed:
            yield _row(name, tool.description, tool.tool.arguments.schema)
    for name, schema in world_actions(calls).items():
        if name not in calls.own:
            yield _row(name, str(schema.get("description") or f"The action {name!r}."), schema)
    if _has_world(calls):
        actions = _actions_schema(calls)
        told = "Perform actions in order, and look."
        yield _row("step", told, {"type": "object", "properties": {"actions": actions}})
    yield _row(
        ANSWER,
        "Submit the final answer: the episode ends and is graded.",
        {
            "type": "object",
            "properties": {"answer": {"type": "string"}},
            "required": ["answer"],
        },
    )


def action_schema(calls: Calls) -> dict[str, Any]:
    """What a step takes: an answer alone where there is nothing to act on, else one of several."""
    answer = {"type": "string", "description": "The final answer; the episode ends by it."}
    title = "TaskAction"
    if not _has_world(calls) and not calls.own:
        fields: dict[str, Any] = {"answer": answer}
        return {"title": title, "type": "object", "properties": fields, "required": ["answer"]}
    fields = {
        "actions": _actions_schema(calls),
        "tool": {"type": "string", "enum": [row["name"] for row in listed_tools(calls)]},
        "arguments": {"type": "object", "description": "Those of the tool."},
        "answer": answer,
    }
    if not _has_world(calls):
        del fields["actions"]
    return {
        "title": title,
        "type": "object",
        "properties": fields,
        "oneOf": [{"required": [name]} for name in fields if name != "arguments"],
    }


def _actions_schema(calls: Calls) -> dict[str, Any]:
    fields = View.of(calls.sessions.environments.values()).action
    one = {"type": "object", "properties": fields, "required": ["type"]}
    return {"type": "array", "items": one, "description": "Actions in order."}


def _has_world(calls: Calls) -> bool:
    """Whether a world takes more than time that passes."""
    worlds = [e.world for e in calls.sessions.environments.values()]
    return any(world.actions - {"wait"} or world.custom_actions for world in worlds)


def _row(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": dict(schema)}


def plain_values(values: Any) -> Any:
    """Numbers and lists in place of encoded arrays.

    Args:
        values: As an observation has them: an array is its `array` (base64), `dtype` and `shape`.
    """
    if isinstance(values, list):
        return [plain_values(each) for each in cast("list[Any]", values)]
    if not isinstance(values, Mapping):
        return values
    parts = cast("Mapping[str, Any]", values)
    if set(parts) == {"parts"}:
        return {name: plain_values(part) for name, part in parts["parts"].items()}
    if set(parts) == {"array", "dtype", "shape"}:
        data = libraries.np.frombuffer(base64.b64decode(parts["array"]), dtype=parts["dtype"])
        return data.reshape(parts["shape"]).tolist()
    return {name: plain_values(part) for name, part in parts.items()}

"""The tool `step`."""

from collections.abc import Awaitable, Mapping
from typing import Any

from hud_mcp.action import parse_actions
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.schemas import list_schema, object_schema
from hud_mcp.server.stepping import AFTER_STEP, OBSERVE, take_step
from hud_mcp.server.view import View

__all__ = ["STEP"]


def step(call: Call) -> Awaitable[dict[str, Any]]:
    """Perform actions and look."""
    return take_step(call, "step", parse_actions(call.arguments.get("actions")), image=True)


def _description(view: View) -> str:
    refs = " with refs" if view.points else ""
    picture = ", and a picture where the environment has a screen" if view.screen else ""
    return (
        f"Perform actions in order, then return what there is to see: text{refs}{picture}. No "
        "actions: only look. At a refused action it stops and says which one and what is true "
        "now. Call step again to go on, response when done."
    )


def _arguments(view: View) -> Mapping[str, Argument]:
    actions = list_schema(object_schema(view.action, "type"), "In order; at most 50.")
    return {
        "actions": Argument(actions, has_parser=True),  # one alone, and the HUD SDK's nested form
        "observe": OBSERVE,
        "after_step": AFTER_STEP,
        "session": Argument(view.session),
    }


STEP = CoreTool(
    run=step,
    title="Act and look",
    description=_description,
    arguments=_arguments,
    is_step=True,
    destructive=lambda view: view.destructive,
    open_world=lambda view: view.open_world,
)

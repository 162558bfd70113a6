"""The tool `act`."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.action import ScreenshotFetch, parse_action
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.schemas import ACTION
from hud_mcp.server.stepping import AFTER_STEP, OBSERVE, take_step
from hud_mcp.server.view import View

__all__ = ["ACT"]

_BESIDE = ("session", "observe", "after_step")
"""The arguments that are none of the action's fields."""

_NESTED = dict.fromkeys(("point", "scroll", "offset"), Argument(None))
"""The HUD SDK's form of an action, which the action's parser takes too."""


async def act(call: Call) -> dict[str, Any]:
    """Perform one action."""
    action = parse_action({k: v for k, v in call.arguments.items() if k not in _BESIDE})
    is_blind = isinstance(action, ScreenshotFetch)
    tail = "act shows no picture; call screenshot, or step." if is_blind else ""
    return await take_step(call, "act", (action,), image=False, tail=tail)


def _description(view: View) -> str:
    told = "Perform one action and return the text that follows"
    if not view.screen:
        return f"{told}. Call step for several, response when done."
    return (
        f"{told}, without a picture: quicker than step. Call screenshot or step to see, response "
        "when done."
    )


def _arguments(view: View) -> Mapping[str, Argument]:
    # The parser checks what an author's own action has besides, and is shown as a text perhaps.
    fields = {
        name: Argument(schema, has_parser=name not in ACTION)
        for name, schema in view.action.items()
    }
    if "args" in fields:  # some are shown the text that an object can be sent as
        fields["args"] = Argument(view.action["args"], kind="object")
    # To type nothing empties a field, and an answer may be nothing.
    fields["text"] = Argument(view.action["text"], may_be_empty=True)
    session = Argument(view.session)
    return {**fields, "observe": OBSERVE, "after_step": AFTER_STEP, "session": session, **_NESTED}


ACT = CoreTool(
    run=act,
    title="One action",
    description=_description,
    arguments=_arguments,
    required=("type",),
    is_step=True,
    destructive=lambda view: view.destructive,
    open_world=lambda view: view.open_world,
)

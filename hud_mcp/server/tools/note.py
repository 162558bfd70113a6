"""The tool `note`."""

from typing import Any

from hud_mcp.errors import InvalidTask
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool, read_turns, report
from hud_mcp.server.results import structured_result

__all__ = ["NOTE"]


async def note(call: Call) -> dict[str, Any]:
    """Record a turn of the agent's model that made no other call."""
    given = call.arguments["turn"]
    turns = read_turns(given)
    problem = await report(call, turns)
    if problem is not None:
        raise InvalidTask(problem)
    return structured_result({"recorded": len(turns)}, "Recorded.")


NOTE = CoreTool(
    run=note,
    title="Note a turn",
    description="For programs that run you: records what your model said and used in a turn, for "
    "people who read the record. It is no answer and no step, and nobody grades it. You "
    "need not call it.",
    arguments=lambda view: {
        "turn": Argument(
            {
                "type": "object",
                "description": "Its started_at and ended_at (ISO 8601), and of model, settings, "
                "text, reasoning, calls, usage, cost_usd, stop_reason and error what is known.",
            },
            has_parser=True,
        ),
        "session": Argument(view.session),
    },
    required=("turn",),
    notes=True,
    idempotent=True,
)

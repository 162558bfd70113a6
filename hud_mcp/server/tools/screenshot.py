"""The tool `screenshot`."""

from typing import Any

from hud_mcp.errors import NoScreen, SessionEnded
from hud_mcp.server.arguments import Argument, string_schema
from hud_mcp.server.call import Call, one_of
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import image_result
from hud_mcp.values.observation import IMAGE_FORMATS, ImageFormat

__all__ = ["SCREENSHOT"]


async def screenshot(call: Call) -> dict[str, Any]:
    """Take a picture."""
    session = await call.session()
    if not session.environment.world.has_screen:
        raise NoScreen(
            f"Environment {session.environment.name!r} has no screen. Read the prompt, use its "
            "tools or `step`, and finish with `response`."
        )
    kind: ImageFormat = one_of(call.arguments, "format", IMAGE_FORMATS, call.image)
    stepped = await session.step((), call.look(image=kind), kind="screenshot")
    shot = stepped.result.observation.image
    if shot is None:
        raise SessionEnded("The screen gave no picture; call step to look at the text.")
    return image_result(shot, session, asked=kind, notes=stepped.notes)


_FORMAT = string_schema("The picture's form.", enum=list(IMAGE_FORMATS))

SCREENSHOT = CoreTool(
    run=screenshot,
    title="Screenshot",
    description=lambda view: (
        "Return a picture of what the screen shows."
        + (" Points of later actions are pixels of it." if view.points else "")
    ),
    arguments=lambda view: {"format": Argument(_FORMAT), "session": Argument(view.session)},
    is_step=True,
    needs_screen=True,
    read_only=True,
    idempotent=True,
)

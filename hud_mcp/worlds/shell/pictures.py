"""A tool that shows a picture of the folder to a model that can see."""

import anyio.to_thread

from hud_mcp.errors import ActionFailed
from hud_mcp.values.observation import Observation, Screenshot, crop_screenshot
from hud_mcp.worlds.shell.actions import PathOfFile
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["view_picture"]

MOST_PIXELS = 25_000_000
"""The most pixels of a picture: a small file may unpack to more than the server's memory."""


async def view_picture(shell: ShellWorld, path: PathOfFile) -> Observation:
    """Look at a picture in the task's folder: a PNG or a JPEG."""
    data = await shell.read_bytes(path)
    picture = await anyio.to_thread.run_sync(_read, path, data)
    size = f"{picture.width_px} x {picture.height_px} px"
    return Observation(text=f"{path}, {size}.", image=picture)


def _read(path: str, data: bytes) -> Screenshot:
    """Return a picture that can be decoded to its end: models' providers refuse others."""
    try:
        picture = Screenshot.from_bytes(data)
        if picture.width_px * picture.height_px <= MOST_PIXELS:
            crop_screenshot(picture, (0, 0, 1, 1))
            return picture
    except (ValueError, OSError, SyntaxError) as exc:
        raise ActionFailed(f"{path} is not a PNG and no JPEG that can be read.") from exc
    size = f"{picture.width_px} x {picture.height_px} px"
    raise ActionFailed(f"{path} has {size}; at most {MOST_PIXELS} pixels are shown.")

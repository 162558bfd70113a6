"""The desktop behind a HUD server, over VNC: a real X server, and a program that tells."""

# what is waited for and read is made by another process

import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from bridging import DESKTOP, HudServer, bridged, graded, hud_server
from PIL import Image
from skips import skip_here
from waiting import PATIENCE_S, until

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud.bridge.control import Control
from hud_mcp.plugins.hud.bridge.origin import Address
from hud_mcp.plugins.hud.bridge.vnc import Vnc
from hud_mcp.session.draft import Stepped
from hud_mcp.session.session import Session
from hud_mcp.values.action import parse_actions
from hud_mcp.values.observation import Look

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.browser,
    # The library asks for DES where `cryptography` is about to move it; VNC knows nothing else.
    pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning"),
]


@pytest.fixture(scope="module")
def desktop(hud_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudServer]:
    """A HUD server with a desktop."""
    if not sys.platform.startswith("linux"):
        skip_here("an X server for VNC alone is a program of Linux")
    missing = [name for name in ("Xvnc", "chromium") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"NO DESKTOP IS TESTED: {', '.join(missing)} is not installed.")
    with hud_server(hud_python, DESKTOP, tmp_path_factory.mktemp("desktop")) as running:
        yield running


async def do(session: Session, *actions: dict[str, Any], image: bool = False) -> Stepped:
    """One step that is not refused."""
    look = Look(image="png" if image else None, max_image_bytes=5_000_000)
    stepped = await session.step(parse_actions(list(actions)), look)
    assert stepped.error is None
    return stepped


async def told(desktop: HudServer, *wanted: str) -> list[str]:
    """Wait until the program has told of something."""
    file = desktop.notes / "events"
    await until(lambda: {*wanted} <= {*file.read_text().splitlines()})
    return file.read_text().splitlines()


def colour_at(stepped: Stepped, x: int, y: int) -> Any:
    """The colour of a pixel of the picture."""
    shot = stepped.result.observation.image
    assert shot is not None
    assert (shot.width_px, shot.height_px) == (800, 600)
    return Image.open(io.BytesIO(shot.data)).convert("RGB").getpixel((x, y))


async def test_a_desktop_is_seen_and_acted_on(desktop: HudServer, tmp_path: Path) -> None:
    """Clicks, a drag, the wheel, keys and text arrive as they were meant, and show."""
    async with bridged(desktop.url, tmp_path / "store.sqlite3") as bridge:
        assert any("'locked'" in note for note in bridge.environment.notes)
        assert "click" in bridge.environment.world.actions
        session = await bridge.start("write", what="Grüße, 5% (tea)")
        await session.measure_screen()
        assert session.screen_size == (800, 600), "before any look"
        seen = await do(session, image=True)
        assert "800 x 600" in (seen.result.observation.text or "")
        assert colour_at(seen, 700, 500) == (0x20, 0x40, 0x60)
        assert colour_at(seen, 580, 180) == (255, 0, 0)
        shown = await do(session, {"type": "click", "x": 550, "y": 150}, image=True)
        await told(desktop, "down 0 550 150", "up 0 550 150")
        assert colour_at(shown, 580, 180) == (0, 255, 0)
        await do(
            session,
            {"type": "click", "x": 120, "y": 120},
            {"type": "type", "text": "Grüße, 5% (tea)"},
        )
        await told(desktop, "text Grüße, 5% (tea)")
        await do(session, {"type": "press", "keys": ["ctrl", "k"]})
        await do(session, {"type": "click", "x": 650, "y": 400, "pattern": [60]})
        await do(session, {"type": "click", "x": 660, "y": 410, "button": "right"})
        await do(session, {"type": "click", "x": 670, "y": 420, "hold_keys": ["shift"]})
        path = [{"x": 500, "y": 300}, {"x": 600, "y": 350}]
        await do(session, {"type": "drag", "path": path})
        await do(session, {"type": "scroll", "x": 600, "y": 300, "scroll_y": 300})
        await told(
            desktop,
            "key k",
            "double",
            "down 2 660 410",
            "down 0 670 420 shift",
            "down 0 500 300",
            "up 0 600 350",
            "wheel 0 1",
        )
        at = await do(session, {"type": "position"})
        assert at.notes == ("The pointer is at (600, 300).",)
        assert (await graded(session, "")).reward == 1.0


async def test_what_a_desktop_does_not_take_is_refused(desktop: HudServer, tmp_path: Path) -> None:
    """Refs, selectors, places outside, unknown keys and buttons: each says why."""
    async with bridged(desktop.url, tmp_path / "store.sqlite3") as bridge:
        session = await bridge.start("write")
        for action, said in (
            ({"type": "click", "ref": "e1"}, "no refs"),
            ({"type": "click", "x": 900, "y": 1}, "beyond an edge"),
            ({"type": "press", "keys": ["contrl"]}, "Did you mean 'control'"),
            ({"type": "click", "x": 1, "y": 1, "button": "forward"}, "no button 'forward'"),
        ):
            stepped = await session.step(parse_actions([action]), Look())
            assert said in (stepped.error or "")


async def test_a_wrong_password_and_a_dead_port_are_errors(desktop: HudServer) -> None:
    """Neither hangs, and each is told."""
    control = await Control.open(Address(desktop.url))
    try:
        async with control.forward("screen") as (host, port):
            with (
                anyio.fail_after(PATIENCE_S),
                pytest.raises(EnvironmentFailed, match="cannot be reached"),
            ):
                await Vnc.connect(host, port, password="coffee")
    finally:
        await control.leave()
    with anyio.fail_after(PATIENCE_S), pytest.raises(EnvironmentFailed, match="cannot be reached"):
        await Vnc.connect("127.0.0.1", 9)

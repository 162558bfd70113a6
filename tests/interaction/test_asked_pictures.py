"""A server that shows pictures only where they are asked for, and callers that choose."""

import io
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import (
    BOARD,
    ENVIRONMENTS,
    WAYS,
    Held,
    Peer,
    Reply,
    Way,
    http_peer,
    http_server,
    read_reply,
    stdio_peer,
)
from PIL import Image
from waiting import PATIENCE_S

from hud_mcp.values.refs import find_ref

pytestmark = pytest.mark.anyio

PAGE = str(ENVIRONMENTS / "page.py")
SHOOT = {"type": "screenshot"}


async def looking(peer: Peer, tool: str, look: Any, **arguments: Any) -> Reply:
    """Call a tool with the choice of a look beside the arguments."""
    with anyio.fail_after(PATIENCE_S):
        meta: Any = {"hud-mcp/look": look}
        return read_reply(await peer.client.call_tool(tool, arguments, meta=meta))


async def told(peer: Peer) -> dict[str, str]:
    """The descriptions of the tools, by name, and the server's instructions."""
    tools = (await peer.client.list_tools()).tools
    return {t.name: t.description or "" for t in tools} | {"": peer.client.instructions or ""}


@pytest.mark.long
@pytest.mark.browser
async def test_a_browser_is_used_by_its_text_and_shows_itself_where_asked(tmp_path: Path) -> None:
    """No step pushes a picture, the tools say so, and a place of an asked picture is clicked."""
    async with stdio_peer(tmp_path, (PAGE,), "--look", "text") as peer:
        said = await told(peer)
        assert all("picture" not in said[name] for name in ("step", "act"))
        assert "and picture" not in said[""]
        assert "screenshot shows a picture" in said[""]
        task = await peer.start("order", what="tea")
        looked = await peer.ok("step", session=task.session)
        assert looked.image is None
        assert "screenshot" not in looked.step
        field, send = (find_ref(looked.text, each) for each in ("textbox", 'button "Send"'))
        assert (field, send) != (None, None), looked.text
        acted = await peer.ok("act", session=task.session, type="type", ref=field, text="tea")
        assert acted.image is None

        asked = await peer.ok("step", session=task.session, actions=[SHOOT])
        assert (asked.image is not None, 'button "Send"' in asked.text) == (True, True)
        one = await peer.ok("act", session=task.session, **SHOOT)
        assert one.image is not None
        blind = await looking(peer, "step", "text", session=task.session, actions=[SHOOT])
        assert blind.image is None, "the caller's word stands above the model's"
        shot = await peer.ok("screenshot", session=task.session)
        assert shot.image is not None
        with Image.open(io.BytesIO(shot.image)) as image:
            assert image.size == (1280, 800)
        clicked = await peer.ok(
            "step", session=task.session, actions=[{"type": "click", "ref": send}]
        )
        assert clicked.image is None
        assert "Order number 1: tea." in clicked.text
        graded = await peer.ok("response", session=task.session, answer="1")
        assert graded.structured["reward"] == 1.0
        record = await peer.record(task)
    shown = [step.kind for step in record.steps if step.delivered_image]
    assert shown == ["step", "act", "screenshot"]
    assert all(step.screenshot is not None for step in record.steps), "people see every step"


@pytest.mark.long
async def test_a_caller_chooses_against_the_server_s_option(way: Way, tmp_path: Path) -> None:
    """Text, picture or both come as the call says, in each transport and era."""
    options = ((BOARD,), "--look", "text")
    if way.transport == "stdio":
        async with stdio_peer(tmp_path, *options, era=way.era) as peer:
            await choose(peer, usual=(True, False))
    else:
        with http_server(tmp_path, *options) as server:
            async with http_peer(server, era=way.era) as peer:
                await choose(peer, usual=(True, False))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids=str)
async def test_a_caller_chooses_against_the_usual(way: Way, peers: dict[Way, Peer]) -> None:
    """A server without the option pushes pictures, except where a call refuses them."""
    said = await told(peers[way])
    assert "picture" in said["step"]
    await choose(peers[way], usual=(True, True))


async def choose(peer: Peer, *, usual: tuple[bool, bool]) -> None:
    """Make every choice with both tools; `usual` is a step's text and picture without one."""
    task = await peer.start("collect", wanted=[])

    def parts(reply: Reply) -> tuple[bool, bool]:
        assert not reply.is_error, reply.text
        return "marker=" in reply.text, reply.image is not None

    here = {"session": task.session}
    assert parts(await peer.ok("step", **here)) == usual
    assert parts(await peer.ok("act", **here, type="wait", time=1)) == (True, False)
    for look, wanted in (("both", (True, True)), ("image", (False, True)), ("text", (True, False))):
        assert parts(await looking(peer, "step", look, **here)) == wanted
        assert parts(await looking(peer, "act", look, **here, type="wait", time=1)) == wanted

    steps = (await peer.status(task.session))["steps"]
    for wrong in ("pictures", ["text"], 7, {}):
        refused = await looking(peer, "step", wrong, **here)
        assert refused.is_error
        assert "hud-mcp/look" in refused.text
        assert "text, image, both" in refused.text
    assert (await peer.status(task.session))["steps"] == steps, "nothing was done"
    await repeat(peer, task, steps)
    await peer.ok("cancel_task", session=task.session)


async def repeat(peer: Peer, task: Held, steps: int) -> None:
    """Repeat a call whose reply was lost: the same look gives the same parts, and no new step."""
    again = {"session": task.session, "after_step": steps}
    first = await looking(peer, "step", "image", **again)
    second = await looking(peer, "step", "image", **again)
    assert first.image is not None
    assert (second.image, second.step["steps"]) == (first.image, steps + 1)

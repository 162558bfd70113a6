"""The same conversations with a real browser behind the tools."""

# what is waited for happens in another process

import io
from pathlib import Path

import anyio
import psutil
import pytest
from peers import (
    ENVIRONMENTS,
    MODERN,
    Held,
    Peer,
    Way,
    held,
    http_peer,
    http_server,
    raw_stdio,
    stdio_peer,
)
from PIL import Image
from waiting import until

from hud_mcp.values.refs import find_ref

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

PAGE = str(ENVIRONMENTS / "page.py")


async def send_order(peer: Peer, task: Held, what: str) -> str:
    """Fill in the form by the refs of the text, and return what the page says then."""
    seen = await peer.ok("step", session=task.session)
    field, button = ref(seen.text, "textbox"), ref(seen.text, 'button "Send"')
    actions = [
        {"type": "type", "ref": field, "text": what},
        {"type": "click", "ref": button},
    ]
    return (await peer.ok("step", session=task.session, actions=actions)).text


def ref(text: str, wanted: str) -> str:
    """The ref of a line of the text."""
    found = find_ref(text, wanted)
    assert found is not None, text
    return found


@pytest.mark.sampled(1)
async def test_a_page_is_read_filled_in_and_graded_in_every_way(way: Way, tmp_path: Path) -> None:
    """Refs, pixels and pictures agree, and the grade reads the site's own state."""
    if way.transport == "stdio":
        async with stdio_peer(tmp_path, (PAGE,), era=way.era) as peer:
            await converse(peer)
    else:
        with http_server(tmp_path, (PAGE,)) as server:
            async with http_peer(server, era=way.era) as peer:
                await converse(peer)


async def converse(peer: Peer) -> None:
    """Two sessions side by side, one by ref and one by pixel."""
    started = await peer.ok("start_task", template="order", arguments={"what": "tea"})
    assert started.structured["screen"] == {"width": 1280, "height": 800}
    assert "The screen is 1280 x 800 pixels." in started.text
    first = held(started)
    second = await peer.start("order", what="rice")
    said = await send_order(peer, first, "tea")
    assert "Order number 1: tea." in said

    looked = await peer.ok("step", session=second.session)
    assert "Nothing ordered yet." in looked.text, "another session's site is another site"
    assert looked.image is not None
    with Image.open(io.BytesIO(looked.image)) as image:
        assert image.size == (1280, 800)
    await peer.ok("act", session=second.session, type="click", selector="#what")
    await peer.ok("act", session=second.session, type="type", text="rice")
    shot = await peer.ok("screenshot", session=second.session)
    assert shot.image != looked.image
    await peer.ok("act", session=second.session, type="click", selector="text=Send")
    refused = await peer.error("act", session=second.session, type="click", ref="e999")
    assert "e999" in refused
    for task, answer, reward in ((first, "1", 1.0), (second, "two", 0.5)):
        graded = await peer.ok("response", session=task.session, answer=answer)
        assert graded.structured["reward"] == reward
        record = await peer.record(task)
        assert record.reward == reward
        assert all(s.screenshot is not None for s in record.steps if not s.error)


@pytest.mark.long
async def test_sessions_go_on_whose_browser_was_killed(tmp_path: Path) -> None:
    """Each is told so once, on a browser of the server's next; all are graded right."""
    with http_server(tmp_path, (PAGE,)) as server:
        async with http_peer(server, era=MODERN) as peer:
            orders = ("tea", "rice", "milk")
            held = [await peer.start("order", what=what) for what in orders]
            assert "Order number 1: tea." in await send_order(peer, held[0], "tea")
            await peer.ok("step", session=held[1].session)
            said: list[str] = []

            async def wait() -> None:
                waiting = [{"type": "wait", "time": 20_000}]
                said.append(await peer.error("step", session=held[0].session, actions=waiting))

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await until(lambda: kill_browser(server.process.pid))
            said.append(await peer.error("act", session=held[1].session, type="wait", time=1))
            for text in said:
                assert "The world of this session died: The browser ended unexpectedly." in text
                assert "It has been restored to how it was after the last reply." in text
            assert "Nothing of this call was done" in said[1]
            assert "Order number 1: tea." in (await peer.ok("step", session=held[0].session)).text
            assert "Order number 1: rice." in await send_order(peer, held[1], "rice")
            # The third one has seen nothing of it, and answers at once.
            for task, reward in zip(held, (1.0, 1.0, 0.0), strict=True):
                graded = await peer.ok("response", session=task.session, answer="1")
                assert graded.structured["reward"] == reward
                record = await peer.record(task)
                assert (record.outcome, record.reward) == ("graded", reward)
                assert "its world died: The browser ended unexpectedly." in (record.logs or "")
        log = server.logged()
    assert "Traceback" not in log


def kill_browser(server: int) -> bool:
    """Kill every Chromium below a process; say whether there was one."""
    browsers = [
        p for p in psutil.Process(server).children(recursive=True)
        if "chrom" in p.name().lower() or "headless" in p.name().lower()
    ]  # fmt: skip
    for process in browsers:
        process.kill()
    return bool(browsers)


@pytest.mark.long
@pytest.mark.parametrize("how", ["eof", "kill"])
async def test_no_browser_outlives_its_server(tmp_path: Path, how: str) -> None:
    """Neither a client that leaves nor a killed server leaves a Chromium behind."""
    async with raw_stdio(tmp_path, (PAGE,)) as raw:
        await raw.hello()
        begun = await raw.call("start_task", template="order")
        await raw.call("step", session=begun["structuredContent"]["session"])
        children = psutil.Process(raw.process.pid).children(recursive=True)
        assert any("chrom" in p.name().lower() or "headless" in p.name().lower() for p in children)
        if how == "eof":
            await raw.close_stdin()
            assert await raw.exit_status() == 0
        else:
            raw.process.kill()
        await until(lambda: not any(p.is_running() and p.status() != "zombie" for p in children))

"""The page on worlds: an author's lamp, which shows everywhere without an edit of the library."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from phoenix import phoenix

from hud_mcp.channel.client import ChannelClient
from hud_mcp.environment import Environment
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.wire.server import Channel
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.transcript import transcript_text
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.world import WorldSpec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "worlds.md"
PATIENCE_S = 120.0

pytestmark = pytest.mark.anyio


@pytest.fixture
def lamps(tmp_path: Path) -> Path:
    """The page's files, saved as a reader saves them; the environment's is returned."""
    blocks = re.findall(
        r"^```python\n# ([\w.]+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    folder = tmp_path / "reader"
    folder.mkdir()
    for name, text in blocks:
        (folder / name).write_text(text)
    assert {name for name, _ in blocks} == {"lamp.py", "test_lamp.py", "env.py", "lamp_endpoint.py"}
    return folder / "env.py"


@pytest.mark.long
async def test_the_test_of_the_page_passes_and_finds_a_broken_lamp(lamps: Path) -> None:
    """The reader's own pytest, in the reader's folder."""

    def run() -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHON"))}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "test_lamp.py"], cwd=lamps.parent, env=kept,
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    done = await anyio.to_thread.run_sync(run)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    lamp = lamps.with_name("lamp.py")
    lamp.write_text(lamp.read_text().replace("        self.is_closed = True", "        pass"))
    done = await anyio.to_thread.run_sync(run)
    assert "test_a_closed_world_refuses_clearly" in done.stdout


@pytest.mark.long
async def test_a_lamp_is_served_recorded_shown_and_resumed(lamps: Path, tmp_path: Path) -> None:
    """Over MCP, across the death of its server; then in a trace and in the viewer."""
    press: dict[str, Any] = {"type": "custom", "action": "press", "args": {}}
    with anyio.fail_after(PATIENCE_S):
        async with phoenix(tmp_path, [str(lamps)]) as server:
            begun = await server.call("start_task", template="light", arguments={})
            session = begun["structuredContent"]["session"]
            refused = await server.call("act", session=session, type="click", selector="#x")
            assert refused["isError"]
            lit = await server.call("act", session=session, **press)
            assert "The lamp is on, at 100 %." in json.dumps(lit)
            await server.kill_and_start()
            again = await server.call("step", session=session, actions=[press, press])
            assert "The lamp is on, at 100 %." in json.dumps(again)
            answered = await server.call("response", session=session, answer="done")
            assert not answered.get("isError"), answered
    store = Store(tmp_path / "store.sqlite3")
    try:
        (row,) = await store.list_trajectories()
        record = await store.load_trajectory(row.id)
        assert record.reward == 1.0
        assert "press" in transcript_text(record)
        web = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=viewer_app(store, host="127.0.0.1")),
            base_url="http://127.0.0.1",
        )
        async with web:
            shown = await web.get("/api/steps", params={"id": row.id, "start": 0, "stop": 9})
        assert "The lamp is on, at 100 %." in shown.text
        assert "press" in shown.text
    finally:
        await store.close()


async def test_a_channel_publishes_the_lamp(lamps: Path, tmp_path: Path) -> None:
    """By the world's own endpoint: each session's secret presses its own lamp, on the record."""
    (environment,) = load_environments([str(lamps)])
    store = Store(tmp_path / "store.sqlite3")
    channel = Channel(
        environment, sessions=Sessions([environment], store=store), closes_sessions=True
    )
    with anyio.fail_after(PATIENCE_S):
        try:
            port = (await channel.listen()).sockets[0].getsockname()[1]
            address = f"tcp://127.0.0.1:{port}"
            async with ChannelClient.connect(address) as one, ChannelClient.connect(address) as two:
                secret = binding(one)["params"]["secret"]
                assert secret != binding(two)["params"]["secret"]
                assert "start one with tasks.start" in await press(one, secret)
                await one.start("light", {})
                await two.start("light", {})
                assert await press(one, "guessed") == "No such lamp."
                assert await press(one, secret) == "pressed"
                assert [(await each.grade(""))["score"] for each in (one, two)] == [1.0, 0.0]
            kinds = {
                tuple(step.kind for step in (await store.load_trajectory(row.id)).steps)
                for row in await store.list_trajectories()
            }
            assert kinds == {("direct", "response"), ("response",)}
        finally:
            with anyio.CancelScope(shield=True):
                await channel.close()


def binding(client: ChannelClient) -> dict[str, Any]:
    """What a session is told of its lamp."""
    (found,) = [each for each in client.bindings if each["protocol"] == "lamp/1"]
    return found


async def press(client: ChannelClient, secret: str) -> str:
    """Press through the channel's port, and return what the endpoint says."""
    async with client.forward("lamp") as (host, port):
        stream = await anyio.connect_tcp(host, port)
        async with stream:
            await stream.send(f"{secret}\n".encode())
            said = b""
            while not said.endswith(b"\n"):
                said += await stream.receive()
    return said.decode().strip()


def test_what_is_no_spec_is_refused_with_what_to_derive_from() -> None:
    """A class with the right methods has not said what it is."""

    class Lookalike:
        name = "lookalike"
        actions = frozenset({"wait"})

    with pytest.raises(InvalidEnvironment, match="derives from WorldSpec"):
        Environment("lookalikes", world=Lookalike())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("no_such_module:publish", "'no_such_module:publish' cannot be loaded"),
        ("shh/2", "No plugin publishes 'shh/2'.*ssh/2"),
    ],
)
async def test_an_endpoint_that_cannot_be_loaded_is_named(
    tmp_path: Path, declared: str, said: str
) -> None:
    """Before the channel listens, with how it is written, or with a protocol that exists."""

    class Nowhere(WorldSpec):
        name = "nowhere"
        endpoints = (declared,)

        async def open(self, opening: Any) -> Any:
            """Never called."""

    environment = Environment("nowheres", world=Nowhere())
    sessions = Sessions([environment], store=Store(tmp_path / "s.sqlite3"))
    with pytest.raises(InvalidEnvironment, match=said):
        Channel(environment, sessions=sessions)
    await sessions.close()

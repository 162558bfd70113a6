"""`hud_mcp.environment.server`: serving where HUD's documents import it from."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

import hud_mcp.channel
from hud_mcp import Capability, Environment
from hud_mcp.channel.client import ChannelClient
from hud_mcp.environment.server import bind, serve
from hud_mcp.plugins.hud.wire.streams import ChannelFailed

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
import asyncio
{imports}

env = Environment("count", version="2.0")

@env.template(description="Count a letter", returns=int)
async def count_letter(word: str = "strawberry", letter: str = "r"):
    answer = yield f"How many '{{letter}}'s in '{{word}}'?"
    yield 1.0 if str(word.count(letter)) in str(answer.content) else 0.0

@env.shutdown
async def down():
    open("down", "w").close()
{last}
"""


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))


def small() -> Environment:
    """An environment whose hooks are told apart."""
    env = Environment("small")
    env.ran = []  # pyright: ignore[reportAttributeAccessIssue]

    @env.initialize
    async def up() -> None:
        env.ran.append("up")  # pyright: ignore[reportAttributeAccessIssue]
        env.add_capability(Capability.cdp(url="http://127.0.0.1:9222"))

    @env.shutdown
    async def down() -> None:
        env.ran.append("down")  # pyright: ignore[reportAttributeAccessIssue]

    @env.template()
    async def ask():  # noqa: ANN202
        answer = yield "Say yes."
        yield float(answer == "yes")

    return env


def test_the_signatures_are_those_of_the_document() -> None:
    """`serve(env, host, port)` and `bind(env, host, port)`, on loopback and any free port."""
    for function in (serve, bind):
        host, port = list(inspect.signature(function).parameters.values())[1:3]
        assert (host.name, host.default, port.name, port.default) == (
            "host",
            "127.0.0.1",
            "port",
            0,
        )


async def test_a_bound_server_is_used_as_one_of_asyncio_s() -> None:
    """It has its socket, can be waited on, and everything has ended when it is closed."""
    env = small()
    await env.start()
    async with await bind(env) as server:
        assert env.ran == ["up"]  # pyright: ignore[reportAttributeAccessIssue]
        assert server.is_serving()
        assert server.get_loop() is asyncio.get_running_loop()
        port = server.sockets[0].getsockname()[1]
        await server.start_serving()
        waiting = asyncio.ensure_future(server.serve_forever())
        async with ChannelClient.connect(f"tcp://127.0.0.1:{port}") as client:
            assert [b["name"] for b in client.bindings] == ["browser"]
            await client.start("ask")
            assert (await client.grade("yes"))["score"] == 1.0
        server.close()
        with anyio.fail_after(PATIENCE_S):
            await waiting
    assert not server.is_serving()
    assert server.sockets == ()
    assert env.ran == ["up", "down"]  # pyright: ignore[reportAttributeAccessIssue]
    server.close()
    await server.wait_closed()
    with pytest.raises(ChannelFailed, match="Nothing answers"):
        async with ChannelClient.connect(f"tcp://127.0.0.1:{port}"):
            pass


async def test_waiting_on_a_bound_server_ends_it_when_it_is_cancelled() -> None:
    """As asyncio's does; its sessions are parked, and its hooks have run."""
    env = small()
    server = await bind(env)
    with anyio.move_on_after(0.2):
        await server.serve_forever()
    assert not server.is_serving()
    assert env.ran == ["up", "down"]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_channel_s_own_names_are_the_same_server() -> None:
    """`hud_mcp.channel` has `serve` and `bind` too."""
    assert hud_mcp.channel.bind is not None
    assert list(inspect.signature(hud_mcp.channel.serve).parameters)[:3] == ["env", "host", "port"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["module", "program"])
async def test_a_process_serves_and_announces_its_port(way: str, tmp_path: Path) -> None:
    """As a container's command, or by `asyncio.run(serve(env))` of the author's own."""
    imports = "from hud_mcp import Environment\nfrom hud_mcp.environment.server import serve"
    last = "if __name__ == '__main__':\n    raise SystemExit(asyncio.run(serve(env)))"
    source = tmp_path / "my env.py"
    source.write_text(SOURCE.format(imports=imports, last=last))
    command = ["-m", "hud_mcp.environment.server", str(source), "--env", "count", "--port", "0"]
    popen = subprocess.Popen(  # noqa: ASYNC220  # a line of its output is what is waited for
        [sys.executable, *(command if way == "module" else [str(source)])],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert popen.stdout is not None
        line = await anyio.to_thread.run_sync(popen.stdout.readline)
        port = int(line.removeprefix(b"HUD_SERVE_PORT="))
        async with ChannelClient.connect(f"tcp://127.0.0.1:{port}") as client:
            assert client.environment == {"name": "count", "version": "2.0"}
            await client.start("count_letter", {"word": "berry"})
            assert (await client.grade("2"))["score"] == 1.0
        popen.send_signal(signal.SIGTERM)
        with anyio.fail_after(PATIENCE_S):
            assert await anyio.to_thread.run_sync(popen.wait) == 143
        assert (tmp_path / "down").exists()
    finally:
        popen.kill()
        popen.wait()
        if popen.stdout is not None:
            popen.stdout.close()

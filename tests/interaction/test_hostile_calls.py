"""Calls of the wrong size, and tools that would end their server."""

from pathlib import Path

import psutil
import pytest
from peers import (
    BOARD,
    LEGACY,
    MODERN,
    HttpServer,
    http_peer,
    http_server,
    raw_http,
    raw_stdio,
)

pytestmark = pytest.mark.anyio


@pytest.mark.long
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_what_fifty_megabytes_of_argument_meet_on_stdio(tmp_path: Path, era: str) -> None:
    """The frame is refused with its id, the memory stays bounded, and the session lives on."""
    modern = era == MODERN
    async with raw_stdio(tmp_path, (BOARD,)) as raw:
        if not modern:
            await raw.hello()
        begun = await raw.call("start_task", modern=modern, template="collect")
        session = begun["structuredContent"]["session"]
        server = psutil.Process(raw.process.pid)
        before = server.memory_info().rss
        for size in (50_000_000, 5_000_000):
            text = "x" * size
            asked = await raw.post(
                "act", {"session": session, "type": "type", "text": text}, modern=modern
            )
            answer = await raw.answer(asked)
            if size > 16_000_000:
                assert answer["error"]["code"] == -32600
            else:
                assert answer["result"]["isError"]
                assert "the limit is 1048576" in answer["result"]["content"][0]["text"]
        assert server.memory_info().rss - before < 100_000_000
        looked = await raw.call("step", modern=modern, session=session)
        assert "typed=''" in looked["content"][0]["text"]


@pytest.mark.long
@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_what_fifty_megabytes_of_argument_meet_over_http(
    server: HttpServer, era: str
) -> None:
    """413 before it is parsed; the memory stays bounded, and the session lives on."""
    process = psutil.Process(server.process.pid)
    async with raw_http(server.url, era) as raw:
        begun = await raw.call("start_task", template="collect")
        session = begun["structuredContent"]["session"]
        before = process.memory_info().rss
        arguments = {"session": session, "type": "type", "text": "x" * 50_000_000}
        body, headers = raw.message("tools/call", {"name": "act", "arguments": arguments})
        reply = await raw.web.post(server.url, json=body, headers=headers)
        assert reply.status_code == 413
        assert process.memory_info().rss - before < 100_000_000
        told = await raw.call("act", session=session, type="type", text="x" * 2_000_000)
        assert told["isError"]
        assert "the limit is 1048576" in told["content"][0]["text"]
        looked = await raw.call("step", session=session)
        assert "typed=''" in looked["content"][0]["text"]


LEAVING = """
import sys

from hud_mcp import Environment

env = Environment("leaving", version="0.0.1")


@env.template()
async def stay():
    answer = yield "Stay."
    yield 1.0


@env.tool
async def leave(status: int) -> None:
    \"\"\"Call sys.exit, as a command's main function does.\"\"\"
    sys.exit(status)
"""


@pytest.mark.long
async def test_a_tool_that_calls_sys_exit_fails_alone(tmp_path: Path) -> None:
    """Its caller is told; the server, this session and the others go on, also after a kill."""
    source = tmp_path / "env.py"
    source.write_text(LEAVING)
    with http_server(tmp_path, (str(source),)) as server:
        async with http_peer(server, era=MODERN) as peer:
            beside, task = await peer.start("stay"), await peer.start("stay")
            told = await peer.error("leave", session=task.session, status=2)
            assert told == "leave failed: SystemExit: 2"
            for each in (beside, task):
                assert (await peer.status(each.session))["state"] == "open"
            graded = await peer.ok("response", session=beside.session, answer="yes")
            assert graded.structured["reward"] == 1.0
    with http_server(tmp_path, (str(source),)) as server:
        async with http_peer(server, era=MODERN) as peer:
            assert (await peer.ok("response", session=task.session, answer="yes")).structured[
                "reward"
            ] == 1.0
            recorded = (await peer.record(task)).steps
            assert [(s.kind, s.error) for s in recorded] == [("tool", told), ("response", None)]

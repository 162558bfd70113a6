"""What the stdio transport reads and writes: pipes, sockets, terminals, files."""

import json
import os
import pty
import socket
import subprocess
import sys
import tty
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.server.stdio.descriptors import StdioStreams, ThreadedOutput
from hud_mcp.server.stdio.dispatcher import StdioLimits
from hud_mcp.server.stdio.serve import StopReason, serve_stdio
from server.stdio_probe import Probe
from server.stdio_wire import Served, Wire, call, child, child_env, text

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["socket", "terminal"])
async def test_one_descriptor_for_both_directions_is_served(kind: str) -> None:
    """A socket and a terminal work, and keep their blocking mode for whoever shares them."""
    if kind == "socket":
        server_end, client_end = (side.detach() for side in socket.socketpair())
    else:
        client_end, server_end = pty.openpty()
        tty.setraw(server_end)
    served = Served(Probe(), Wire(client_end, os.dup(client_end)))
    try:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                streams = StdioStreams(server_end, server_end)
                tasks.start_soon(served.run, streams, StdioLimits())
                await served.wire.send(call(1, "big", size=300_000))
                assert len(text(await served.wire.receive())) == 300_000
                served.wire.stop_reading()
                served.wire.hang_up()
                await served.ended.wait()
        assert served.reason is StopReason.EOF
        assert os.get_blocking(server_end)
    finally:
        os.close(server_end)


async def test_regular_files_are_served_to_their_end(tmp_path: Path) -> None:
    """Requests from a file are answered into a file, although neither can be watched."""
    frames = [json.dumps(call(n, "echo", text=str(n))) for n in range(500)]
    (tmp_path / "in").write_text("\n".join(frames))
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        with anyio.fail_after(PATIENCE_S):
            reason = await serve_stdio(
                Probe().server,
                StdioStreams(source.fileno(), target.fileno()),
                StdioLimits(finish_s=5),
            )
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert reason is StopReason.EOF
    assert sorted(answer["id"] for answer in answers) == list(range(500))


async def test_a_thread_writes_where_a_descriptor_cannot_be_watched() -> None:
    """The fallback keeps the order, says when there is room, and ends quietly with its reader."""
    client_in, server_out = os.pipe()
    broken = anyio.Event()
    output = ThreadedOutput(server_out, 100_000, broken.set)
    try:
        with anyio.fail_after(PATIENCE_S):
            for n in range(30):
                output.write(bytes([65 + n]) * 9_999 + b"\n")
            assert output.full
            data = b""
            while len(data) < 300_000:
                data += await anyio.to_thread.run_sync(os.read, client_in, 1 << 20)
            await output.drain()
            assert await output.flush(5)
            assert [line[0] for line in data.splitlines()] == list(range(65, 95))
            os.close(client_in)
            output.write(b"nobody reads this\n")
            await broken.wait()
    finally:
        output.close()
        os.close(server_out)


async def test_nothing_but_the_protocol_reaches_standard_output() -> None:
    """Prints, C libraries and child processes go to standard error and read nothing."""
    async with child("--print-after") as (process, wire):
        await wire.send(call(1, "print"))
        assert text(await wire.receive()) == "read ''"
        wire.hang_up()
        out, err = await anyio.to_thread.run_sync(process.communicate)
        assert out == b"after\n"
        for what in (b"print", b"original stdout", b"write", b"printf", b"child"):
            assert b"stray " + what + b"\n" in err


def test_standard_input_and_output_are_claimed_once() -> None:
    """A second claim is an error, and the first one is given back."""
    program = (
        "from hud_mcp.server.stdio.descriptors import claim_stdio\n"
        "with claim_stdio():\n"
        "    try:\n"
        "        claim_stdio().__enter__()\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
        "with claim_stdio():\n"
        "    print('again')\n"
        "print(input())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=b"back\n",
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, **child_env()},
    )
    assert ran.stdout == b"back\n"
    assert ran.stderr.decode().splitlines() == [
        "standard input and output are claimed already in this process",
        "again",
    ]

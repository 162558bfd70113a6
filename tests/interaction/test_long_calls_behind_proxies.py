"""A proxy that cuts silent connections does not cut a call that takes longer than it waits."""

from pathlib import Path

import anyio
import pytest
from flock import free_ports, running_nginx
from peers import BOARD, LEGACY, MODERN, Gate, HttpServer, http_peer, http_server
from waiting import PATIENCE_S, let_pass

pytestmark = [pytest.mark.anyio, pytest.mark.long]

SILENT_S = 20
"""The proxy cuts after so many silent seconds; most cut after 60."""


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_call_that_takes_long_is_answered_through_a_proxy_that_cuts(
    era: str, tmp_path: Path
) -> None:
    """The stream of its answer has a sign of life every 15 s."""
    (port,) = free_ports(1)
    gate = Gate(tmp_path, "held")
    with http_server(tmp_path / "server", [BOARD]) as server:
        text = (
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {server.url[:-4]}; "
            "proxy_http_version 1.1; proxy_buffering off; proxy_set_header Host $http_host; "
            f"proxy_read_timeout {SILENT_S}s; }} }}"
        )
        with running_nginx(tmp_path, text, port):
            behind = HttpServer(
                server.process, f"http://127.0.0.1:{port}/mcp", server.store, server.log
            )
            async with http_peer(behind, era=era) as peer, anyio.create_task_group() as group:
                task = await peer.start("collect")
                done = anyio.Event()

                async def step() -> None:
                    with anyio.fail_after(PATIENCE_S):
                        await peer.ok("step", session=task.session, actions=[gate.hold()])
                    done.set()

                group.start_soon(step)
                await gate.arrived()
                await let_pass(SILENT_S + 5)
                assert not done.is_set()
                gate.open()
                with anyio.fail_after(PATIENCE_S):
                    await done.wait()

"""Over HTTP, too, nothing but the address is on a server's standard output."""

import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from peers import MODERN, HttpServer, child_environment, http_peer, serve_arguments
from runs import MORTAL
from waiting import PATIENCE_S

# ruff: noqa: ASYNC220  # it starts at once

pytestmark = pytest.mark.anyio


@pytest.mark.long
async def test_what_templates_and_their_children_print_is_not_on_it(tmp_path: Path) -> None:
    """It goes to stderr, and what Python prints into the session's log as well."""
    store, log = tmp_path / "store.sqlite3", tmp_path / "stderr.log"
    arguments = serve_arguments([MORTAL], store, "--http", "127.0.0.1:0")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            env=child_environment(),
        )  # fmt: skip
    try:
        assert process.stdout is not None
        first = (await anyio.to_thread.run_sync(process.stdout.readline)).decode()
        url = first.removeprefix("HUD_MCP_URL=").strip()
        async with http_peer(HttpServer(process, url, store, log), era=MODERN) as peer:
            task = await peer.start("notes", print_noise=True)
            await peer.ok("response", session=task.session, answer="done")
            record = await peer.record(task)
        process.terminate()
        with anyio.fail_after(PATIENCE_S):
            rest = await anyio.to_thread.run_sync(process.stdout.read)
            await anyio.to_thread.run_sync(process.wait)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert first == f"HUD_MCP_URL={url}\n"
    assert rest == b""
    assert "printed by a template" in (record.logs or "")
    logged = log.read_text()
    assert "printed by a template" in logged
    assert "echoed by its child" in logged

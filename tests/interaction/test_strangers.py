"""Strangers at an HTTP server's port: they stop nobody who has a token."""

import socket
from pathlib import Path

import httpx
import pytest
from peers import BOARD, MODERN, http_peer, http_server

pytestmark = pytest.mark.anyio

TOKEN = "a token that is long enough"
FEW_FILES = ("sh", "-c", 'ulimit -n 512; exec "$@"', "sh")


async def test_silent_connections_do_not_stop_a_server(tmp_path: Path) -> None:
    """1,100 of them, of which no file is left where the system allows 512."""
    options = ("--token", TOKEN)
    with http_server(tmp_path, (BOARD,), *options, within=FEW_FILES) as server:
        address = ("127.0.0.1", httpx.URL(server.url).port or 0)
        strangers: list[socket.socket] = []
        try:
            for _ in range(1_100):
                strangers.append(socket.create_connection(address, timeout=10))  # noqa: PERF401  # those before are closed where one fails
            async with http_peer(server, era=MODERN, token=TOKEN) as peer:
                held = [
                    await peer.start("collect", marker=str(i), wanted=["tea"]) for i in range(5)
                ]
                for task in held:
                    await peer.ok("step", session=task.session, actions=[])
        finally:
            for stranger in strangers:
                stranger.close()


@pytest.mark.parametrize(
    "name", ["127.0.0.1:{port}@evil.example", "localhost:{port}.evil.example", "127.0.0.1:x"]
)
async def test_a_host_that_only_begins_as_this_one_is_refused(tmp_path: Path, name: str) -> None:
    """Also one whose address stands where a user's name does."""
    with http_server(tmp_path, (BOARD,)) as server:
        url = httpx.URL(server.url)
        async with httpx.AsyncClient() as client:
            for header in ("host", "origin"):
                value = name.format(port=url.port)
                given = value if header == "host" else f"http://{value}"
                answer = await client.post(url, headers={header: given}, json={})
                assert answer.status_code == 421, (header, answer.text)

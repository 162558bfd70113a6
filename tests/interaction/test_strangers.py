"""Strangers at an HTTP server's port: they stop nobody who has a token."""

import socket
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from peers import BOARD, MODERN, http_peer, http_server

pytestmark = pytest.mark.anyio

TOKEN = "a token that is long enough"
FEW_FILES = ("sh", "-c", 'ulimit -n 512; exec "$@"', "sh")


@pytest.mark.long
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "request_of_all",
    ["GET /nothing", "GET /assets/live.js", "DELETE /live/x", "GET /mcp/", "POST /live/x"],
)
async def test_what_everybody_gets_an_answer_to_admits_nobody(
    tmp_path: Path, request_of_all: str
) -> None:
    """Strangers that ask for what needs no token stay strangers, and give way to a client."""
    options = ("--token", TOKEN)
    with http_server(tmp_path, (BOARD,), *options, within=FEW_FILES) as server:
        address = ("127.0.0.1", httpx.URL(server.url).port or 0)
        more = "Content-Length: 9\r\n" if request_of_all.startswith("POST") else ""
        ask = f"{request_of_all} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n".encode()
        strangers: list[socket.socket] = []
        try:
            for _ in range(400):
                strangers.append(socket.create_connection(address, timeout=10))
                with suppress(ConnectionError):  # it was closed already
                    strangers[-1].sendall(ask)
                    strangers[-1].recv(1)
            async with http_peer(server, era=MODERN, token=TOKEN) as peer:
                await peer.start("collect", marker="a", wanted=["tea"])
        finally:
            for stranger in strangers:
                stranger.close()


@pytest.mark.long
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

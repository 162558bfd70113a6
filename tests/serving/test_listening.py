"""Addresses as users write them, the ports that servers take, and the URLs that they announce."""

import asyncio
import socket

import pytest
from tables import each_of

from hud_mcp.base.listening import (
    LOOPBACK,
    base_url,
    is_loopback,
    listen,
    port_of,
    read_address,
    shown_host,
    take_port,
)
from hud_mcp.errors import HudMcpError

pytestmark = pytest.mark.anyio


@each_of(
    ("given", "expected"),
    [
        ("8000", ("127.0.0.1", 8000)),
        (":0", ("127.0.0.1", 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),  # only read
        ("box.example:65535", ("box.example", 65_535)),
        ("[::1]:8000", ("::1", 8000)),
        ("[fe80::1%eth0]:1", ("fe80::1%eth0", 1)),
    ],
)
def test_an_address_is_read(given: str, expected: tuple[str, int]) -> None:
    """A port alone means this machine only."""
    assert read_address(given, option="--http") == expected


@each_of("given", ["", "host", "host:", "1:65536", "http://host:1", "a b:1", ":-1"])
def test_what_is_no_address_is_refused_by_its_option(given: str) -> None:
    """The error names the option, what was written, and what to write."""
    with pytest.raises(HudMcpError, match=r"^--channel .*(HOST:PORT, (such )?as (in )?127|65535)"):
        read_address(given, option="--channel")


def test_a_port_that_is_taken_is_named() -> None:
    """The error says where, why, and what to choose instead."""
    with take_port(LOOPBACK, 0) as first:
        first.listen()
        port = port_of(first)
        with pytest.raises(HudMcpError, match=rf"127.0.0.1:{port}: .* in use.*0 takes any free"):
            take_port(LOOPBACK, port)


def test_nobody_connects_to_a_port_before_somebody_listens_on_it() -> None:
    """A port that is taken refuses; one that is listened on lets clients wait."""
    with take_port(LOOPBACK, 0) as taken, pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port_of(taken)))
    with listen(LOOPBACK, 0) as listener:
        socket.create_connection((LOOPBACK, port_of(listener))).close()


async def test_the_port_of_a_server_is_that_of_its_socket() -> None:
    """A server of asyncio's, on a socket of ours."""
    listener = take_port(LOOPBACK, 0)
    port = port_of(listener)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), sock=listener)
    assert port_of(server) == port
    server.close()


@each_of(
    ("host", "is_own"),
    [
        ("localhost", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("box", False),
    ],  # only read
)
def test_an_address_that_this_machine_alone_reaches_is_known(host: str, *, is_own: bool) -> None:
    """A name other than localhost may lead anywhere."""
    assert is_loopback(host) is is_own


def test_a_url_is_one_that_a_browser_can_open() -> None:
    """No wildcard, and brackets around an IPv6 address."""
    assert base_url("0.0.0.0", 80) == "http://127.0.0.1:80"  # only read
    assert base_url("::", 80) == "http://[::1]:80"
    assert shown_host("fe80::1") == "[fe80::1]"

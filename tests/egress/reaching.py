"""What each list reaches, in one table: for the list itself, a sandbox and a browser."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

__all__ = ["NAMES", "REACHED", "Service", "fake_names", "own_address", "serving"]


def own_address() -> str | None:
    """This machine's address in its network; None where it has no network."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # a datagram's socket: nothing is sent
        except OSError:
            return None
        found: str = probe.getsockname()[0]
        return None if found.startswith("127.") else found


OWN = own_address()
HERE = OWN or "127.0.0.1"

NAMES = {
    "home.example": ["127.0.0.1"],
    "six.example": ["::1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "any.example": ["0.0.0.0"],
    "own.example": [HERE],
    "both.example": ["127.0.0.1", "::1", HERE],
}
"""What a name server says."""

LOOPBACKS = (
    "127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.0.0.1.",
    "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "0.0.0.0", "0", "[::]",
    "localhost", "LOCALHOST", "localhost.", "app.localhost",
)  # fmt: skip
"""Spellings of this machine that need no name server."""


@dataclass(frozen=True)
class Reach:
    """What one list opens.

    Attributes:
        allow: The list; `:PORT` stands for the service's port.
        reached: Hosts that it leads to.
        refused: Hosts that it does not.
        needs_network: Whether the machine must have an address beside its loopback.
    """

    allow: tuple[str, ...]
    reached: Sequence[str] = ()
    refused: Sequence[str] = ()
    needs_network: bool = field(default=False, kw_only=True)

    def __str__(self) -> str:
        return " ".join(self.allow) or "nothing"


_TABLE = [
    Reach((), refused=[*LOOPBACKS, *NAMES, HERE]),
    Reach(("*",), refused=[*LOOPBACKS, *NAMES, HERE]),
    Reach(("*.example", "*.localhost"), refused=[*LOOPBACKS, *NAMES]),
    Reach(
        ("home.example", "six.example", "mapped.example", "any.example", "app.example"),
        refused=[*LOOPBACKS, *NAMES],
    ),
    Reach(
        ("own.example", "both.example"),
        reached=["own.example", "OWN.example.", "both.example"],
        refused=["home.example", HERE],
        needs_network=True,
    ),
    Reach(
        ("*", HERE, "*.example"),
        reached=[HERE],
        refused=["own.example", "home.example", "localhost"],
        needs_network=True,
    ),
    Reach(
        ("127.0.0.1:PORT",),
        reached=["127.0.0.1", "127.1", "2130706433"],
        refused=["localhost", "home.example", "[::1]", "[::ffff:127.0.0.1]"],
    ),
    Reach(("127.0.0.1:1", "localhost:443"), refused=LOOPBACKS),
    Reach(("localhost",), reached=["localhost", "LOCALHOST"], refused=["127.0.0.1", "[::1]"]),
    Reach(("app.localhost",), reached=["app.localhost"], refused=["localhost", "own.example"]),
    Reach(("2130706433",), reached=["127.0.0.1", "0x7f.0.0.1"], refused=["localhost"]),
]

REACHED = [each for each in _TABLE if OWN or not each.needs_network]


class Service:
    """A web server of this machine, which notes what it is asked for.

    Args:
        host: Where it listens; on every address of the machine by default.
        port: On which port; any by default.
    """

    def __init__(self, host: str = "0.0.0.0", port: int = 0) -> None:
        self.asked: list[str] = []
        service = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked.append(f"{self.headers['host']}{self.path}")
                if self.path.startswith("/to/"):
                    self.send_response(302)
                    self.send_header("location", f"http://{self.path.removeprefix('/to/')}")
                else:
                    self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", "4")
                self.end_headers()
                self.wfile.write(b"Here")

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer((host, port), Answer)
        self.port: int = self.server.server_address[1]

    @property
    def paths(self) -> set[str]:
        """The paths that were asked for."""
        return {f"/{each.partition('/')[2]}" for each in self.asked}


@contextmanager
def serving(host: str = "0.0.0.0", port: int = 0) -> Iterator[Service]:
    """Serve until the block ends."""
    service = Service(host, port)
    thread = Thread(target=service.server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        thread.join()
        service.server.server_close()


def fake_names(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[Any]]) -> list[str]:
    """Answer for a name server, and return what it will have been asked.

    Args:
        monkeypatch: Undoes it.
        names: Addresses by name; where they are lists themselves, the answers in their order, of
            which the last stays.
    """
    real, asked = socket.getaddrinfo, list[str]()

    def look_up(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host in names:
            asked.append(host)
            answers = names[host]
            if isinstance(answers[0], list):
                answers = answers.pop(0) if len(answers) > 1 else answers[0]
            return [_row(address, port) for address in answers]
        if str(host).endswith(".example"):
            asked.append(host)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def _row(address: str, port: int) -> tuple[Any, ...]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, 6, "", (address, port))

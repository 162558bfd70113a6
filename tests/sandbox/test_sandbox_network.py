"""A sandbox reaches the hosts that are allowed, through one proxy, and no other."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.sandbox import Sandbox

OpenSandbox = Callable[..., Awaitable[Sandbox]]

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]


class Echo(BaseHTTPRequestHandler):
    """Says what was asked."""

    def do_POST(self) -> None:
        """Answer with the path and the body."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.answer(self.path.encode() + b" " + body)

    def do_GET(self) -> None:
        """Answer with the path and every header."""
        self.answer(f"{self.path}\n{self.headers}".encode())

    def answer(self, body: bytes) -> None:
        """Send a body."""
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """A web server on the machine's loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


async def test_an_allowed_host_is_reached(open_sandbox: OpenSandbox, port: int) -> None:
    """By a plain request and through a tunnel, with the tools that know the usual variables."""
    sandbox = await open_sandbox(allow=[f"127.0.0.1:{port}"])
    curl = "curl -sS --noproxy '' -m 10"
    with anyio.fail_after(PATIENCE_S):
        plain = await sandbox.run(f"{curl} http://127.0.0.1:{port}/a?b=c")
        posted = await sandbox.run(f"{curl} -d hello http://127.0.0.1:{port}/p")
        tunnel = await sandbox.run(f"{curl} -p http://127.0.0.1:{port}/t")
    assert plain.text.startswith("/a?b=c\n"), plain
    assert "roxy" not in plain.text
    assert posted.text == "/p hello"
    assert tunnel.text.startswith("/t\n"), tunnel


async def test_another_host_is_refused_by_name(open_sandbox: OpenSandbox, port: int) -> None:
    """The refusal says what the list is; going round the proxy leads nowhere."""
    sandbox = await open_sandbox(allow=["example.com"])
    curl = "curl -sS --noproxy '' -m 10"
    with anyio.fail_after(PATIENCE_S):
        refused = await sandbox.run(f"{curl} http://127.0.0.1:{port}/")
        tunnel = await sandbox.run(f"{curl} -p http://127.0.0.1:{port}/")
        round_it = await sandbox.run(f"curl -sS -m 10 --noproxy '*' http://127.0.0.1:{port}/")
        nonsense = await sandbox.run(
            "printf 'GET / HTTP/1.1\\r\\n\\r\\n' > /dev/tcp/127.0.0.1/3128"
        )
    text = f"127.0.0.1:{port} may not be reached from here. The allow-list is example.com."
    assert refused.text == text + "\n"
    assert "403" in tunnel.text
    assert "Failed to connect" in round_it.text or "Couldn't connect" in round_it.text
    assert nonsense.code == 0


async def test_the_web_is_not_this_machine(open_sandbox: OpenSandbox, port: int) -> None:
    """`*` does not lead to the loopback by any name of it."""
    sandbox = await open_sandbox(allow=["*"])
    for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1"):
        with anyio.fail_after(PATIENCE_S):
            refused = await sandbox.run(
                f"curl -sS --noproxy '' -m 10 -o /dev/null -w '%{{http_code}}' http://{host}:{port}/"
            )
        assert refused.text.endswith(("403", "502")), (host, refused)

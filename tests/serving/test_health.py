"""The health of a container: a server over HTTP must answer."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

from interaction.peers import http_server
from tables import each_of

from hud_mcp.plugins.operate.health import answers, port_of


@each_of(
    ("arguments", "port"),
    [
        (["tini", "--", "hud-mcp", "serve"], None),
        (["hud-mcp", "serve", "--http", "0.0.0.0:8000", "browser"], 8000),
        (["hud-mcp", "serve", "--http=[::]:80"], 80),
    ],
)
def test_a_server_s_command_line_has_its_port(arguments: list[str], port: int | None) -> None:
    """A server on stdio has none."""
    assert port_of(arguments) == port


def test_a_server_that_refuses_a_caller_is_well(tmp_path: Path) -> None:
    """It answers without a token too; where nobody listens, nobody answers."""
    with http_server(tmp_path, ["letter_count"], "--token", "a-long-secret") as server:
        port = urlsplit(server.url).port
        assert port is not None
        assert answers(port)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert not answers(free.getsockname()[1])

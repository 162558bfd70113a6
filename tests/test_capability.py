"""A capability says concretely where a service is."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from tables import each_of

from hud_mcp import capabilities
from hud_mcp.errors import InvalidEnvironment
from hud_mcp.values.capability import Capability


@each_of(
    "url",
    [
        "ssh://root@127.0.0.1:22",
        "http://localhost:9222",
        "ws://[::1]:9222/devtools",
        "rfb://host:5900",
        "mcp://h",
    ],
)
def test_a_url_with_a_scheme_and_a_host_is_taken(url: str) -> None:
    """Any scheme is, for a capability names its protocol."""
    assert Capability(name="shell", protocol="ssh/2", url=url).url == url


@each_of("url", ["", "localhost:22", "/run/socket", "http://", "file:///tmp/x"])
def test_a_url_that_nobody_can_connect_to_is_refused(url: str) -> None:
    """The error shows what was given."""
    with pytest.raises(ValidationError, match="a scheme and a host; got"):
        Capability(name="shell", protocol="ssh/2", url=url)


@pytest.mark.parametrize("field", ["name", "protocol"])
def test_a_capability_has_a_name_and_a_protocol(field: str) -> None:
    """Neither may be empty."""
    fields = {"name": "shell", "protocol": "ssh/2", "url": "ssh://h"} | {field: ""}
    with pytest.raises(ValidationError, match=field):
        Capability.model_validate(fields)


KEY = "ssh-ed25519 AAAA"


@each_of(
    ("make", "expected"),
    [
        (
            lambda: Capability.ssh(url="127.0.0.1", host_pubkey=KEY),
            ("shell", "ssh/2", "ssh://127.0.0.1:22",
             {"user": "agent", "host_pubkey": KEY, "shell": "bash"}),
        ),
        (
            lambda: Capability.ssh(
                name="box", url="ssh://[::1]:2222", user="u", host_pubkey=KEY, client_key="k",
                client_key_path="/k", cwd="/workspace", isolation="bwrap",
            ),
            ("box", "ssh/2", "ssh://[::1]:2222",
             {"user": "u", "host_pubkey": KEY, "shell": "bash", "client_key": "k",
              "client_key_path": "/k", "cwd": "/workspace", "isolation": "bwrap"}),
        ),
        (
            lambda: Capability.mcp(url="https://host/mcp", auth_token="t"),
            ("tools", "mcp/2025-11-25", "https://host:443/mcp",
             {"transport": "streamable-http", "auth_token": "t"}),
        ),
        (
            lambda: Capability.mcp(url="host:8000"),
            ("tools", "mcp/2025-11-25", "ws://host:8000", {"transport": "websocket"}),
        ),
        (
            lambda: Capability.mcp(url="http://host:8000/sse?a=b", transport="sse"),
            ("tools", "mcp/2025-11-25", "http://host:8000/sse?a=b", {"transport": "sse"}),
        ),
        (
            lambda: Capability.cdp(url="127.0.0.1", target_id="T"),
            ("browser", "cdp/1.3", "ws://127.0.0.1:9222", {"target_id": "T"}),
        ),
        (
            lambda: Capability.cdp(url="http://user:pw@h/x"),
            ("browser", "cdp/1.3", "http://user:pw@h:9222/x", {}),
        ),
        (
            lambda: Capability.rfb(url="rfb://host", display=3, password="p"),
            ("screen", "rfb/3.8", "rfb://host:5903", {"display": 3, "password": "p"}),
        ),
        (
            lambda: Capability.robot(url="host", contract={"robot_type": "arm"}),
            ("robot", "openpi/0", "ws://host:9091", {"contract": {"robot_type": "arm"}}),
        ),
    ],
)  # fmt: skip
def test_a_factory_gives_what_the_wire_has(
    make: Callable[[], Capability], expected: tuple[str, str, str, dict[str, Any]]
) -> None:
    """The protocol's name, a whole URL with its port, and the parameters that were given."""
    made = make()
    assert (made.name, made.protocol, made.url, made.params) == expected


@each_of(
    ("make", "said"),
    [
        (lambda: Capability.ssh(url="", host_pubkey=KEY), "'' is not an address; expected a host"),
        (lambda: Capability.ssh(url="ssh://", host_pubkey=KEY), "is not an address"),
        (lambda: Capability.ssh(url="h:99999", host_pubkey=KEY), "a port from 1 to 65535"),
        (lambda: Capability.ssh(url="h:0", host_pubkey=KEY), "a port from 1 to 65535"),
        (lambda: Capability.ssh(url="h:x", host_pubkey=KEY), "is not an address"),
        (lambda: Capability.ssh(url="a b", host_pubkey=KEY), "is not an address"),
        (lambda: Capability.ssh(url="http://h", host_pubkey=KEY), "not an address of ssh/2"),
        (lambda: Capability.ssh(url="h", host_pubkey=" "), "host_pubkey is empty"),
        (lambda: Capability.ssh(url="h", host_pubkey=KEY, name=""), "has no name"),
        (lambda: Capability.mcp(url="stdio://h"), "expected ws://, wss://, http://, https://"),
        (lambda: Capability.mcp(url="http://h", transport="websocket"), "expected ws://, wss://"),
        (lambda: Capability.mcp(url="ws://h", transport="sse"), "expected http://, https://"),
        (lambda: Capability.cdp(url="file:///x"), "is not an address"),
        (lambda: Capability.rfb(url="vnc://h"), "not an address of rfb/3.8"),
        (lambda: Capability.rfb(url="h", display=-1), "display=-1; expected 0 to"),
        (lambda: Capability.robot(url="http://h", contract={}), "not an address of openpi/0"),
    ],
)
def test_an_address_of_another_kind_is_refused(make: Callable[[], Capability], said: str) -> None:
    """The error names the capability, what was given and what is expected."""
    with pytest.raises(InvalidEnvironment) as refused:
        make()
    assert said in str(refused.value)


def test_keys_are_not_in_the_representation() -> None:
    """Logs carry representations; the wire carries the keys."""
    made = Capability.ssh(url="h", host_pubkey=KEY, client_key="PRIVATE")
    assert "PRIVATE" not in repr(made) + str(made)
    assert "PRIVATE" in made.model_dump_json()


def test_a_capability_goes_through_its_manifest() -> None:
    """What the wire has is what HUD's has, and it reads back."""
    made = Capability.mcp(name="tools", url="http://127.0.0.1:8040/mcp", auth_token="x")
    manifest = made.to_manifest()
    assert manifest == {
        "name": "tools",
        "protocol": "mcp/2025-11-25",
        "url": "http://127.0.0.1:8040/mcp",
        "params": {"transport": "streamable-http", "auth_token": "x"},
    }
    assert Capability.from_manifest(manifest) == made
    manifest["params"]["auth_token"] = "y"
    assert made.params["auth_token"] == "x"


@pytest.mark.parametrize(
    ("url", "transport"), [("ws://h:1/x", "websocket"), ("https://h:1/x", "streamable-http")]
)
def test_the_transport_of_an_mcp_server_is_found_by_its_url(url: str, transport: str) -> None:
    """Where a manifest does not say it."""
    given = {"name": "t", "protocol": "mcp/2025-11-25", "url": url, "params": None}
    assert Capability.from_manifest(given).params == {"transport": transport}


@pytest.mark.parametrize("given", [{}, {"name": "t", "protocol": "x", "url": "nowhere"}])
def test_what_is_no_manifest_is_refused(given: dict[str, str]) -> None:
    """The text names the field."""
    with pytest.raises(InvalidEnvironment, match=r"This is not a capability: (name|url): "):
        Capability.from_manifest(given)


def test_a_module_of_hud_s_name_has_it_and_names_what_stands_for_the_clients() -> None:
    """Each of HUD's clients is an error at its import that says what to use."""
    assert capabilities.Capability is Capability
    for name, use in (("MCPClient", "`mcp.client.Client`"), ("SSHClient", "asyncssh")):
        with pytest.raises(ImportError, match=f"hud_mcp.capabilities has no {name}. Use {use}"):
            getattr(capabilities, name)
    with pytest.raises(ImportError, match="Use Playwright"):
        exec("from hud_mcp.capabilities import CDPClient")  # as an author's file does
    with pytest.raises(AttributeError, match="has no attribute 'Client'"):
        capabilities.Client  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]

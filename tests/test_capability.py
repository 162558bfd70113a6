"""A capability says concretely where a service is."""

import pytest
from pydantic import ValidationError

from hud_mcp.capability import Capability


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("url", ["", "localhost:22", "/run/socket", "http://", "file:///tmp/x"])
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

"""What the tests of models share."""

import pytest
from gateway_world import SECRET

from hud_mcp.plugins.models.gateway.keys import KEYS


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider has a key."""
    for names in KEYS.values():
        monkeypatch.setenv(names[0], SECRET)

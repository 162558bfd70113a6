"""A task that talks, on OpenEnv's wire."""

from pathlib import Path

import pytest
from peers import ENVIRONMENTS, http_server
from talk import talking

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_a_reset_to_a_conversation_is_refused(tmp_path: Path) -> None:
    """The wire has no place for a user's turns, and says so."""
    source = f"{ENVIRONMENTS / 'talking.py'}:shop"
    with http_server(tmp_path, [source], "--openenv") as server:
        async with talking(server.url) as talk:
            said = await talk.refused("reset", {"template": "return_order"})
            assert "message_user" in said

"""Servers that share a PostgreSQL as their record, as they share a file."""

from pathlib import Path

import anyio
import pytest
from peers import BOARD
from phoenix import Conversation, act, phoenix
from postgresql import Cluster

pytestmark = pytest.mark.anyio

BOUND_S = 90.0


@pytest.mark.long
async def test_a_session_in_a_database_outlives_its_server(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Killed, started again, and asked by two servers at once: one goes on with it."""
    url = cluster.new_schema()
    script = [act("type", text=word, enter_after=True) for word in ("tea", "milk")]
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (BOARD,), store=url) as bird:
            conversation = Conversation(bird, "collect", {"marker": "x"}, script, "done")
            await conversation.start()
            await conversation.perform(script[0])
            await bird.kill_and_start()
            await conversation.perform(script[1])
            async with phoenix(tmp_path, (BOARD,), store=url) as other:
                told = await other.call("step", session=conversation.session, actions=[])
                assert "Another server process runs this session" in told["content"][0]["text"]
                await conversation.respond()
                assert conversation.receipts[0]["reward"] == 1.0
                again = await other.call("response", session=conversation.session, answer="done")
                assert again["structuredContent"]["reward"] == 1.0
            assert len((await conversation.record()).steps) == 3

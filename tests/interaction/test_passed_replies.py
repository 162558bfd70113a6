"""The replies of other servers reach a client block by block, and are steps of the record."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import ENVIRONMENTS, LEGACY, MODERN, Peer, load, stdio_peer
from waiting import PATIENCE_S

from hud_mcp.agents.agent import Reply
from hud_mcp.record.values import TrajectoryStep

pytestmark = pytest.mark.anyio

RELAYED = str(ENVIRONMENTS / "relayed.py")
KINDS = ["text", "image", "image", "audio", "resource_link", "resource", "text"]


async def recorded(peer: Peer, trajectory: str) -> tuple[TrajectoryStep, ...]:
    """The steps of a record."""
    return (await load(peer.store, trajectory)).steps


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_each_block_of_another_servers_reply_reaches_the_client(
    tmp_path: Path, era: str
) -> None:
    """With structured content, errors, progress and the entry of the list, in both eras."""
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del total
        heard.append((progress, message))

    async with stdio_peer(tmp_path, (RELAYED,), era=era) as peer:
        listed = {t.name: t for t in (await peer.client.list_tools()).tools}
        assert listed["relay"].title == "Relay a thing"
        assert listed["relay"].output_schema is not None
        assert listed["relay"].icons
        task = await peer.start("call")
        with anyio.fail_after(PATIENCE_S):
            result = await peer.client.call_tool(
                "relay", {"session": task.session, "secret": "s3cret"}, progress_callback=hear
            )
        assert [block.type for block in result.content] == KINDS
        assert result.structured_content == {"seen": 2}
        first: Any = result.content[0]
        assert first.annotations.audience == ["user"]
        assert result.meta is not None
        assert result.meta["example.com/key"] == 1
        assert "reward" not in result.meta["hud-mcp/step"], "another server sets nothing of ours"
        assert (0.5, "half way") in heard
        refused = await peer.error("relay", session=task.session, how="fail")
        assert refused == "refused: nothing"
        theirs = {"hud_session": task.session, "session": "theirs", "how": "fail"}
        assert await peer.error("relay_session", **theirs) == "refused: theirs"
        done, failed, _ = await recorded(peer, task.trajectory)
    assert done.screenshot is not None
    assert "two pictures" in (done.observation_text or "")
    assert done.actions == [{"tool": "relay", "args": {"secret": "[masked]"}}]
    assert (done.error, failed.error) == (None, "refused: nothing")


@pytest.mark.long
@pytest.mark.parametrize(("says", "outcome"), [("as ever", "open"), ("otherwise", "ended")])
async def test_a_repeated_call_that_answers_otherwise_loses_the_session(
    tmp_path: Path, says: str, outcome: str
) -> None:
    """A replay compares the results of tools that tell whether they are the same."""
    async with stdio_peer(tmp_path, (RELAYED,)) as peer:
        task = await peer.start("call")
        assert not (await peer.client.call_tool("relay", {"session": task.session})).is_error
    async with stdio_peer(tmp_path, (RELAYED,), env={"RELAYED_SAYS": says}) as peer:
        if outcome == "ended":
            said = await peer.error("relay", session=task.session)
            assert "relay answered otherwise than before" in said
        status = await peer.status(task.session)
        assert status["state"] == outcome
        if outcome == "ended":
            assert status["receipt"]["outcome"] == "lost"


def test_an_agents_reply_has_the_structured_content_of_another_server() -> None:
    """An oracle reads it as a program would."""
    wire = {"content": [{"type": "text", "text": "x"}], "structuredContent": {"seen": 2}}
    assert Reply.of_wire(wire).structured == {"seen": 2}

"""A start whose reply was lost can be repeated by a program that chose the session's id."""

import secrets
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import LEGACY, MODERN, Peer, Reply, Way, http_peer, http_server, read_reply, stdio_peer
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

COUNT = {"template": "count", "arguments": {"word": "strawberry", "letter": "r"}}


def an_id() -> str:
    """As a session's own are drawn."""
    return f"sess-{secrets.token_hex(16)}"


async def start(peer: Peer, session: Any, arguments: dict[str, Any] = COUNT) -> Reply:
    """Start a task under an id of our choice."""
    with anyio.fail_after(PATIENCE_S):
        meta = {"hud-mcp/session": session}
        return read_reply(await peer.client.call_tool("start_task", arguments, meta=meta))


@pytest.mark.long
async def test_the_same_start_again_gives_the_same_session(peer: Peer, way: Way) -> None:
    """Over every transport and era; once it has ended, the text says how."""
    del way
    chosen = an_id()
    first = await start(peer, chosen)
    again = await start(peer, chosen)
    assert first.structured["session"] == again.structured["session"] == chosen
    assert first.meta["hud-mcp/start"] == again.meta["hud-mcp/start"]
    assert again.structured["prompt"] == first.structured["prompt"]
    await peer.ok("response", session=chosen, answer="3")
    ended = await start(peer, chosen)
    assert ended.is_error
    assert "was graded" in ended.text


async def test_an_id_is_drawn_at_random_and_belongs_to_one_task(http: Peer) -> None:
    """A short one, one that is none, and one of another task are refused."""
    for bad in ("sess-1", "x" * 40, "sess-" + "g" * 32, 5):
        reply = await start(http, bad)
        assert reply.is_error
        assert "Choose another one" in reply.text
        assert "32 to 64 hex digits" in reply.text
    bad_text = reply.text
    chosen = an_id()
    assert not (await start(http, chosen)).is_error
    other = await start(http, chosen, {"template": "reverse"})
    assert other.is_error
    assert other.text == bad_text, "which of the two is nobody's business"


@pytest.mark.long
async def test_a_chosen_id_gives_nobody_the_session_of_another_principal(tmp_path: Path) -> None:
    """The other one is told no more than that nothing was started."""
    tokens = ("--token", "ann=secret-of-ann", "--token", "bob=secret-of-bob")
    with http_server(tmp_path, ["letter_count"], *tokens) as server:
        chosen = an_id()
        async with http_peer(server, era=MODERN, token="secret-of-ann") as ann:
            assert not (await start(ann, chosen)).is_error
            async with http_peer(server, era=MODERN, token="secret-of-bob") as bob:
                stolen = await start(bob, chosen)
            assert stolen.is_error
            assert stolen.text == (await start(ann, "sess-1")).text
            assert (await ann.status(chosen))["state"] == "open"


@pytest.mark.long
async def test_a_start_goes_on_in_the_next_server(tmp_path: Path) -> None:
    """Its session comes back with the same prompt, and is graded once."""
    chosen = an_id()
    async with stdio_peer(tmp_path, ["letter_count"], era=LEGACY) as peer:
        first = await start(peer, chosen)
    async with stdio_peer(tmp_path, ["letter_count"], era=LEGACY) as peer:
        again = await start(peer, chosen)
        assert again.structured["prompt"] == first.structured["prompt"]
        assert again.meta["hud-mcp/start"] == first.meta["hud-mcp/start"]
        graded = await peer.ok("response", session=chosen, answer="3")
        assert graded.structured["reward"] == 1.0

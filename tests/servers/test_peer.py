"""Our end of a server's messages: both eras of the SDK, and servers that lie."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from running_servers import LYING_SERVER, SDK_SERVER, peer_of
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.servers.eras import Era, negotiate
from hud_mcp.plugins.servers.peer import Peer, PeerEnded, RemoteError

pytestmark = pytest.mark.anyio

ERAS = ("2025-11-25", "2026-07-28")


async def call(peer: Peer, era: Era, tool: str, **options: Any) -> dict[str, Any]:
    """Call a tool, as an instance does."""
    arguments = options.pop("arguments", {})
    params = era.params({"name": tool, "arguments": arguments})
    return await peer.request("tools/call", params, **options)


@pytest.mark.long
@each_of("era", ERAS)
async def test_a_server_on_the_sdk_is_called_in_both_eras(era: Any, tmp_path: Path) -> None:
    """Its results are the raw objects of the wire, and one picture is in its block."""
    tmp_path.joinpath("notes.txt").unlink(missing_ok=True)
    with anyio.fail_after(PATIENCE_S), peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
        terms = await negotiate(peer, era)
        assert (terms.version, terms.server["name"], terms.instructions) == (
            era,
            "notes",
            "Keep notes.",
        )
        listed = await peer.request("tools/list", terms.params({}))
        assert {"add", "count", "picture"} <= {tool["name"] for tool in listed["tools"]}
        added = await call(peer, terms, "add", arguments={"text": "tea"})
        assert added["content"][0]["text"] == "1 notes"
        counted = await call(peer, terms, "count")
        assert counted["structuredContent"] == {"count": 1, "nothing": None}
        assert (await call(peer, terms, "picture"))["content"][0]["mimeType"] == "image/png"
        assert (await call(peer, terms, "fail"))["isError"] is True


async def test_the_newer_era_is_chosen_where_a_server_has_both(tmp_path: Path) -> None:
    """A server that only knows the handshake gets that."""
    with anyio.fail_after(PATIENCE_S):
        with peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
            assert (await negotiate(peer)).version == "2026-07-28"
        with peer_of(*LYING_SERVER) as peer:
            assert (await negotiate(peer)).version == "2025-11-25"
            assert peer.died is None


@pytest.mark.long
async def test_a_server_that_starts_slowly_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers the first question after the second was sent, and then refuses that."""
    monkeypatch.setattr("hud_mcp.plugins.servers.eras._DISCOVER_S", 0.01)
    with anyio.fail_after(PATIENCE_S), peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
        assert (await negotiate(peer)).version == "2026-07-28"


async def test_a_wanted_era_that_a_server_lacks_is_an_error() -> None:
    """The text names the era."""
    refused = pytest.raises(EnvironmentFailed, match="2026-07-28")
    with anyio.fail_after(PATIENCE_S), peer_of(*LYING_SERVER) as peer, refused:
        await negotiate(peer, "2026-07-28")


@pytest.mark.long
@each_of("era", ERAS)
async def test_progress_reaches_its_call_in_both_eras(era: Any, tmp_path: Path) -> None:
    """Each report comes before the result."""
    told: list[float] = []

    async def note(params: dict[str, Any]) -> None:
        told.append(params["progress"])

    with anyio.fail_after(PATIENCE_S), peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
        terms = await negotiate(peer, era)
        await call(peer, terms, "wait", on_progress=note)
    assert told == [1, 2, 3]


@pytest.mark.long
@each_of("era", ERAS)
async def test_a_cancelled_call_leaves_the_server_usable(era: Any, tmp_path: Path) -> None:
    """The server is told, and a later reply to that call harms nobody."""
    with anyio.fail_after(PATIENCE_S), peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
        terms = await negotiate(peer, era)
        with pytest.raises(TimeoutError):
            await call(peer, terms, "wait_for_ever", timeout_s=0.3)
        calling = asyncio.ensure_future(call(peer, terms, "wait_for_ever"))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait({calling})
        assert (await call(peer, terms, "count"))["structuredContent"]["count"] == 0
        assert peer.open_calls == 0


async def test_calls_at_once_get_their_own_replies(tmp_path: Path) -> None:
    """Replies in another order than the calls."""
    with anyio.fail_after(PATIENCE_S), peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
        terms = await negotiate(peer)
        slow = asyncio.ensure_future(call(peer, terms, "wait", arguments={"steps": 1}))
        quick = await call(peer, terms, "count")
        assert "structuredContent" in quick
        assert (await slow)["content"][0]["text"] == "waited"


FATAL = {
    "other id": "which no call has",
    "boolean id": "which no call has",
    "text id": "which no call has",
    "flood": "messages that nobody asked for",
    "junk": "no messages, such as 'what I am doing",
    "huge line": "a message of more than",
    "death": "closed its standard output",
    "half line": "closed its standard output",
    "closed output": "closed its standard output",
    "requests": "requests open at once",
}


@each_of("how", FATAL)
async def test_a_server_that_breaks_the_protocol_ends_with_a_sentence(how: str) -> None:
    """The open call raises it, and so does every later one."""
    with anyio.fail_after(PATIENCE_S), peer_of(*LYING_SERVER, how, on_request=_hold) as peer:
        terms = await negotiate(peer, "2025-11-25")
        for _ in range(2):
            with pytest.raises(PeerEnded, match=FATAL[how]):
                await call(peer, terms, "lie")
        assert peer.died is not None


async def _hold(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer a server's request never."""
    del method, params
    await asyncio.Event().wait()
    return {}


ERRORS = {"no result": "neither a result", "error": "no such", "odd error": "gives no reason"}


@each_of("how", ERRORS)
async def test_an_error_of_one_call_leaves_the_server_usable(how: str) -> None:
    """A reply of a wrong form too: it is the call's own."""
    with anyio.fail_after(PATIENCE_S), peer_of(*LYING_SERVER, how) as peer:
        terms = await negotiate(peer, "2025-11-25")
        with pytest.raises(RemoteError, match=ERRORS[how]):
            await call(peer, terms, "lie")
        assert (await peer.request("tools/list", {}))["tools"]


@each_of("how", ("honest", "greeting", "twice", "chunks"))
async def test_harmless_habits_are_forgiven(how: str) -> None:
    """A greeting, a reply twice, and a message in single bytes."""
    with anyio.fail_after(PATIENCE_S), peer_of(*LYING_SERVER, how) as peer:
        terms = await negotiate(peer)
        for _ in range(2):
            assert "content" in await call(peer, terms, "lie")
        assert peer.died is None


async def test_a_server_that_is_silent_twice_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One silent call may be a slow tool; the second in a row, without a byte between, is not."""
    monkeypatch.setattr("hud_mcp.plugins.servers.peer._HUNG_S", 0.05)
    with anyio.fail_after(PATIENCE_S), peer_of(*LYING_SERVER, "no answer") as peer:
        terms = await negotiate(peer, "2025-11-25")
        with pytest.raises(TimeoutError):
            await call(peer, terms, "lie", timeout_s=0.1)
        await peer.request("tools/list", {})
        with pytest.raises(TimeoutError):
            await call(peer, terms, "lie", timeout_s=0.1)
        assert peer.died is None
        with pytest.raises(TimeoutError):
            await call(peer, terms, "lie", timeout_s=0.1)
        assert peer.died == "did not answer 2 calls in a row"


async def test_a_server_that_reads_nothing_holds_up_its_own_callers_alone() -> None:
    """A call with more than the pipe and the buffer take ends after its own time."""
    with anyio.fail_after(PATIENCE_S), peer_of(*LYING_SERVER, "deaf") as peer:
        arguments = {"text": "x" * 9_000_000}
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await call(peer, Era("2025-11-25"), "lie", arguments=arguments, timeout_s=0.3)


@pytest.mark.long
async def test_an_ended_peer_raises_in_the_open_calls(tmp_path: Path) -> None:
    """Nobody waits for a server that we ended."""
    with anyio.fail_after(PATIENCE_S), peer_of(*SDK_SERVER, cwd=tmp_path) as peer:
        terms = await negotiate(peer)
        calling = asyncio.ensure_future(call(peer, terms, "wait_for_ever"))
        await asyncio.sleep(0)
        assert peer.open_calls == 1
        peer.close("was ended")
        with pytest.raises(PeerEnded, match="was ended"):
            await calling


async def test_numbers_and_texts_pass_as_they_are() -> None:
    """Big integers, and characters at which lines end elsewhere."""
    echo = (
        "import sys\n"
        "for line in sys.stdin: print(line.strip().replace('\"method\"', '\"result\"', 1)"
        ".replace('\"echo\"', '{}', 1).replace('{}, \"params\"', '{\"a\"', 1)"
        ".replace('{},\"params\"', '{\"a\"', 1) + '}', flush=True)"
    )
    value = {"n": 2**70, "text": "a\u2028b\u0085c", "none": None}
    with anyio.fail_after(PATIENCE_S), peer_of(sys.executable, "-c", echo) as peer:
        assert (await peer.request("echo", value))["a"] == value

"""Quotas as callers of real servers meet them."""

import asyncio
from pathlib import Path

import pytest
from peers import MODERN, Reply, http_peer, http_server
from scrapes import own_address, scrape

pytestmark = pytest.mark.anyio

COUNT = {"template": "count", "arguments": {"word": "lamp", "letter": "a"}}


@pytest.mark.parametrize(
    "store_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
@pytest.mark.long
async def test_two_servers_on_one_store_share_what_a_caller_may_use(
    tmp_path: Path, store_url: str
) -> None:
    """Of twenty starts at once as many are let through as the quota says; the others are told."""
    options = ("--store", store_url, "--quota", "sessions=8", "--token", "ann=secret-of-ann")
    env = {"XDG_DATA_HOME": str(tmp_path / "data")}
    one = http_server(tmp_path / "one", ("letter_count",), *options, "--metrics", "0", env=env)
    two = http_server(tmp_path / "two", ("letter_count",), *options, "--metrics", "0", env=env)
    with one as first, two as second:
        async with (
            http_peer(first, era=MODERN, token="secret-of-ann") as left,
            http_peer(second, era=MODERN, token="secret-of-ann") as right,
        ):
            peers = [(left, right)[i % 2] for i in range(20)]
            replies = await asyncio.gather(*(each.call("start_task", **COUNT) for each in peers))
            begun = [i for i, reply in enumerate(replies) if not reply.is_error]
            refused = [reply for reply in replies if reply.is_error]
            assert len(begun) == 8, [reply.text for reply in refused]
            assert {reply.meta["hud-mcp/error"] for reply in refused} == {"LimitReached"}
            assert all("the quota is 8, on all servers" in reply.text for reply in refused)
            session = replies[begun[0]].structured["session"]
            await peers[begun[0]].ok("response", session=session, answer="1")
            other = right if peers[begun[0]] is left else left
            await other.ok("start_task", **COUNT)
        told = [scrape(own_address(each)) for each in (first, second)]
    assert sum(each.total("hud_mcp_quota_refusals_total", quota="sessions") for each in told) == 12
    assert sum(each.total("hud_mcp_sessions_started_total") for each in told) == 9


@pytest.mark.long
async def test_a_token_file_gives_one_caller_more_and_the_wait_is_told_to_programs(
    tmp_path: Path,
) -> None:
    """Who starts too often is told in words and in a number how long to wait."""
    tokens = tmp_path / "tokens"
    tokens.write_text("ann=secret-of-ann\nbob=secret=of=bob== starts_per_minute=3 sessions=9\n")
    tokens.chmod(0o600)
    options = ("--token-file", str(tokens), "--quota", "starts_per_minute=1")
    with http_server(tmp_path, ("letter_count",), *options) as server:
        for token, most in (("secret-of-ann", 1), ("secret=of=bob==", 3)):
            async with http_peer(server, era=MODERN, token=token) as peer:
                replies: list[Reply] = [
                    await peer.call("start_task", **COUNT) for _ in range(most + 1)
                ]
            assert [reply.is_error for reply in replies] == [False] * most + [True]
            wait_s = replies[-1].meta["hud-mcp/retry_after_s"]
            assert 0 < wait_s <= 60
            assert f"call again in {wait_s} s" in replies[-1].text


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("session=3", "Did you mean 'sessions'?"),
        ("sessions=0", "'0' is no amount"),
        ("sessions=3GB", "'3GB' is no amount; write one such as 20"),
        ("stored_bytes=5 parsecs", "write one such as 5GB or 500MiB"),
    ],
)
async def test_a_quota_that_is_none_is_refused_at_the_start(
    tmp_path: Path, given: str, told: str
) -> None:
    """With what was given, and what can be written."""
    with (
        pytest.raises(AssertionError, match=told.replace("?", r"\?")),
        http_server(tmp_path, ("letter_count",), "--quota", given),
    ):
        pass

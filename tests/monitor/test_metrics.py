"""What a server tells Prometheus, and whoever watches whether it lives."""

from pathlib import Path

import anyio
import httpx
import pytest
from peers import BOARD, MODERN, http_peer, http_server
from scrapes import get, own_address, scrape
from waiting import PATIENCE_S, until

from hud_mcp import Environment
from hud_mcp.plugins.operate.metrics import Health
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

TOKENS = ("--token", "ann=secret-of-ann", "--token", "bob=secret-of-bob")


async def test_a_scrape_tells_what_was_done_and_of_nobody(tmp_path: Path) -> None:
    """Sessions, calls, worlds and the store are counted; no id and no name is a label."""
    with http_server(tmp_path, (BOARD, "letter_count"), *TOKENS, "--metrics", "0") as server:
        base = own_address(server)
        async with http_peer(server, era=MODERN, token="secret-of-ann") as ann:
            held = await ann.start("collect", marker="a", wanted=["tea"])
            await ann.ok("step", session=held.session, actions=[{"type": "type", "text": "tea"}])
            counted = await ann.start("count", word="lamp", letter="a")
            await ann.ok("response", session=counted.session, answer="1")
            await ann.ended(counted.session)
            await ann.error("step", session="sess-of-nobody", actions=[])
            now = scrape(base)
        of_board = {"environment": "board"}
        assert now.value("hud_mcp_sessions", state="open", **of_board) == 1
        assert now.value("hud_mcp_worlds", **of_board) == 1
        assert now.value("hud_mcp_sessions_started_total", **of_board) == 1
        assert now.value("hud_mcp_sessions_started_total", environment="letter_count") == 1
        assert now.total("hud_mcp_sessions_ended_total") == 1
        assert now.total("hud_mcp_sessions_ended_total", outcome="graded") == 1
        assert now.value("hud_mcp_call_seconds_count", tool="start_task", result="ok") == 2
        assert now.value("hud_mcp_call_seconds_count", tool="step", result="ok") == 1
        assert now.value("hud_mcp_call_seconds_count", tool="step", result="error") == 1
        assert now.value("hud_mcp_refusals_total", kind="SessionNotFound") == 1
        assert now.value("hud_mcp_world_act_seconds_count", result="ok", **of_board) == 1
        assert now.total("hud_mcp_grading_seconds_count", environment="letter_count") == 1
        assert now.total("hud_mcp_store_write_seconds_count", result="ok") >= 3
        assert now.value("hud_mcp_store_queue") == 0
        assert now.total("process_resident_memory_bytes") > 1e6
        assert "secret-of" not in now.text
        for private in ("ann", held.session, held.trajectory, counted.trajectory):
            assert f'"{private}"' not in now.text
            assert private == "ann" or private not in now.text


@pytest.mark.long
async def test_a_label_has_no_value_that_a_caller_made_up(tmp_path: Path) -> None:
    """However many names a stranger draws, the metrics do not grow by them."""
    with http_server(tmp_path, ("letter_count",), "--metrics", "0") as server:
        base = own_address(server)
        async with http_peer(server, era=MODERN) as peer:
            await peer.error("start_task", template="made_up_1")
            before = len(scrape(base).samples)
            for number in range(2, 12):
                await peer.error("start_task", template=f"made_up_{number}")
            after = scrape(base)
        assert len(after.samples) == before
        assert "made_up" not in after.text


@pytest.mark.long
async def test_metrics_beside_mcp_are_behind_a_token(tmp_path: Path) -> None:
    """Neither an agent's token nor none opens them; without the option they do not exist."""
    options = (*TOKENS, "--metrics-token", "secret-of-scrapes")
    with http_server(tmp_path / "with", ("letter_count",), *options) as server:
        base = server.url.removesuffix("/mcp")
        assert get(f"{base}/metrics").status_code == 401
        assert get(f"{base}/metrics", authorization="Bearer secret-of-ann").status_code == 401
        assert scrape(base, authorization="Bearer secret-of-scrapes").samples
        elsewhere = get(
            f"{base}/metrics", host="evil.example", authorization="Bearer secret-of-scrapes"
        )
        assert elsewhere.status_code == 421
    with http_server(tmp_path / "without", ("letter_count",), *TOKENS) as server:
        assert get(f"{server.url.removesuffix('/mcp')}/metrics").status_code == 404


def told(base: str, wanted: str, **headers: str) -> httpx.Response | None:
    """What a server says of its state, where it is this; a store that opens takes a while."""
    answer = get(f"{base}/readyz", **headers)
    return answer if answer.text == wanted else None


@pytest.mark.long
async def test_health_is_the_state_and_nothing_else(tmp_path: Path) -> None:
    """A server is ready as long as its store can be written, whoever asks it by any name."""
    with http_server(tmp_path, ("letter_count",), *TOKENS) as server:
        base = server.url.removesuffix("/mcp")
        alive = get(f"{base}/healthz", host="10.0.0.7:8000")
        assert (alive.status_code, alive.text) == (200, "ok\n")
        ready = await until(lambda: told(base, "ready\n", host="10.0.0.7:8000"))
        assert ready.status_code == 200
        assert "server" not in ready.headers


@pytest.mark.long
async def test_a_server_whose_store_cannot_be_written_is_not_ready(tmp_path: Path) -> None:
    """It lives, and is ready again once the store is."""
    with http_server(tmp_path, ("letter_count",)) as server:
        base = server.url.removesuffix("/mcp")
        assert await until(lambda: told(base, "ready\n"))
        away = server.store.with_suffix(".away")
        server.store.rename(away)
        server.store.mkdir()
        down = await until(lambda: told(base, "store unavailable\n"))
        assert down.status_code == 503
        assert get(f"{base}/healthz").status_code == 200
        server.store.rmdir()
        away.rename(server.store)
        assert (await until(lambda: told(base, "ready\n"))).status_code == 200


async def test_a_server_that_leaves_its_sessions_is_not_ready(tmp_path: Path) -> None:
    """From the moment in which it begins to; before it serves anything, it is not ready either."""
    found: list[Sessions] = []
    health = Health(lambda: found[0] if found else None)
    assert await health.state() == "starting"
    found.append(Sessions([Environment("bare")], store=Store(tmp_path / "store.sqlite3")))

    async def is_ready() -> bool:
        return await health.state() == "ready"

    with anyio.fail_after(PATIENCE_S):
        assert await until(is_ready)
        await found[0].close()
        assert await health.state() == "draining"

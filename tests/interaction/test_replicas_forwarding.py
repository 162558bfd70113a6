"""Any replica takes any call: it forwards, takes over, and lets nobody in who is not a replica."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from flock import ANN, BOB, SECRET, Flock, One, ask, flock
from peers import BOARD, LEGACY, MODERN, Gate, HttpServer, RawHttp, http_peer, raw_http
from postgresql import Cluster
from sqlalchemy import create_engine, text
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.plugins.operate.replicas.forwarding import FORWARDED, Secret

pytestmark = pytest.mark.anyio

TAG = "hud-mcp/replica"
TEA = {"type": "type", "text": "tea", "enter_after": True}
MILK = {"type": "type", "text": "milk", "enter_after": True}


@pytest.fixture(scope="module")
def replicas(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flock]:
    """Two replicas, for whatever leaves them as they were."""
    folder = tmp_path_factory.mktemp("flock")
    with flock(folder, cluster.new_schema(), (BOARD,)) as running:
        yield running


async def begin(flock: Flock, place: int, era: str = MODERN) -> str:
    """Start a session of Ann's at one replica."""
    reply = await ask(flock[place], era, "start_task", template="collect", arguments={})
    assert not reply.get("isError"), reply
    return reply["structuredContent"]["session"]


def as_server(one: One) -> HttpServer:
    """A replica as clients connect to it."""
    assert one.process is not None
    return HttpServer(one.process, one.url, one.log.parent, one.log)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_call_for_another_replicas_session_is_forwarded(replicas: Flock, era: str) -> None:
    """Its reply is the owner's, with the owner's tag; steps at both make one task."""
    session = await begin(replicas, 0, era)
    one = await ask(replicas[1], era, "step", session=session, actions=[TEA])
    two = await ask(replicas[0], era, "step", session=session, actions=[MILK])
    assert (one["_meta"]["hud-mcp/step"]["steps"], two["_meta"]["hud-mcp/step"]["steps"]) == (1, 2)
    assert one["_meta"][TAG] == two["_meta"][TAG] == "r1"
    done = await ask(replicas[1], era, "response", session=session, answer="done")
    assert done["structuredContent"]["reward"] == 1.0


async def test_a_neighbour_with_another_token_gets_nothing_through_any_replica(
    replicas: Flock,
) -> None:
    """Another caller's session and no session give the same answer, at the owner and elsewhere."""
    session = await begin(replicas, 0)
    told: set[str] = set()
    for place in (0, 1):
        for guess in (session, "sess-" + "0" * 32):
            reply = await ask(replicas[place], MODERN, "step", token=BOB, session=guess, actions=[])
            assert reply["isError"]
            told.add(reply["content"][0]["text"])
    assert len(told) == 1
    assert "There is no such session" in told.pop()
    own = await ask(replicas[1], MODERN, "task_status", session=session)
    assert own["_meta"][TAG] == "r1"
    assert "srv-" not in str(own)


@each_of("value", ["1", "1 a b 1 c d", "junk", ""])
async def test_an_outside_caller_cannot_pretend_to_be_a_replica(
    replicas: Flock, value: str
) -> None:
    """A header that no replica signed is refused, whoever's token comes with it."""
    async with raw_http(replicas[0].url, MODERN, token=ANN) as raw:
        body, headers = raw.message("tools/call", {"name": "list_tasks", "arguments": {}})
        reply = await raw.web.post(raw.url, json=body, headers={**headers, FORWARDED: value})
    assert reply.status_code == 403
    assert "no replica" not in reply.text
    assert "signature is not one of theirs" in reply.text


async def test_a_signature_is_of_one_body_one_credential_and_one_process(
    replicas: Flock,
) -> None:
    """Who has overheard a forwarded request can put no other one, and no other caller, in it."""
    session = await begin(replicas, 0)
    wrong = Secret(b"a secret of a neighbour's, which is long enough")
    right = Secret(SECRET.encode())
    async with raw_http(replicas[0].url, MODERN, token=BOB) as raw:
        asked = {"name": "task_status", "arguments": {"session": session}}
        body, headers = raw.message("tools/call", asked)
        content = httpx.Request("POST", raw.url, json=body).content

        async def send(secret: Secret, token: str, signed: bytes) -> int:
            bearer = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            kept: dict[str, Any] = {**headers, **bearer}
            value = secret.sign(
                "srv-of-before", sender="srv-x", method="POST", headers=kept, body=signed
            )
            more = {**kept, "authorization": f"Bearer {BOB}", FORWARDED: value}
            return (await raw.web.post(raw.url, content=content, headers=more)).status_code

        assert await send(wrong, BOB, content) == 403
        assert await send(right, ANN, content) == 403  # it was signed with Ann's credential
        assert await send(right, BOB, content + b" ") == 403
        assert await send(right, BOB, content) == 409  # it was for another process


async def test_a_forwarded_request_that_comes_again_is_not_done_again(replicas: Flock) -> None:
    """Who has overheard one cannot repeat it, even with its caller's token."""
    session = await begin(replicas, 0)
    engine = create_engine(replicas.store)
    try:
        with engine.connect() as connection:
            (own,) = connection.execute(text("SELECT id FROM servers WHERE tag = 'r1'")).one()
    finally:
        engine.dispose()
    async with raw_http(replicas[0].url, MODERN, token=ANN) as raw:
        asked = {"name": "step", "arguments": {"session": session, "actions": [TEA]}}
        body, headers = raw.message("tools/call", asked)
        content = httpx.Request("POST", raw.url, json=body).content
        kept = {**headers, "authorization": f"Bearer {ANN}", "content-type": "application/json"}
        signed = Secret(SECRET.encode()).sign(
            own, sender="srv-x", method="POST", headers=kept, body=content
        )
        sent = {**kept, FORWARDED: signed}
        got = [await raw.web.post(raw.url, content=content, headers=sent) for _ in range(2)]
        assert [reply.status_code for reply in got] == [200, 409], got[0].text
        status = await raw.call("task_status", session=session)
        assert status["structuredContent"]["steps"] == 1


async def test_a_neighbour_cannot_use_a_connection_of_the_older_era(replicas: Flock) -> None:
    """An Mcp-Session-Id opens nothing with another token, where it was opened and elsewhere."""
    async with raw_http(replicas[0].url, LEGACY, token=ANN) as raw:
        await raw.call("start_task", template="collect", arguments={})
        for one in replicas.all:
            headers = {"authorization": f"Bearer {BOB}"}
            async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S) as web:
                other = RawHttp(web, one.url, LEGACY, session_id=raw.session_id)
                body, sent = other.message("tools/call", {"name": "step", "arguments": {}})
                reply = await web.post(one.url, json=body, headers=sent)
                left = await web.delete(one.url, headers=sent)
            assert (reply.status_code, left.status_code) == (404, 404), reply.text
        still = await raw.call("step", actions=[TEA])
        assert still["_meta"]["hud-mcp/step"]["steps"] == 1


async def test_any_replica_serves_a_connection_and_its_one_session(replicas: Flock) -> None:
    """The Mcp-Session-Id and the session it holds are known everywhere, until the client leaves."""
    async with raw_http(replicas[0].url, LEGACY, token=ANN) as raw:
        await raw.call("start_task", template="collect", arguments={})
        told = raw.session_id
        raw.url = replicas[1].url
        step = await raw.call("step", actions=[TEA])  # names no session
        assert step["_meta"]["hud-mcp/step"]["steps"] == 1
        assert raw.session_id == told
        await raw.call("start_task", template="collect", arguments={})  # here, at the second
        for one in replicas.all:
            raw.url = one.url
            several = await raw.call("step", actions=[])
            assert several["isError"], several
            assert "pass `session`" in several["content"][0]["text"], several
        _, headers = raw.message("x", {})
        raw.url = replicas[0].url
        assert (await raw.web.delete(raw.url, headers=headers)).status_code == 200
        for one in replicas.all:
            body, sent = raw.message("tools/list", {})
            reply = await raw.web.post(one.url, json=body, headers=sent)
            assert reply.status_code == 404


@pytest.mark.sample
async def test_a_session_of_a_killed_replica_goes_on_elsewhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The other replica takes it over by its record, with the next call; the tag says so."""
    with flock(tmp_path, cluster.new_schema(), (BOARD,)) as replicas:
        session = await begin(replicas, 0)
        await ask(replicas[1], MODERN, "step", session=session, actions=[TEA])
        replicas[0].kill()
        with anyio.fail_after(PATIENCE_S):
            step = await ask(replicas[1], MODERN, "step", session=session, actions=[MILK])
        assert step["_meta"]["hud-mcp/step"]["steps"] == 2
        assert step["_meta"][TAG] == "r2"
        replicas[0].start()
        done = await ask(replicas[0], MODERN, "response", session=session, answer="done")
        assert done["structuredContent"]["reward"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_call_that_its_client_gives_up_stops_where_its_session_runs(
    replicas: Flock, era: str, tmp_path: Path
) -> None:
    """The real client cancels at another replica: what came after did not happen."""
    session, gate = await begin(replicas, 0), Gate(tmp_path, f"given up {era}")
    async with http_peer(as_server(replicas[1]), era=era, token=ANN) as peer:
        async with anyio.create_task_group() as group:

            async def step() -> None:
                await peer.call("step", session=session, actions=[TEA, gate.hold(), MILK, MILK])

            group.start_soon(step)
            await gate.arrived()
            group.cancel_scope.cancel()
        with anyio.fail_after(PATIENCE_S):
            after = await peer.ok("step", session=session, actions=[MILK])
        assert after.meta[TAG] == "r1"
        done = await peer.ok("response", session=session, answer="done")
        assert done.structured["reward"] == 1.0, done.text


@pytest.mark.long
@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_forwarded_call_shows_signs_of_life(
    replicas: Flock, era: str, tmp_path: Path
) -> None:
    """Progress of a long step arrives at the real client while the step still goes on."""
    session, gate = await begin(replicas, 0), Gate(tmp_path, f"long {era}")
    seen: list[float] = []
    replies: list[Any] = []
    async with http_peer(as_server(replicas[1]), era=era, token=ANN) as peer:

        async def on_progress(done: float, _total: float | None, message: str | None) -> None:
            assert message
            assert not replies
            seen.append(done)
            if len(seen) == 2:
                gate.open()

        asked = {"session": session, "actions": [TEA, gate.hold()]}
        with anyio.fail_after(PATIENCE_S):
            replies.append(
                await peer.client.call_tool("step", asked, progress_callback=on_progress)
            )
    assert replies[0].meta[TAG] == "r1", replies[0]
    assert len(seen) >= 2
    assert seen == sorted(set(seen))

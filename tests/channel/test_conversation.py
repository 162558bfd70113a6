"""What a peer is told on the bare wire, and what it may do to others."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from waiting import until
from wire import Gate, Refused, Served, served, wire

from hud_mcp import Environment
from hud_mcp.channel.server import CHANNEL_LIMITS

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]
ROUTE = {"capability": "shell", "host": "models.example", "port": 80}
UPSTREAM = {
    "name": "model",
    "capability": "shell",
    "url": "https://models.example/v1",
    "headers": {"authorization": "Bearer x"},
}
SESSION = re.compile(r"sess-[0-9a-f]{32}")


async def test_a_peer_lists_starts_and_is_graded(here: Served) -> None:
    """The frames are those that HUD's clients read."""
    async with wire(here.port, hello=False) as peer:
        hello = await peer.hello()
        assert SESSION.fullmatch(hello["session_id"])
        assert hello["env"] == {"name": "talk", "version": "1.2.3"}
        assert [b["name"] for b in hello["bindings"]] == ["echo"]
        tasks = (await peer.call("tasks.list"))["tasks"]
        assert [t["id"] for t in tasks] == ["ask", "gated", "rich", "broken"]
        assert tasks[0]["description"] == "Say a word"
        assert tasks[0]["args"]["properties"]["word"]["type"] == "string"
        assert (await peer.start("ask", word="milk"))["prompt"] == "Say milk."
        grade = await peer.grade("milk")
        assert grade["score"] == 1.0
        assert isinstance(grade["score"], float)
        assert await peer.call("bye") == {"goodbye": True}
        assert await peer.ended() == b""


async def test_messages_and_further_keys_of_a_prompt_are_passed_on(here: Served) -> None:
    """So are subscores, content and info of a grade, and an answer that is no text."""
    async with wire(here.port) as peer:
        started = await peer.start("rich", count=7)
        assert started["prompt"] == [
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "Two"},
        ]
        assert started["bindings"] == {"echo": {"path": "/y"}}
        assert started["hint"] == 7
        grade = await peer.grade([1, 2])
        assert grade["info"] == {"got": [1, 2]}
        assert grade["content"] == "So so."
        assert [s["name"] for s in grade["subscores"]] == ["a", "b"]


async def test_nothing_has_to_be_said_first(here: Served) -> None:
    """A session begins with whatever the first frame is; ids keep their type."""
    async with wire(here.port, hello=False) as peer:
        peer.send(b'{"id":"a","method":"tasks.start","params":{"id":"ask","args":null}}\r\n')
        assert (await peer.reply("a"))["result"]["prompt"] == "Say tea."
        peer.send(b'{"id":"b","method":"tasks.grade"}\n')
        assert (await peer.reply("b"))["result"]["score"] == 0.25


@pytest.mark.parametrize(
    ("frame", "code", "says"),
    [
        ({"method": "nope"}, -32601, "method not found: nope"),
        ({"method": "tunnel.open", "params": {"capability": "echo"}}, -32601, "method not found"),
        ({"method": 7}, -32600, "`method`"),
        ({}, -32600, "`method`"),
        ({"method": "hello", "params": [1]}, -32602, "`params` is an object"),
        ({"method": "hello", "params": {"session_id": 7}}, -32602, "must be a string"),
        ({"method": "hello", "params": {"session_id": "x"}}, -32600, "unknown session: 'x'"),
        ({"method": "hello", "params": {"connections": {}}}, -32602, "must be a list"),
        ({"method": "hello", "params": {"workspace_routes": [{}]}}, -32602, "'capability'"),
        ({"method": "hello", "params": {"workspace_routes": [ROUTE]}}, -32000, "cannot enforce"),
        (
            {"method": "hello", "params": {"workspace_routes": [{**ROUTE, "host": "10.0.0.1"}]}},
            -32602,
            "'workspace_routes[0]': 'host' must be a host's name",
        ),
        (
            {"method": "hello", "params": {"workspace_routes": [ROUTE, {**ROUTE, "port": True}]}},
            -32602,
            "'workspace_routes[1]': 'port'",
        ),
        ({"method": "hello", "params": {"connections": [1]}}, -32602, "[0]' must be an object"),
        ({"method": "hello", "params": {"connections": [UPSTREAM]}}, -32000, "cannot enforce"),
        (
            {"method": "hello", "params": {"connections": [{**UPSTREAM, "name": "A b"}]}},
            -32602,
            "'name' must begin",
        ),
        (
            {"method": "hello", "params": {"connections": [{**UPSTREAM, "url": "http://u:p@h/"}]}},
            -32602,
            "without credentials",
        ),
        (
            {"method": "hello", "params": {"connections": [{**UPSTREAM, "headers": {"a": 1}}]}},
            -32602,
            "'headers'",
        ),
        ({"method": "tasks.start"}, -32602, "'id' must be a string"),
        ({"method": "tasks.start", "params": {"id": "ask", "args": 7}}, -32602, "an object"),
        ({"method": "tasks.start", "params": {"id": "aks"}}, -32602, "unknown task: 'aks'"),
        ({"method": "tasks.start", "params": {"id": "ask", "args": {"w": 1}}}, -32602, "'w'"),
        (
            {"method": "tasks.start", "params": {"id": "rich", "args": {"count": "7"}}},
            -32602,
            "count",
        ),
        ({"method": "tasks.start", "params": {"id": "broken"}}, -32000, "setup"),
        ({"method": "tasks.grade", "params": {"answer": ""}}, -32600, "no task in progress"),
    ],
)
async def test_what_is_refused_says_why(here: Served, frame: dict, code: int, says: str) -> None:
    """The codes are HUD's; the connection goes on; nothing that an author wrote is repeated."""
    async with wire(here.port) as peer:
        peer.send(json.dumps({**frame, "id": 77}).encode() + b"\n")
        error = (await peer.reply(77))["error"]
        assert error["code"] == code
        assert says in error["message"]
        assert "secret" not in error["message"]
        assert (await peer.start("ask"))["prompt"] == "Say tea."


async def test_no_task_in_progress_is_said_in_exactly_these_words(here: Served) -> None:
    """HUD's command line begins anew on this text alone; a cancelled task is over."""
    async with wire(here.port) as peer:
        assert (await peer.refused("tasks.grade", answer="")).text == "no task in progress"
        await peer.start("ask")
        await peer.call("tasks.cancel")
        refused = await peer.refused("tasks.grade", answer="tea")
        assert (refused.code, refused.text) == (-32600, "no task in progress")
        await peer.start("ask")
        assert (await peer.grade("tea"))["score"] == 1.0


async def test_a_notification_is_obeyed_and_not_answered(here: Served) -> None:
    """Without an id there is no reply, be it a result or an error."""
    async with wire(here.port) as peer:
        peer.send(b'{"method":"tasks.start","params":{"id":"ask"}}\n')
        peer.send(b'{"method":"nope"}\n{"method":"tasks.grade","params":[]}\n')
        beat = peer.ask("hello", session_id=peer.session)
        assert (await peer.frame() or {})["id"] == beat
        held = here.channel._service.hud_sessions._by_id[peer.session]
        await until(lambda: held.session is not None and not here.channel._service.calls)
        assert (await peer.grade("tea"))["score"] == 1.0


@pytest.mark.parametrize("bad", [b"{", b"[]", b'{"id":1.5,"method":"hello"}', b'{"id":[],"a":1}'])
async def test_a_bad_frame_later_on_is_an_error_without_an_id(here: Served, bad: bytes) -> None:
    """The connection and what it holds go on."""
    async with wire(here.port) as peer:
        await peer.start("ask")
        peer.send(bad + b"\n")
        assert (await peer.reply(None))["error"]["code"] in (-32700, -32600)
        assert (await peer.grade("tea"))["score"] == 1.0


async def test_the_body_of_an_http_request_is_never_executed(here: Served) -> None:
    """A web page can make a browser send any body here: the connection ends with the first line."""
    body = b'{"id":1,"method":"tasks.start","params":{"id":"ask"}}\n'
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with wire(here.port, hello=False) as peer:
        peer.send(head + body)
        lines = (await peer.ended()).splitlines()
        assert len(lines) == 1
        assert json.loads(lines[0])["error"]["code"] == -32700
    assert not list(here.sessions.roster)


async def test_requests_can_be_sent_ahead_and_share_an_id(here: Served) -> None:
    """Each is answered, in order where none takes its time."""
    async with wire(here.port) as peer:
        frame = b'{"id":5,"method":"tasks.list"}\n'
        peer.send(frame * 50)
        for _ in range(50):
            assert (await peer.frame() or {})["id"] == 5


async def test_only_cancel_bye_and_a_heartbeat_are_taken_while_a_task_call_runs(
    here: Served, gate: Gates
) -> None:
    """Everything else is refused until then, and nothing of it is run later."""
    setup = gate("setup")
    async with wire(here.port) as peer, wire(here.port) as other:
        start = peer.ask("tasks.start", id="gated", args={"setup": setup.path})
        await setup.reached()
        for method in ("tasks.list", "tasks.start", "tasks.grade", "hello"):
            refused = await peer.refused(method, id="ask", answer="")
            assert refused.code == -32600
            assert refused.text == f"{method}: a task call is still running"
        assert (await peer.call("hello", session_id=peer.session))["session_id"] == peer.session
        assert (await other.start("ask"))["prompt"] == "Say tea.", "others are not held up"
        setup.open()
        assert (await peer.result(start))["prompt"] == "Go."
        assert (await peer.grade(""))["score"] == 0.5


@pytest.mark.parametrize("method", ["tasks.cancel", "bye"])
@pytest.mark.parametrize("phase", ["setup", "grading"])
async def test_a_task_call_is_cut_off(here: Served, gate: Gates, method: str, phase: str) -> None:
    """The call is told so first, the record says cancelled, and its generator has ended."""
    stop = gate("stop")
    async with wire(here.port) as peer:
        call = peer.ask("tasks.start", id="gated", args={phase: stop.path})
        if phase == "grading":
            await peer.result(call)
            call = peer.ask("tasks.grade", answer="x")
        await stop.reached()
        end = peer.ask(method)
        first = await peer.frame() or {}
        assert first["id"] == call
        assert first["error"]["code"] == -32000
        assert first["error"]["message"] == f"{method} interrupted the task"
        assert await peer.result(end) in ({"cancelled": True}, {"goodbye": True})
        rows = await here.sessions.store.list_trajectories()
        assert [row.outcome for row in rows] == ["cancelled"]
        if method == "tasks.cancel":
            assert (await peer.start("ask"))["prompt"] == "Say tea."


async def test_a_new_task_takes_the_place_of_the_one_that_is_held(here: Served) -> None:
    """One that cannot be started does not."""
    async with wire(here.port) as peer:
        await peer.start("ask", word="one")
        await peer.refused("tasks.start", id="nope")
        await peer.refused("tasks.start", id="ask", args={"word": 7})
        assert (await peer.grade("one"))["score"] == 1.0
        await peer.start("ask", word="two")
        await peer.start("ask", word="three")
        assert (await peer.grade("three"))["score"] == 1.0
    outcomes = [r.outcome for r in await here.sessions.store.list_trajectories()]
    assert sorted(map(str, outcomes)) == ["cancelled", "graded", "graded"]


async def test_a_failed_start_leaves_nothing(here: Served) -> None:
    """Neither something to grade nor something parked, and the session goes on."""
    async with wire(here.port) as peer, wire(here.port) as other:
        await peer.refused("tasks.start", id="broken")
        assert (await peer.refused("tasks.grade", answer="")).text == "no task in progress"
        peer.drop()
        assert (await other.refused("tasks.grade", answer="")).text == "no task in progress"
        await other.start("ask")
        await other.refused("tasks.start", id="broken")
        await other.start("ask", word="again")
        assert (await other.grade("again"))["score"] == 1.0


async def test_a_failed_grading_is_an_error_and_no_score(here: Served) -> None:
    """It is recorded as that, with the reason; asked again, the same is said."""
    async with wire(here.port) as peer:
        await peer.start("broken", where="grading")
        for _ in range(2):
            refused = await peer.refused("tasks.grade", answer="x")
            assert refused.code == -32000
            assert "grading failed" in refused.text
            assert "secret" not in refused.text
    rows = await here.sessions.store.list_trajectories()
    assert [(row.outcome, row.reward) for row in rows] == [("grading_failed", None)]


async def test_the_same_answer_again_is_given_the_same_grade(here: Served, tmp_path: Path) -> None:
    """It is graded once; another answer is refused."""
    tally = tmp_path / "tally"
    async with wire(here.port) as peer:
        await peer.start("gated", tally=str(tally))
        first = await peer.grade("x")
        assert await peer.grade("x") == first
        assert "its grade stands" in (await peer.refused("tasks.grade", answer="y")).text
    assert tally.read_text() == "x\n"


# ------------------------------------------------------------------------------ parked sessions


async def test_a_dropped_session_is_resumed_by_its_id(here: Served) -> None:
    """At once, with its task, and under the same id; not by a second connection."""
    async with wire(here.port) as peer:
        await peer.start("ask", word="held")
        async with wire(here.port, hello=False) as other:
            refused = await other.refused("hello", session_id=peer.session)
            assert refused.code == -32600
            assert "has a live connection" in refused.text
        peer.drop()
        await parked(here, peer.session)
        async with wire(here.port, hello=False) as again:
            hello = await again.hello(session_id=peer.session)
            assert hello["session_id"] == peer.session
            assert (await again.grade("held"))["score"] == 1.0


async def parked(here: Served, session: str) -> None:
    """Wait until no connection speaks for a session."""
    held = here.channel._service.hud_sessions._by_id.get(session)
    await until(lambda: held is None or held.speaker is None)


async def resume(here: Served, session: str) -> dict:
    """Grade what a session holds, once it is parked."""
    await parked(here, session)
    async with wire(here.port, session_id=session) as peer:
        return await peer.grade("x")


def is_spoken_for(here: Served, session: str) -> bool:
    """Whether a connection speaks for a HUD session."""
    return here.channel._service.hud_sessions._by_id[session].speaker is not None


async def refusal(here: Served, session: str) -> Refused:
    """What the next connection is told that names a session."""
    await parked(here, session)
    async with wire(here.port, hello=False) as peer:
        refused = await peer.refused("hello", session_id=session)
        assert refused.code == -32600
        assert refused.text.startswith(f"unknown session: {session!r}")
        assert (await peer.refused("tasks.grade", answer="x")).text == "no task in progress"
        return refused


async def test_a_start_that_its_peer_leaves_goes_on(here: Served, gate: Gates) -> None:
    """It can be resumed while it is set up, and is then graded."""
    setup = gate("setup")
    async with wire(here.port) as peer:
        peer.ask("tasks.start", id="gated", args={"setup": setup.path})
        await setup.reached()
        peer.drop()
        async with anyio.create_task_group() as group:

            async def go_on() -> None:
                assert (await resume(here, peer.session))["score"] == 0.5

            group.start_soon(go_on)
            await until(lambda: is_spoken_for(here, peer.session))
            setup.open()


async def test_a_grading_that_its_peer_leaves_goes_on_and_is_told_to_who_asks_again(
    here: Served, gate: Gates, tmp_path: Path
) -> None:
    """By the session's id, during the grading and after it: graded once."""
    grading, tally = gate("grading"), tmp_path / "tally"
    async with wire(here.port) as peer:
        await peer.start("gated", grading=grading.path, tally=str(tally))
        peer.ask("tasks.grade", answer="x")
        await grading.reached()
        peer.drop()
        await parked(here, peer.session)
        found = []
        async with anyio.create_task_group() as group:

            async def ask_again() -> None:
                found.append(await resume(here, peer.session))

            group.start_soon(ask_again)
            await until(lambda: is_spoken_for(here, peer.session))
            grading.open()
        found.append((await refusal(here, peer.session)).data["grade"])
    assert found[0] == found[1]
    assert tally.read_text() == "x\n"


async def test_a_grade_that_nobody_received_waits_for_the_same_answer(
    here: Served, gate: Gates, tmp_path: Path
) -> None:
    """Also for a peer that names no session; for another answer there is no task."""
    grading, tally = gate("grading"), tmp_path / "tally"
    async with wire(here.port) as peer:
        await peer.start("gated", grading=grading.path, tally=str(tally))
        peer.ask("tasks.grade", answer="x")
        await grading.reached()
        peer.drop()
        held = here.channel._service.hud_sessions._by_id[peer.session]
        await until(lambda: held.speaker is None)
        grading.open()
        await until(lambda: not held.goes_on)
        async with wire(here.port) as other:
            assert (await other.refused("tasks.grade", answer="y")).text == "no task in progress"
            assert (await other.grade("x"))["score"] == 0.5
        async with wire(here.port) as third:
            assert (await third.refused("tasks.grade", answer="x")).text == "no task in progress"
    assert tally.read_text() == "x\n"


async def test_a_blind_grade_is_of_the_only_parked_session(here: Served) -> None:
    """Never of a live one; of two, none, and neither's id is told."""
    async with wire(here.port) as live, wire(here.port) as one, wire(here.port) as two:
        await live.start("ask", word="live")
        await one.start("ask", word="one")
        one.drop()
        await parked(here, one.session)
        async with wire(here.port) as blind:
            assert (await blind.grade("one"))["score"] == 1.0
            assert (await blind.grade("one"))["score"] == 1.0
        for word, peer in (("two", two), ("live", live)):
            await peer.start("ask", word=word)
            peer.drop()
            await parked(here, peer.session)
        async with wire(here.port) as blind:
            refused = await blind.refused("tasks.grade", answer="two")
            assert refused.code == -32600
            assert refused.text.startswith("2 parked sessions")
            assert not SESSION.search(refused.text)
            assert (await blind.call("tasks.cancel")) == {"cancelled": True}
        async with wire(here.port, session_id=two.session) as peer:
            assert (await peer.grade("two"))["score"] == 1.0
        async with wire(here.port) as blind:
            assert (await blind.grade("live"))["score"] == 1.0


async def test_after_its_own_grade_a_connection_may_adopt_again(here: Served) -> None:
    """As HUD's may: the only parked one, none of two; and where none is, its own grade stands."""
    async with wire(here.port) as harness:
        await harness.start("ask", word="own")
        assert (await harness.grade("own"))["score"] == 1.0
        for word in ("one", "two"):
            async with wire(here.port) as peer:
                await peer.start("ask", word=word)
                peer.drop()
                await parked(here, peer.session)
            assert (await harness.grade(word))["score"] == 1.0
            assert (await harness.grade(word))["score"] == 1.0
            refused = await harness.refused("tasks.grade", answer="own")
            assert "its grade stands. tasks.start begins another" in refused.text
        async with wire(here.port) as one, wire(here.port) as two:
            await one.start("ask")
            await two.start("ask")
            for peer in (one, two):
                peer.drop()
                await parked(here, peer.session)
        assert (await harness.refused("tasks.grade", answer="two")).text.startswith("2 parked")
        async with wire(here.port, session_id=one.session) as resumed:
            assert (await resumed.grade("tea"))["score"] == 1.0
        assert (await harness.grade("tea"))["score"] == 1.0
        graded = [r for r in await here.sessions.store.list_trajectories() if r.reward is not None]
        assert len(graded) == 5


async def test_who_has_cancelled_or_failed_to_start_a_task_takes_none_of_another(
    here: Served,
) -> None:
    """What is parked meanwhile waits for who started it."""
    async with wire(here.port) as owner, wire(here.port) as other:
        await owner.start("ask", word="mine")
        owner.drop()
        await parked(here, owner.session)
        await other.refused("tasks.start", id="broken")
        assert (await other.refused("tasks.grade", answer="x")).text == "no task in progress"
        await other.start("ask")
        await other.call("tasks.cancel")
        assert (await other.refused("tasks.grade", answer="x")).text == "no task in progress"
        async with wire(here.port, session_id=owner.session) as again:
            assert (await again.grade("mine"))["score"] == 1.0


async def test_a_session_that_is_over_is_not_resumed(here: Served) -> None:
    """Graded: HUD's words, and the stored grade beside them. Left with bye: HUD's words."""
    async with wire(here.port) as graded, wire(here.port) as left, wire(here.port) as idle:
        await graded.start("ask", word="x")
        grade = await graded.grade("x")
        again = await graded.hello(session_id=graded.session)
        assert again["session_id"] == graded.session, "its own connection may go on"
        await left.start("ask")
        await left.call("bye")
        await idle.call("bye")
    refused = await refusal(here, graded.session)
    assert refused.text == f"unknown session: {graded.session!r}"
    digest = hashlib.sha256(b"x").hexdigest()
    assert refused.data == {"outcome": "graded", "grade": grade, "answer_digest": digest}
    refused = await refusal(here, left.session)
    assert "it was cancelled at" in refused.text
    assert refused.data == {"outcome": "cancelled"}
    refused = await refusal(here, idle.session)
    assert refused.text == f"unknown session: {idle.session!r}"
    assert refused.data is None


async def test_two_blind_grades_at_once_grade_once(here: Served, tmp_path: Path) -> None:
    """One has it, the other has nothing."""
    tally = tmp_path / "tally"
    async with wire(here.port) as peer:
        await peer.start("gated", tally=str(tally))
        peer.drop()
        await parked(here, peer.session)
    async with wire(here.port) as one, wire(here.port) as two:
        asked = [(p, p.ask("tasks.grade", answer="x")) for p in (one, two)]
        replies = [await p.reply(i) for p, i in asked]
        assert sum("result" in r for r in replies) == 1
    assert tally.read_text() == "x\n"


async def test_a_session_is_taken_over_from_a_connection_that_may_be_dead(here: Served) -> None:
    """Where that is asked for: the old connection ends, and cannot act on it."""
    async with wire(here.port) as old:
        await old.start("ask", word="mine")
        async with wire(here.port, session_id=old.session, take_over=True) as new:
            old.ask("tasks.cancel")
            assert await old.ended() in (b"", b"reset")
            assert (await new.grade("mine"))["score"] == 1.0


async def test_a_peer_that_has_only_stopped_sending_is_told_its_grade(
    here: Served, gate: Gates
) -> None:
    """As a script does that pipes its requests in and reads the replies."""
    grading = gate("grading")
    async with wire(here.port) as peer:
        await peer.start("gated", grading=grading.path)
        call = peer.ask("tasks.grade", answer="x")
        peer.writer.write_eof()
        await grading.reached()
        grading.open()
        assert (await peer.result(call))["score"] == 0.5
        assert await peer.ended() == b""


# ------------------------------------------------------------------------------ who may, how much


async def test_without_the_token_nothing_is_told_or_done(talk: Environment, tmp_path: Path) -> None:
    """Not to hello, not to any other first frame, not to a stream; the connection ends."""
    async with served(talk, tmp_path / "store.sqlite3", token="a-long-secret") as here:
        for method, params in (
            ("hello", {}),
            ("hello", {"token": "a-long-secreT"}),
            ("hello", {"token": 7}),
            ("tasks.start", {"id": "ask"}),
            ("tunnel.open", {"capability": "echo"}),
        ):
            async with wire(here.port, hello=False) as peer:
                refused = await peer.refused(method, **params)
                assert refused.code == -32001
                assert "token" in refused.text
                assert await peer.ended() == b""
        async with wire(here.port, token="a-long-secret") as peer:
            await peer.start("ask")
            peer.drop()
            await parked(here, peer.session)
        async with wire(here.port, token="a-long-secret") as peer:
            assert (await peer.grade("tea"))["score"] == 1.0, "who knows the token may adopt"


async def test_where_others_can_reach_it_without_a_token_nobody_adopts(
    talk: Environment, tmp_path: Path
) -> None:
    """The session's id is asked for."""
    from hud_mcp.channel.server import Channel  # noqa: PLC0415
    from hud_mcp.session.registry import Sessions  # noqa: PLC0415
    from hud_mcp.store import Store  # noqa: PLC0415

    sessions = Sessions([talk], store=Store(tmp_path / "store.sqlite3"), limits=CHANNEL_LIMITS)
    channel = Channel(talk, sessions=sessions, closes_sessions=True)
    server = await channel.listen("0.0.0.0")
    here = Served(server.sockets[0].getsockname()[1], channel, sessions)
    try:
        async with wire(here.port) as peer:
            await peer.start("ask")
            peer.drop()
            await parked(here, peer.session)
        async with wire(here.port) as blind:
            assert (await blind.refused("tasks.grade", answer="")).text == "no task in progress"
        async with wire(here.port, session_id=peer.session) as again:
            assert (await again.grade("tea"))["score"] == 1.0
    finally:
        await channel.close()


async def test_arguments_and_answers_are_bounded(talk: Environment, tmp_path: Path) -> None:
    """To the byte, with what is allowed in the error; what is held goes on."""
    limits = CHANNEL_LIMITS.model_copy(update={"argument_bytes": 1000})
    async with (
        served(talk, tmp_path / "store.sqlite3", limits=limits) as here,
        wire(here.port) as peer,
    ):
        refused = await peer.refused("tasks.start", id="ask", args={"word": "x" * 1000})
        assert refused.code == -32602
        assert "at most 1000" in refused.text
        await peer.start("ask", word="x" * 900)
        assert (await peer.refused("tasks.grade", answer="x" * 1000)).code == -32602
        deep = [[]]
        for _ in range(400):
            deep = [deep]
        assert (await peer.refused("tasks.grade", answer=deep)).code == -32000
        assert (await peer.grade("x" * 900))["score"] == 1.0


async def test_arguments_and_answers_are_as_long_as_a_frame(here: Served) -> None:
    """12 MB in each direction, as with HUD; MCP's own limit is 1 MB."""
    word = "x" * 12_000_000
    async with wire(here.port) as peer:
        assert (await peer.start("ask", word=word))["prompt"] == f"Say {word}."
        assert (await peer.grade(word))["score"] == 1.0
        assert here.sessions.limits.argument_bytes == 2**20


async def test_errors_name_the_methods_of_the_wire(talk: Environment, tmp_path: Path) -> None:
    """No tool of MCP is named to a client that has none."""
    limits = CHANNEL_LIMITS.model_copy(update={"sessions": 1, "sessions_per_caller": 1})
    async with (
        served(talk, tmp_path / "store.sqlite3", limits=limits) as here,
        wire(here.port) as one,
        wire(here.port) as two,
    ):
        await one.start("ask")
        said = [(await two.refused("tasks.start", id="ask")).text]
        assert "Finish one with tasks.grade, or end one with tasks.cancel." in said[0]
        await one.grade("tea")
        said.append((await one.refused("tasks.grade", answer="milk")).text)
        for text in said:
            assert not re.search(r"start_task|list_tasks|cancel_task|task_status|response", text)


async def test_a_held_task_expires_where_nobody_attends_to_it(
    talk: Environment, tmp_path: Path
) -> None:
    """An open connection attends to its task; a parked one has the idle time, and says so."""
    limits = CHANNEL_LIMITS.model_copy(update={"idle_s": 0.6})
    async with (
        served(talk, tmp_path / "store.sqlite3", limits=limits) as here,
        wire(here.port) as kept,
        wire(here.port) as left,
    ):
        await kept.start("ask", word="kept")
        await left.start("ask", word="left")
        left.drop()
        session = here.channel._service.hud_sessions._by_id[left.session].session
        await until(lambda: session.is_over)
        assert (await kept.grade("kept"))["score"] == 1.0
        refused = await refusal(here, left.session)
        assert ": it expired at" in refused.text
        assert "idle for 0.6 s" in refused.text
        assert refused.data == {"outcome": "expired"}


async def test_a_connection_that_says_nothing_is_closed_and_its_task_stays_held(
    talk: Environment, tmp_path: Path
) -> None:
    """One that never said anything too; not one whose task call runs."""
    store = tmp_path / "store.sqlite3"
    async with served(talk, store, idle_s=0.6, first_s=0.6) as here:
        async with wire(here.port, hello=False) as silent:
            assert b"in time" in await silent.ended()
        async with wire(here.port) as peer:
            slow = Gate(str(tmp_path / "slow"))
            start = peer.ask("tasks.start", id="gated", args={"setup": slow.path})
            await slow.reached()
            await anyio.sleep(1.0)  # longer than it may be idle
            slow.open()
            await peer.result(start)
            assert await peer.ended() == b""
            async with wire(here.port, session_id=peer.session) as again:
                assert (await again.grade("x"))["score"] == 0.5


async def test_more_connections_than_are_taken_are_told_so(
    talk: Environment, tmp_path: Path
) -> None:
    """Those that are open go on, and there is room again once one has left."""
    async with (
        served(talk, tmp_path / "store.sqlite3", connections=2) as here,
        wire(here.port) as one,
        wire(here.port) as two,
    ):
        async with wire(here.port, hello=False) as three:
            assert b"2 connections are open" in await three.ended()
        await one.start("ask")
        two.drop()
        await until(lambda: len(here.channel._connections) == 1)
        async with wire(here.port) as three:
            await three.start("ask")


async def test_a_peer_that_does_not_read_holds_up_nobody(here: Served) -> None:
    """Its replies wait in its own socket, and are not made before there is room."""
    async with wire(here.port) as deaf, wire(here.port) as peer:
        deaf.writer.transport.pause_reading()
        frame = b'{"id":1,"method":"tasks.list"}\n'
        for _ in range(200):
            deaf.send(frame * 500)
        for _ in range(20):
            assert (await peer.call("tasks.list"))["tasks"]
        kept = [c for c in here.channel._connections if not c.done()]
        assert len(kept) == 2
        deaf.drop()
        await until(lambda: len(here.channel._connections) == 1)


async def test_a_flood_of_small_frames_and_blank_lines_holds_up_nobody(here: Served) -> None:
    """Others are answered between them."""
    async with wire(here.port) as flood, wire(here.port) as peer:
        flood.send(b"\n" * 2_000_000 + b'{"method":"tasks.list"}\n' * 20_000)
        with anyio.fail_after(10):
            for _ in range(20):
                assert (await peer.call("hello", session_id=peer.session))["bindings"]


async def test_a_frame_without_an_end_is_refused_and_costs_nothing(here: Served) -> None:
    """64 MB without a newline: the error arrives, the connection ends, and others go on."""
    async with wire(here.port) as long, wire(here.port) as peer:
        await peer.start("ask")
        chunk = b"x" * 2**20
        for _ in range(64):
            long.send(chunk)
            await long.writer.drain()
        long.writer.write_eof()
        lines = (await long.ended()).splitlines()
        assert json.loads(lines[-1])["error"]["code"] == -32600
        assert (await peer.grade("tea"))["score"] == 1.0

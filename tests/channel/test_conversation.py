"""What a peer is told on the bare wire, and what it may do to others."""

import json
from pathlib import Path

import pytest
from talking import SESSION, Gates
from waiting import until
from wire import Served, wire

pytestmark = pytest.mark.anyio

ROUTE = {"capability": "shell", "host": "models.example", "port": 80}
UPSTREAM = {
    "name": "model",
    "capability": "shell",
    "url": "https://models.example/v1",
    "headers": {"authorization": "Bearer x"},
}


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
    """So are subscores, content and info of a grade, and an answer that is not text."""
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
            {"method": "tasks.start", "params": {"id": "rich", "args": {"count": "seven"}}},
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
        beat = await peer.call("hello", session_id=peer.session)
        assert beat["session_id"] == peer.session, "a heartbeat changes nothing of it"
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

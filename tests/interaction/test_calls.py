"""What a client is told when a call is wrong, late, doubled or cut off, and what is true then."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp.shared.exceptions import MCPError
from peers import (
    BOARD,
    LEGACY,
    MODERN,
    Gate,
    HttpServer,
    Peer,
    http_peer,
    http_server,
    load_all,
    load_when,
    raw_http,
    raw_stdio,
)
from waiting import PATIENCE_S, until

from hud_mcp.record.trajectory import Trajectory

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("list_tasks", {"environment": "bord"}, "Did you mean 'board'?"),
    ("list_tasks", {"offset": -1}, "offset: expected a whole number of at least 0, got -1"),
    ("list_tasks", {"offset": "many"}, "offset: expected a whole number such as 10, got 'many'"),
    ("list_tasks", {"filtre": "x"}, "there is no argument 'filtre'. Did you mean 'filter'?"),
    ("start_task", {}, "Give `task`"),
    ("start_task", {"task": "shopping", "template": "collect"}, "not `template` too"),
    ("start_task", {"task": "shoping"}, "Did you mean 'shopping'?"),
    ("start_task", {"template": "colect"}, "Did you mean 'collect'?"),
    (
        "start_task",
        {"template": "collect", "arguments": {"marker": 3}},
        "marker: expected a string such as '3', got 3",
    ),
    (
        "start_task",
        {"template": "collect", "arguments": ["x"]},
        "arguments: expected an object such as {",
    ),
    ("start_task", {"template": "collect", "arguments": {"mark": "x"}}, "Did you mean 'marker'?"),
    ("start_task", {"template": "arguments"}, "'name' is required"),
    ("start_task", {"template": "collect", "context": {"width": 9}}, "width: 9 is not within"),
    ("start_task", {"template": "collect", "context": {"wdth": 9}}, "Did you mean 'width'?"),
    (
        "start_task",
        {"template": "collect", "seed": "x"},
        "seed: expected a whole number such as 10, got 'x'",
    ),
    ("start_task", {"template": "collect", "seed": 2**70}, "64"),
    (
        "start_task",
        {"template": "collect", "seed": 2**63},
        "seed: expected a whole number of 64 bits",
    ),
    ("start_task", {"template": "collect", "environment": "faulty"}, "has no template 'collect'"),
    (
        "step",
        {"actions": "click"},
        "expected a list of actions such as [{'type': 'screenshot'}], got 'click'",
    ),
    (
        "step",
        {"actions": [3]},
        "actions[0]: expected an object such as {'type': 'screenshot'}, got 3",
    ),
    ("step", {"actions": [{"type": "clik"}]}, "Did you mean 'click'?"),
    ("step", {"actions": [{"x": 1, "y": 2}]}, "actions[0]: unknown type None."),
    ("step", {"actions": [{"type": "wait", "time": 1}, {"type": "click"}]}, "actions[1]: 'click'"),
    ("step", {"actions": [{"type": "click", "x": 1}]}, "y"),
    ("step", {"actions": [{"type": "click", "x": "left", "y": 1}]}, "x"),
    ("step", {"actions": [{"type": "wait", "time": 99_999}]}, "30000"),
    ("step", {"actions": [{"type": "wait", "tiem": 9}]}, "Did you mean 'time'?"),
    ("step", {"actions": [{"type": "drag", "path": [{"x": 1, "y": 1}]}]}, "path"),
    ("step", {"actions": [{"type": "scroll", "scroll_y": 5}]}, "is not an action of environment"),
    ("step", {"observe": "everything"}, "'everything' is not one of full, changes"),
    ("step", {"actons": []}, "Did you mean 'actions'?"),
    ("act", {}, "'type' is required"),
    ("act", {"type": ""}, "unknown type ''"),
    (
        "act",
        {"type": "press", "keys": "ctrl, a"},
        "keys: expected a list such as ['ctrl', 'a'], got",
    ),
    ("act", {"type": "press"}, "keys"),
    ("screenshot", {"format": "gif"}, "'gif' is not one of jpeg, png"),
    ("response", {}, "'answer' is required"),
    ("response", {"answer": None}, "'answer' is required"),
    ("response", {"answer": 3}, "answer: expected a string such as '3', got 3"),
    ("response", {"answer": ["x"]}, "answer: expected a string, got ['x']"),
    ("response", {"answer": "x" * 1_048_577}, "the limit is 1048576"),
    ("add_note", {"text": "x" * 1_048_577}, "1048576"),
    ("task_status", {"verbose": True}, "there is no argument 'verbose'"),
]


async def test_wrong_arguments_are_named_and_leave_the_session_as_it_was(peer: Peer) -> None:
    """Each kind of mistake is an error that says what to write, and nothing has happened."""
    task = await peer.start("collect", marker="wrong", wanted=["tea"])
    begins = {"list_tasks", "start_task"}
    for tool, given, words in WRONG:
        arguments = given if tool in begins else {**given, "session": task.session}
        told = await peer.error(tool, **arguments)
        assert words in told, (tool, str(given)[:80], told)
        assert "x" * 200 not in told, "what was given is clipped"
        assert "failed inside the server" not in told
    for tool in ("step", "act", "task_status", "count_notes"):
        told = await peer.error(tool, session=7, **({"type": "wait"} if tool == "act" else {}))
        assert "session: expected a string" in told
    status = await peer.status(task.session)
    assert (status["state"], status["steps"]) == ("open", 0)
    await peer.ok("act", session=task.session, type="type", text="tea", enter_after=True)
    graded = await peer.ok("response", session=task.session, answer="done")
    assert graded.structured["reward"] == 1.0
    assert [s.kind for s in (await peer.record(task)).steps] == ["act", "response"]


async def test_null_and_empty_count_as_absent_for_what_is_optional(peer: Peer) -> None:
    """Frameworks that fill in every property of a schema reach the same as those that do not."""
    empty: dict[str, Any] = {"environment": None, "filter": "", "offset": None}
    assert (await peer.ok("list_tasks", **empty)).structured["total"] == 2
    begun = await peer.ok(
        "start_task", task="", template="collect", arguments=None, environment="", context=None,
        seed=None,
    )  # fmt: skip
    session = begun.structured["session"]
    looked = await peer.ok("step", session=session, actions=None, observe="")
    assert "marker=none clicks=[] notes=[]" in looked.text
    assert (await peer.ok("screenshot", session=session, format="")).mime_type == "image/jpeg"
    graded = await peer.ok("response", session=session, answer="")
    assert graded.structured["reward"] == 0.0


@pytest.mark.long
async def test_an_unknown_session_and_anothers_session_give_the_same_text(
    tmp_path: Path,
) -> None:
    """No error tells whether an id exists, and none shows one."""
    options = ("--token", "ann=ann-secret-1", "--token", "ben=ben-secret-2")
    with http_server(tmp_path, (BOARD,), *options) as server:
        for era in (LEGACY, MODERN):
            async with (
                http_peer(server, era=era, token="ann-secret-1") as ann,
                http_peer(server, era=era, token="ben-secret-2") as ben,
            ):
                task = await ann.start("collect", marker="hers", wanted=["tea"])
                unknown = "sess-" + "0" * 32
                for tool, more in (
                    ("step", {}), ("act", {"type": "wait", "time": 0}), ("screenshot", {}),
                    ("response", {"answer": "done"}), ("task_status", {}), ("cancel_task", {}),
                    ("add_note", {"text": "x"}),
                ):  # fmt: skip
                    told = await ben.error(tool, session=task.session, **more)
                    assert told == await ben.error(tool, session=unknown, **more)
                    assert told.startswith("There is no such session.")
                for what in ("trajectory", "screenshot"):
                    with pytest.raises(MCPError, match="Resource not found"):
                        await ben.client.read_resource(f"hud://sessions/{task.session}/{what}")
                if era == LEGACY:
                    assert await ben.error("step") == "No session yet. Call start_task first."
                await ann.ok("act", session=task.session, type="type", text="tea", enter_after=True)
                graded = await ann.ok("response", session=task.session, answer="done")
                assert graded.structured["reward"] == 1.0
                told = await ben.error("response", session=task.session, answer="done")
                assert told.startswith("There is no such session.")
                record = await ann.record(task)
                assert [s.kind for s in record.steps] == ["act", "response"]
        # Without a token, or with another one, nothing is answered at all.
        for token in (None, "ann-secret-2"):
            assert await refused_status(server, token) == 401
        assert "sess-" not in server.logged()


async def test_a_modern_request_cannot_borrow_a_legacy_connections_session(
    server: HttpServer,
) -> None:
    """The Mcp-Session-Id header means nothing on a 2026-era request."""
    async with raw_http(server.url, LEGACY) as owner, raw_http(server.url, MODERN) as other:
        await owner.call("start_task", template="collect", arguments={"marker": "owned"})
        assert "marker=owned" in (await owner.call("step"))["content"][0]["text"]
        assert owner.session_id is not None
        stolen = await other.request(
            "tools/call", {"name": "step", "arguments": {}}, **{"mcp-session-id": owner.session_id}
        )
        assert stolen["result"]["isError"]
        assert "Pass `session`" in stolen["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_web_page_elsewhere_cannot_reach_a_loopback_server(
    server: HttpServer, era: str
) -> None:
    """A foreign Host or Origin is refused before anything is started."""
    async with raw_http(server.url, era) as raw:
        before = len(await load_all(server.store, template="collect"))
        call = {"name": "start_task", "arguments": {"template": "collect"}}
        for headers, status in (
            ({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403),
        ):  # fmt: skip
            body, sent = raw.message("tools/call", call)
            reply = await raw.web.post(server.url, json=body, headers={**sent, **headers})
            assert reply.status_code == status
        assert len(await load_all(server.store, template="collect")) == before


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_page_of_an_accepted_origin_reads_answers(server: HttpServer, era: str) -> None:
    """A client in a browser asks first whether it may; a page elsewhere may not."""
    ask = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-method"}
    async with raw_http(server.url, era) as raw:
        for origin, status in (("http://localhost:6274", 200), ("https://evil.example", 400)):
            told = await raw.web.options(server.url, headers={**ask, "origin": origin})
            assert told.status_code == status
            allowed = told.headers.get("access-control-allow-origin")
            assert allowed == (origin if status == 200 else None)
        body, sent = raw.message("tools/list", {})
        origin = "http://127.0.0.1:6274"
        reply = await raw.web.post(server.url, json=body, headers={**sent, "origin": origin})
        assert reply.status_code == 200
        assert reply.headers["access-control-allow-origin"] == origin
        assert "mcp-session-id" in reply.headers["access-control-expose-headers"].lower()


async def test_a_stream_that_a_client_resumes_begins_anew(server: HttpServer) -> None:
    """No event has an id here; in the newer protocol there is nothing to resume."""
    async with raw_http(server.url, LEGACY) as raw:
        _, sent = raw.message("ping", {})
        headers = {**sent, "accept": "text/event-stream", "last-event-id": "of-another-server"}
        async with raw.web.stream("GET", server.url, headers=headers) as stream:
            assert stream.status_code == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
    async with raw_http(server.url, MODERN) as raw:
        _, sent = raw.message("ping", {})
        refused = await raw.web.get(server.url, headers={**sent, "last-event-id": "1"})
        assert refused.status_code == 405
        assert refused.headers["allow"] == "POST"


async def test_deleting_a_legacy_http_session_leaves_its_task(server: HttpServer) -> None:
    """DELETE ends the connection; the task goes on under its id from a new client of any era."""
    async with raw_http(server.url, LEGACY) as raw:
        begun = await raw.call("start_task", template="collect", arguments={"wanted": ["tea"]})
        session = begun["structuredContent"]["session"]
        await raw.call("act", type="type", text="tea", enter_after=True)
        headers = {"mcp-session-id": raw.session_id or ""}
        deleted = await raw.web.delete(server.url, headers=headers)
        assert deleted.status_code == 200
    for era in (LEGACY, MODERN):
        async with http_peer(server, era=era) as peer:
            looked = await peer.ok("step", session=session)
            assert "notes=['tea']" in looked.text
    async with http_peer(server, era=LEGACY) as peer:
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 1.0


async def test_a_refused_action_says_which_and_what_is_true_now(peer: Peer) -> None:
    """What came before it stands, what came after did not happen, and the session lives on."""
    task = await peer.start("collect", marker="refused")
    for name, words in (
        ("refuse", "actions[1]: custom failed: the board says no The 2 after it were not"),
        ("raise", "ValueError: the board's own bug"),
    ):
        actions = [
            {"type": "type", "text": "a"},
            {"type": "custom", "action": name},
            {"type": "type", "text": "b"},
            {"type": "type", "text": "c"},
        ]
        told = await peer.call("step", session=task.session, actions=actions)
        assert told.is_error
        assert words in told.text, told.text
    last = await peer.ok("act", session=task.session, type="press", keys=["enter"])
    assert "notes=['aa']" in last.text
    record = await peer.record(task)
    assert [s.performed for s in record.steps] == [1, 1, 1]
    assert "the board says no" in (record.steps[0].error or "")
    assert "the board's own bug" in (record.steps[1].error or "")
    await peer.ok("cancel_task", session=task.session)


@pytest.mark.parametrize("how", ["break", "break_later"])
async def test_a_world_that_breaks_comes_back_once_and_disturbs_no_other(
    peer: Peer, how: str
) -> None:
    """The client is told in words; the same again is the agent's doing, and is graded 0."""
    beside = await peer.start("collect", marker="beside")
    task = await peer.start("collect", marker="broken")
    await peer.ok("act", session=task.session, type="type", text="kept")
    actions = [{"type": "type", "text": "a"}, {"type": "custom", "action": how}]
    told = await peer.error("step", session=task.session, actions=actions)
    assert "The world of this session died: The board fell off the wall." in told
    assert "What this call did is undone" in told
    status = await peer.ok("task_status", session=task.session)
    assert "open, 2 steps" in status.text
    assert "typed='kept'" in (await peer.ok("step", session=task.session)).text
    for _ in range(2):
        told = await peer.error("step", session=task.session, actions=actions)
    assert "by its agent's doing: Its world died a second time of the same" in told
    receipt = await peer.ended(task.session)
    assert (receipt["outcome"], receipt["reward"]) == ("graded", 0.0)
    for tool, more in (("step", {}), ("response", {"answer": "done"})):
        told = await peer.error(tool, session=task.session, **more)
        assert re.match(r"This session ended at \d\d:\d\d:\d\d UTC by its agent's doing", told)
    record = await peer.record(task)
    assert (record.outcome, record.reward, record.cause) == ("graded", 0.0, "agent")
    assert [s.performed for s in record.steps] == [1, 0, 0, 0, 0]
    assert [s.undone for s in record.steps] == [False, True, False, True, True]
    assert "fell off the wall" in (record.steps[1].error or "")
    assert "marker=beside" in (await peer.ok("step", session=beside.session)).text
    await peer.ok("cancel_task", session=beside.session)


@pytest.mark.long
async def test_pipelined_calls_on_one_session_keep_their_order_on_stdio(tmp_path: Path) -> None:
    """Calls sent without waiting are performed one after the other, in the order of arrival."""
    letters = "abcdefghijklmnopqrst"
    async with raw_stdio(tmp_path, (BOARD,)) as raw:
        await raw.hello()
        begun = await raw.call("start_task", template="collect", arguments={"wanted": [letters]})
        session = begun["structuredContent"]["session"]
        for letter in letters:
            await raw.post("act", {"session": session, "type": "type", "text": letter})
        await raw.post("act", {"session": session, "type": "press", "keys": ["enter"]})
        response = await raw.post("response", {"session": session, "answer": "done"})
        late = await raw.post("act", {"session": session, "type": "type", "text": "late"})
        graded = (await raw.answer(response))["result"]
        assert graded["structuredContent"]["reward"] == 1.0
        refused = (await raw.answer(late))["result"]
        assert refused["isError"]
        typed = [i for i in raw.order if i <= response]
        assert typed == sorted(typed)
        trajectory = begun["_meta"]["hud-mcp/start"]["trajectory"]
    record = await load_when(raw.store, trajectory, lambda r: r.outcome is not None)
    assert [s.actions[0].get("text") for s in record.steps] == [*letters, None, "done"]
    assert [s.index for s in record.steps] == list(range(22))


async def test_concurrent_calls_on_one_session_are_performed_one_at_a_time(peer: Peer) -> None:
    """Twenty at once are all answered and each performed once; the world never sees two."""
    task = await peer.start("collect", marker="crowd")
    seen: list[str] = []

    async def act(letter: str) -> None:
        action = {"type": "type", "text": letter}
        actions = [action, {"type": "wait", "time": 1}]
        seen.append((await peer.ok("step", session=task.session, actions=actions)).text)

    async with anyio.create_task_group() as group:
        for letter in "abcdefghijklmnopqrst":
            group.start_soon(act, letter)
    assert len(set(seen)) == 20, "each saw another state"
    record = await peer.record(task)
    assert [s.index for s in record.steps] == list(range(20))
    assert sorted(str(s.actions[0]["text"]) for s in record.steps) == list("abcdefghijklmnopqrst")
    final = (await peer.ok("step", session=task.session)).text
    assert sorted(final.partition("typed='")[2].strip("'")) == list("abcdefghijklmnopqrst")
    await peer.ok("cancel_task", session=task.session)


async def test_no_transport_holds_a_reply_back(peer: Peer) -> None:
    """A call that does nothing is answered at once: no buffer or timer waits for more.

    Either would hold back each of them, so that one is enough where the machine is busy.
    """
    task = await peer.start("collect")
    took: list[float] = []
    while len(took) < 100 and min(took, default=1) >= 0.03:  # the machine itself may be busy
        began = time.monotonic()
        await peer.status(task.session)
        took.append(time.monotonic() - began)
    assert min(took) < 0.03, took
    await peer.ok("cancel_task", session=task.session)


async def test_a_call_cancelled_in_the_middle_leaves_a_session_that_goes_on(
    peer: Peer, gates: Gates
) -> None:
    """What was performed is recorded, the rest did not happen, and the next call runs at once."""
    gate, beside = gates("cancelled"), await peer.start("collect", marker="beside")
    task = await peer.start("collect", marker="cut", wanted=["ac"])
    actions = [{"type": "type", "text": "a"}, gate.hold(), {"type": "type", "text": "b"}]
    async with anyio.create_task_group() as group:

        async def step() -> None:
            await peer.call("step", session=task.session, actions=actions)

        group.start_soon(step)
        await gate.arrived()
        group.cancel_scope.cancel()
    actions = [{"type": "type", "text": "c", "enter_after": True}]
    with anyio.fail_after(PATIENCE_S):
        after = await peer.ok("step", session=task.session, actions=actions)
    assert "notes=['ac']" in after.text
    graded = await peer.ok("response", session=task.session, answer="done")
    assert graded.structured["reward"] == 1.0
    record = await peer.record(task)
    assert [(s.performed, s.error) for s in record.steps] == [
        (1, "stopped after 1 of 3 actions"), (1, None), (1, None),
    ]  # fmt: skip
    assert "marker=beside" in (await peer.ok("step", session=beside.session)).text
    await peer.ok("cancel_task", session=beside.session)


async def test_a_call_cancelled_while_it_waits_is_not_performed(peer: Peer, gates: Gates) -> None:
    """A queued call that its client gives up leaves no trace in the world or the record."""
    gate = gates("queued")
    task = await peer.start("collect", marker="queue")
    async with anyio.create_task_group() as holders:

        async def hold() -> None:
            await peer.ok("step", session=task.session, actions=[gate.hold()])

        holders.start_soon(hold)
        await gate.arrived()
        with anyio.move_on_after(0.2):
            await peer.call("act", session=task.session, type="type", text="given up")
        for _ in range(3):  # over HTTP, word of the cancellation is a request of its own
            await peer.ok("task_status", session=task.session)
        gate.open()
    last = await peer.ok("act", session=task.session, type="type", text="next")
    assert "typed='next'" in last.text
    record = await peer.record(task)
    assert [s.actions[0]["type"] for s in record.steps] == ["custom", "type"]
    await peer.ok("cancel_task", session=task.session)


async def test_a_start_that_is_cancelled_leaves_nothing_but_its_record(
    peer: Peer, gates: Gates
) -> None:
    """The half-made session ends as cancelled, and holds no place."""
    gate = gates("start")
    arguments = {"entered": gate.entered, "gate": gate.path}
    async with anyio.create_task_group() as group:

        async def begin() -> None:
            await peer.call("start_task", template="gated_start", arguments=arguments)

        group.start_soon(begin)
        await gate.arrived()
        group.cancel_scope.cancel()

    async def ended() -> list[Trajectory]:
        records = await load_all(peer.store, template="gated_start")
        return [r for r in records if r.task.args == arguments and r.outcome is not None]

    records = await until(ended)
    assert [r.outcome for r in records] == ["cancelled"]
    task = await peer.start("total")
    assert (await peer.ok("response", session=task.session, answer="5")).structured["reward"] == 1.0


async def refused_status(server: HttpServer, token: str | None) -> int:
    """The HTTP status of a request without the right token."""
    headers = {"accept": "application/json, text/event-stream"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    async with httpx.AsyncClient() as web:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        return (await web.post(server.url, json=body, headers=headers)).status_code

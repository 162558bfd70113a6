"""What an agent's model said and used comes with its calls, and shows to nobody but people."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from peers import (
    BOARD,
    LEGACY,
    MODERN,
    PATIENCE_S,
    WAYS,
    Held,
    Peer,
    Reply,
    Way,
    http_peer,
    http_server,
    read_reply,
    stdio_peer,
)

from hud_mcp.errors import InvalidTask
from hud_mcp.server.core_tool import read_turns
from hud_mcp.session.caller import session_token
from hud_mcp.store import Store
from hud_mcp.values.masking import MASK
from hud_mcp.values.model_turn import ModelTurn, RecordedTurn

pytestmark = pytest.mark.anyio

TOKEN = "the-token-of-a-runner"  # a test's
MODEL = "hud-mcp/model"
KEY = "sk-ant-api03-" + "aB3dE5gH7jK9" * 4
SECRET = "THE-MODEL-THOUGHT-THIS"
TURN: dict[str, Any] = {
    "model": "anthropic:model-a",
    "text": "I look first.",
    "reasoning": SECRET,
    "calls": [{"name": "step", "arguments": {"actions": []}, "id": "call_1"}],
    "usage": {"input": 1200, "output": 34, "cached": 1000},
    "cost_usd": 0.0042,
    "stop_reason": "tool_use",
    "started_at": "2026-01-02T03:04:05Z",
    "ended_at": "2026-01-02T03:04:07.500Z",
}


@pytest.fixture
def peer_on_board(peers: dict[Way, Peer]) -> Peer:
    """A shared client of a server with the board, over stdio."""
    return peers[WAYS[0]]


async def call(peer: Peer, tool: str, meta: dict[str, Any], /, **arguments: Any) -> Reply:
    """Call a tool with something beside its arguments."""
    with anyio.fail_after(PATIENCE_S):
        return read_reply(await peer.client.call_tool(tool, arguments, meta=meta))


async def turns_of(peer: Peer, task: Held) -> list[RecordedTurn]:
    """What the store has of a session's model, read as another process does."""
    reader = Store(peer.store)
    try:
        return await reader.load_turns(task.trajectory)
    finally:
        await reader.close()


def at(second: int, **fields: Any) -> dict[str, Any]:
    """Another turn."""
    return {**TURN, "ended_at": f"2026-01-02T03:05:{second:02}Z", **fields}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_turn_comes_with_the_call_that_it_makes(tmp_path: Path, era: str) -> None:
    """Of every tool that names a session; it stands before the steps that it led to."""
    async with stdio_peer(tmp_path, [BOARD], era=era) as peer:
        begun = await call(peer, "start_task", {MODEL: at(1)}, template="collect",
                           arguments={"marker": "x"})  # fmt: skip
        session = begun.structured["session"]
        task = Held(session, begun.meta["hud-mcp/start"]["trajectory"], "")
        done = await call(peer, "step", {MODEL: at(2)}, session=session)
        assert not done.is_error
        assert MODEL not in done.meta
        await peer.ok("step", session=session)
        await call(peer, "count_notes", {MODEL: at(3)}, session=session)
        await call(peer, "task_status", {MODEL: [at(4), at(5)]}, session=session)
        await call(peer, "response", {MODEL: at(6)}, session=session, answer="x")
        await call(peer, "task_status", {MODEL: at(7)}, session=session)
        turns = await turns_of(peer, task)
        record = await peer.record(task)
    led = [(turn.ended_at.second, list(turn.steps)) for turn in turns]
    assert led == [(1, []), (2, [0, 1]), (3, [2]), (4, []), (5, []), (6, [3]), (7, [])]
    assert [step.kind for step in record.steps] == ["step", "step", "tool", "response"]
    assert turns[0].reasoning == SECRET
    assert turns[0].calls[0].id == "call_1"


def test_a_turn_that_is_nested_too_deeply_is_refused() -> None:
    """Bare clients can send what the official one cannot."""
    value: dict[str, Any] = {}
    for _ in range(600):
        value = {"a": value}
    with pytest.raises(InvalidTask, match="nested too deeply"):
        read_turns({**TURN, "settings": value})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nonsense", "No turn of a model"),
        ({}, "'started_at' is required"),
        (
            {**TURN, "thoughts": "x"},
            "there is no argument 'thoughts'. It takes: model, settings, text",
        ),
        (
            {**TURN, "usage": {"input": -1}},
            "usage.input: expected a whole number of at least 0, got -1",
        ),
        ([TURN, 5], "turn 1: "),
        ([TURN] * 101, "at most 100 are taken"),
        ({**TURN, "text": "x" * 1_100_000}, "at most 1048576 are read"),
        ({**TURN, "started_at": "0001-01-01T00:00:00+14:00"}, "'started_at' is in the year 1."),
        ({**TURN, "ended_at": "2026-01-04T03:04:05Z"}, "'ended_at' is 172800 s after 'started_at'"),
        ({**TURN, "started_at": KEY}, "started_at: expected a time such as '2026-03-14T09:30:00Z'"),
        ({**TURN, KEY: 1}, "there is no argument '[masked]'"),
    ],
)
async def test_a_turn_that_cannot_be_read_costs_the_call_nothing(
    peer_on_board: Peer, given: Any, said: str
) -> None:
    """The step is performed; its reply says, to programs, what is wrong with the turn."""
    task = await peer_on_board.start("collect", marker="x")
    done = await call(peer_on_board, "step", {MODEL: given}, session=task.session)
    assert not done.is_error
    assert done.step["steps"] == 1
    assert said in done.meta[MODEL]["error"]
    assert said not in done.text
    assert KEY not in str(done.raw)
    assert await turns_of(peer_on_board, task) == []


async def test_what_is_null_in_a_turn_is_absent(peer_on_board: Peer) -> None:
    """Programs fill in every field of a row; a time is needed."""
    task = await peer_on_board.start("collect", marker="x")
    empty = {name: None for name in ModelTurn.model_fields if not name.endswith("_at")}
    call_of = {"name": "step", "arguments": None, "id": None}
    for given in ({**TURN, **empty}, at(9, calls=[call_of], usage={"input": None})):
        done = await call(peer_on_board, "task_status", {MODEL: given}, session=task.session)
        assert MODEL not in done.meta
    first, second = await turns_of(peer_on_board, task)
    assert (first.text, first.calls, first.usage.input) == (None, (), None)
    assert second.calls[0].arguments == {}


@pytest.mark.long
async def test_a_turn_of_no_session_is_told(tmp_path: Path) -> None:
    """What lists has no session, and does its work; an unknown session is refused as ever."""
    async with stdio_peer(tmp_path, [BOARD]) as peer:
        for tool, given in (("list_tasks", {}), ("task_status", {"list": True})):
            listed = await call(peer, tool, {MODEL: TURN}, **given)
            assert not listed.is_error, listed.text
            assert "this call is of no session" in listed.meta[MODEL]["error"]
        refused = await call(peer, "step", {MODEL: TURN}, session="sess-" + "0" * 32)
        assert refused.is_error
        assert "There is no such session" in refused.text


@pytest.mark.long
async def test_turns_that_cannot_be_read_fill_no_log(tmp_path: Path) -> None:
    """Their senders are told. A log that a host does not read would hold up the server."""
    with http_server(tmp_path, [BOARD]) as server:
        async with http_peer(server) as peer:
            before = len(server.logged())
            for _ in range(3):
                listed = await call(peer, "list_tasks", {MODEL: {"started_at": "NO TIME"}})
                assert "NO TIME" in listed.meta[MODEL]["error"]
        assert "NO TIME" not in server.logged()[before:]


async def test_a_huge_turn_is_cut_and_the_step_is_done(peer_on_board: Peer) -> None:
    """Its figures are whole; the reply says nothing of it to anybody."""
    task = await peer_on_board.start("collect", marker="x")
    huge = {**TURN, "reasoning": "long " * 200_000}
    done = await call(peer_on_board, "step", {MODEL: huge}, session=task.session)
    assert not done.is_error
    assert MODEL not in done.meta
    (turn,) = await turns_of(peer_on_board, task)
    assert turn.reasoning is not None
    assert len(turn.reasoning) < 300_000
    assert turn.reasoning.endswith("more characters]")
    assert turn.usage.input == 1200


async def test_a_call_that_is_repeated_records_its_turn_once(peer_on_board: Peer) -> None:
    """As by a program whose reply was lost: the step is done once, and thought of once."""
    task = await peer_on_board.start("collect", marker="x")
    for _ in range(2):
        await call(peer_on_board, "step", {MODEL: TURN}, session=task.session, after_step=0)
    assert len(await turns_of(peer_on_board, task)) == 1
    assert len((await peer_on_board.record(task)).steps) == 1


async def test_a_key_in_a_turn_is_masked_and_the_action_keeps_it(peer_on_board: Peer) -> None:
    """What the environment was given is what a replay repeats."""
    task = await peer_on_board.start("collect", marker="x")
    said = {**TURN, "calls": [{"name": "add_note", "arguments": {"text": KEY}}]}
    await call(peer_on_board, "add_note", {MODEL: said}, session=task.session, text=KEY)
    (turn,) = await turns_of(peer_on_board, task)
    assert turn.calls[0].arguments == {"text": MASK}
    (step,) = (await peer_on_board.record(task)).steps
    assert step.actions[0]["args"] == {"text": KEY}


@pytest.mark.long
async def test_only_a_run_s_agent_has_the_tool_that_notes(tmp_path: Path) -> None:
    """It takes a turn that made no call, also after the end; to others it does not exist."""
    with http_server(tmp_path, [BOARD], "--token", TOKEN) as server:
        async with http_peer(server, token=TOKEN) as runner:
            task = await runner.start("collect", marker="x")
            assert "note" not in [t.name for t in (await runner.client.list_tools()).tools]
            with pytest.raises(MCPError, match="Unknown tool: note"):
                await runner.call("note", session=task.session, turn=TURN)
            credential = session_token(TOKEN, task.session)
            async with http_peer(server, token=credential) as agent:
                assert "note" in [t.name for t in (await agent.client.list_tools()).tools]
                assert (await agent.ok("note", turn=at(1))).structured == {"recorded": 1}
                said = await agent.error("note", turn={"text": "x"})
                assert said.startswith("No turn of a model: ")
                assert "'started_at' is required" in said
                await call(agent, "step", {MODEL: at(2)})
                await agent.ok("response", answer="x")
                await agent.ok("note", turn=at(3))
            turns = await turns_of(runner, task)
    assert [(t.ended_at.second, list(t.steps)) for t in turns] == [(1, []), (2, [0, 1]), (3, [])]


@pytest.mark.long
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_nothing_of_the_model_s_side_reaches_an_agent_or_another_caller(
    tmp_path: Path, era: str
) -> None:
    """Not by a tool, not by a resource, not on the live page that an agent's user may open."""
    with http_server(tmp_path, [BOARD], "--token", TOKEN) as server:
        async with http_peer(server, token=TOKEN) as runner:
            task = await runner.start("collect", marker="x")
            credential = session_token(TOKEN, task.session)
            async with http_peer(server, token=credential, era=era) as agent:
                seen = [await call(agent, "step", {MODEL: TURN})]
                seen += [await agent.ok(name) for name in ("step", "task_status")]
                uri = f"hud://sessions/{task.session}/trajectory"
                read = await agent.client.read_resource(uri)
                seen_text = [str(each.raw) for each in seen] + [read.model_dump_json()]
                seen_text.append((await agent.ok("response", answer="x")).raw.model_dump_json())
            seen_text.append((await runner.client.read_resource(uri)).model_dump_json())
            assert len(await turns_of(runner, task)) == 1
    for text in seen_text:
        assert SECRET not in text
        assert "anthropic:model-a" not in text
        assert "0.0042" not in text

"""Answers that come twice, at once, late, or from clients that have left."""

import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from peers import (
    LEGACY,
    MODERN,
    Gate,
    HttpServer,
    Peer,
    http_peer,
    load_when,
    raw_http,
)

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]


async def test_the_same_answer_again_gives_the_same_receipt_and_another_is_refused(
    peer: Peer, gates: Gates
) -> None:
    """One grading, whatever comes after it; the refused answer changes nothing."""
    gate = gates("twice")
    gate.open()
    gradings = gate.folder / "gradings"
    task = await peer.start("gated", entered=gate.entered, gate=gate.path, gradings=str(gradings))
    first = await peer.ok("response", session=task.session, answer="right")
    again = await peer.ok("response", session=task.session, answer="right")
    assert again.structured == first.structured
    told = await peer.error("response", session=task.session, answer="wrong")
    assert re.match(r"This session was graded at \d\d:\d\d:\d\d UTC; its grade stands", told)
    status = await peer.status(task.session)
    assert status["receipt"]["reward"] == 1.0
    assert gradings.read_text() == "right\n"
    record = await peer.record(task)
    assert [s.kind for s in record.steps] == ["response"]


async def test_twenty_identical_answers_at_once_are_graded_once(peer: Peer, gates: Gates) -> None:
    """All of them get the one receipt; another answer among them is refused."""
    gate = gates("storm")
    gradings = gate.folder / "gradings"
    task = await peer.start("gated", entered=gate.entered, gate=gate.path, gradings=str(gradings))
    receipts: list[Any] = []

    async def answer() -> None:
        reply = await peer.ok("response", session=task.session, answer="right")
        receipts.append(reply.structured)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(answer)
        await gate.arrived()
        told = await peer.error("response", session=task.session, answer="wrong")
        assert re.match(r"An answer was submitted at \d\d:\d\d:\d\d UTC and is being graded", told)
        told = await peer.error("act", session=task.session, type="type", text="late")
        assert "is being graded" in told
        told = await peer.error("cancel_task", session=task.session)
        assert told == "The task is being graded; it ends with its grade."
        assert (await peer.status(task.session))["state"] == "grading"
        gate.open()
    assert len(receipts) == 20
    assert all(r == receipts[0] for r in receipts)
    assert receipts[0]["reward"] == 1.0
    assert gradings.read_text() == "right\n"
    record = await peer.record(task)
    assert [s.kind for s in record.steps] == ["response"]


async def test_a_response_that_is_given_up_is_graded_and_its_receipt_kept(
    peer: Peer, gates: Gates
) -> None:
    """Cancelling does not un-submit: task_status and the same answer return the receipt."""
    gate = gates("given-up")
    gradings = gate.folder / "gradings"
    task = await peer.start("gated", entered=gate.entered, gate=gate.path, gradings=str(gradings))
    async with anyio.create_task_group() as group:

        async def answer() -> None:
            await peer.call("response", session=task.session, answer="right")

        group.start_soon(answer)
        await gate.arrived()
        group.cancel_scope.cancel()
    assert (await peer.status(task.session))["state"] == "grading"
    gate.open()
    receipt = await peer.ended(task.session)
    assert receipt["reward"] == 1.0
    again = await peer.ok("response", session=task.session, answer="right")
    assert again.structured["trajectory"] == receipt["trajectory"]
    assert gradings.read_text() == "right\n"


async def test_a_response_behind_a_long_step_counts_although_its_client_left(
    server: HttpServer, gates: Gates
) -> None:
    """An accepted answer waits its turn in the queue, and is graded without its caller."""
    for era in (LEGACY, MODERN):
        gate = gates(f"behind-{era}")
        async with http_peer(server, era=era) as peer:
            task = await peer.start("collect", marker="behind", wanted=["tea"])
            async with anyio.create_task_group() as holders:

                async def hold(peer: Peer = peer, gate: Gate = gate, s: str = task.session) -> None:
                    actions = [gate.hold(), {"type": "type", "text": "tea", "enter_after": True}]
                    await peer.ok("step", session=s, actions=actions)

                holders.start_soon(hold)
                await gate.arrived()
                with anyio.move_on_after(0.2):
                    await peer.call("response", session=task.session, answer="done")
                gate.open()
            receipt = await peer.ended(task.session)
            assert receipt["reward"] == 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_client_that_hangs_up_in_the_middle_can_go_on_later(
    server: HttpServer, gates: Gates, era: str
) -> None:
    """A dropped HTTP connection ends a call at most; the id works from a new connection."""
    gate = gates("hang-up")
    async with raw_http(server.url, era) as raw:
        begun = await raw.call("start_task", template="collect", arguments={"wanted": ["tea"]})
        session = begun["structuredContent"]["session"]
        trajectory = begun["_meta"]["hud-mcp/start"]["trajectory"]
        actions = [
            {"type": "type", "text": "tea"},
            gate.hold(),
            {"type": "press", "keys": ["enter"]},
        ]
        await raw.drop_when(gate, "step", session=session, actions=actions)
    gate.open()
    async with http_peer(server, era=era) as peer:
        looked = await peer.ok("step", session=session)
        if "notes=['tea']" not in looked.text:  # the drop has cut the step off, which it may
            assert "typed='tea'" in looked.text
            await peer.ok("act", session=session, type="press", keys=["enter"])
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 1.0
    record = await load_when(server.store, trajectory, lambda r: r.outcome is not None)
    assert [s.index for s in record.steps] == list(range(len(record.steps)))
    assert record.steps[0].performed in (1, 3)
    assert (record.steps[0].error is None) == (record.steps[0].performed == 3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_client_that_hangs_up_while_grading_finds_its_receipt(
    server: HttpServer, gates: Gates, era: str
) -> None:
    """A dropped response is graded; any later connection that has the id reads the receipt."""
    gate = gates("hang-up-grading")
    gradings = gate.folder / "gradings"
    arguments = {"entered": gate.entered, "gate": gate.path, "gradings": str(gradings)}
    async with raw_http(server.url, era) as raw:
        begun = await raw.call("start_task", template="gated", arguments=arguments)
        session = begun["structuredContent"]["session"]
        await raw.drop_when(gate, "response", session=session, answer="right")
    gate.open()
    async with http_peer(server, era=era) as peer:
        receipt = await peer.ended(session)
        assert receipt["reward"] == 1.0
        again = await peer.ok("response", session=session, answer="right")
        assert again.structured["reward"] == 1.0
    assert gradings.read_text() == "right\n"

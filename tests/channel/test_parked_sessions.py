"""Sessions of the control channel whose connection is gone, and who may resume them."""

import hashlib
from pathlib import Path

import anyio
import pytest
from talking import SESSION, Gates, parked, refusal
from waiting import until
from wire import Served, wire

pytestmark = pytest.mark.anyio


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


async def resume(here: Served, session: str) -> dict:
    """Grade what a session holds, once it is parked."""
    await parked(here, session)
    async with wire(here.port, session_id=session) as peer:
        return await peer.grade("x")


def is_spoken_for(here: Served, session: str) -> bool:
    """Whether a connection speaks for a HUD session."""
    return here.channel._service.hud_sessions._by_id[session].speaker is not None


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

"""A channel's server is killed, and frames come while the next one resumes a task."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from wire import Gate, Wire, process, wire

pytestmark = pytest.mark.anyio

Gates = Callable[[str], Gate]


@pytest.mark.long
async def test_a_grade_that_is_asked_for_in_the_middle_waits_and_stands(
    tmp_path: Path, gate: Gates
) -> None:
    """Two servers die, the second in the middle; the third grades once, the beat goes on."""
    store, setup, tally = tmp_path / "s.sqlite3", gate("setup"), tmp_path / "tally"
    peer = await start_and_kill(store, setup, tally=str(tally))
    with process(store) as second:
        async with wire(second.port, session_id=peer.session) as again:
            again.ask("tasks.grade", answer="x")
            await setup.reached()
            second.kill()
    closed(setup)
    with process(store) as third:
        async with wire(third.port, session_id=peer.session) as again:
            grade = again.ask("tasks.grade", answer="x")
            await setup.reached()
            beat = again.ask("hello", session_id=peer.session)
            assert (await again.result(beat))["session_id"] == peer.session
            assert grade not in again.replies
            setup.open()
            assert (await again.result(grade))["score"] == 0.5
            assert (await again.grade("x"))["score"] == 0.5
            assert (await again.refused("tasks.grade", answer="y")).code == -32000
        assert "Traceback" not in third.logged()
    assert tally.read_text() == "x\n"


@pytest.mark.long
async def test_a_task_that_is_cancelled_in_the_middle_ends_as_cancelled(
    tmp_path: Path, gate: Gates
) -> None:
    """Once its world is there; another task can be started on the connection."""
    store, setup = tmp_path / "s.sqlite3", gate("setup")
    peer = await start_and_kill(store, setup)
    with process(store) as second:
        async with wire(second.port, session_id=peer.session) as again:
            cancelled = again.ask("tasks.cancel")
            await setup.reached()
            setup.open()
            assert (await again.result(cancelled)) == {"cancelled": True}
            await again.start("ask", word="tea")
            assert (await again.grade("tea"))["score"] == 1.0


@pytest.mark.long
async def test_a_peer_without_an_id_waits_for_the_only_parked_task(
    tmp_path: Path, gate: Gates
) -> None:
    """A blind grade resumes it, and is given after it."""
    store, setup = tmp_path / "s.sqlite3", gate("setup")
    peer = await start_and_kill(store, setup)
    with process(store) as second:
        async with wire(second.port) as blind, wire(second.port, session_id=peer.session) as own:
            grade = blind.ask("tasks.grade", answer="x")
            await setup.reached()
            same = own.ask("tasks.grade", answer="x")
            await anyio.lowlevel.checkpoint()
            setup.open()
            assert (await own.result(same))["score"] == 0.5
            reply = await blind.reply(grade)
            assert reply.get("result", {}).get("score", 0.5) == 0.5


async def start_and_kill(store: Path, setup: Gate, **more: str) -> Wire:
    """Start a task that is then held in its setup, wherever a server resumes it."""
    with process(store) as first:
        setup.open()
        async with wire(first.port) as peer:
            await peer.start("gated", setup=setup.path, **more)
            first.kill()
    closed(setup)
    return peer


def closed(gate: Gate) -> None:
    """Close it again, with nobody there."""
    for suffix in ("open", "reached"):
        Path(f"{gate.path}.{suffix}").unlink(missing_ok=True)

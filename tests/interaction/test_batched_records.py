"""A server that records in batches is killed: a session that may lack steps is lost, not graded."""

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest
from peers import BOARD, Gate
from phoenix import Conversation, Phoenix, act, phoenix
from waiting import until

from hud_mcp.grade import Cause, Outcome
from hud_mcp.record.trajectory import Trajectory

pytestmark = [pytest.mark.anyio]

BOUND_S = 120.0
BATCHED = ("--record", "batched")
NOTES = tuple(f"note {i}" for i in range(40))
MAY_LACK = "the last ones may be missing"


def conversation(bird: Phoenix, count: int, answer: str = "done") -> Conversation:
    """One that writes so many notes."""
    script = [act("type", text=note, enter_after=True) for note in NOTES[:count]]
    return Conversation(bird, "collect", {"wanted": list(NOTES[:count])}, script, answer)


async def told(bird: Phoenix, session: str) -> str:
    """What a caller is told who acts in a session."""
    reply = await bird.call("step", session=session)
    return reply["content"][0]["text"]


def check_order(record: Trajectory, acknowledged: int) -> None:
    """Its rows are the first steps in their order, and no more than were made."""
    assert [step.index for step in record.steps] == list(range(len(record.steps)))
    assert [step.actions[0]["text"] for step in record.steps] == list(NOTES[: len(record.steps)])
    assert len(record.steps) <= acknowledged


@pytest.mark.long
async def test_a_session_that_may_lack_steps_is_lost_wherever_its_server_is_killed(
    tmp_path: Path,
) -> None:
    """After 1 to 40 steps, at once and while others come; never a reward, never resumed."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (BOARD,), *BATCHED) as bird:
            played = [conversation(bird, count) for count in (1, 2, 3, 17, 40)]
            endless = conversation(bird, len(NOTES))
            await endless.start()
            for each in played:
                await each.start()
                for call in each.script:
                    await each.perform(call)
            async with anyio.create_task_group() as group:
                group.start_soon(_act_until_it_dies, bird, endless.session)
                await bird.call("task_status", session=endless.session)
                bird.kill()
                group.cancel_scope.cancel()
            await bird.start()
            for each in played:
                assert MAY_LACK in await told(bird, each.session)
                reply = await bird.call("response", session=each.session, answer="done")
                assert reply["isError"]
                record = await each.record()
                check_order(record, len(each.script))
                assert (record.outcome, record.cause) == (Outcome.LOST, Cause.MACHINE)
                assert record.reward is None
                assert record.record == "batched"


async def _act_until_it_dies(bird: Phoenix, session: str) -> None:
    try:
        while True:
            await bird.call("step", session=session)
    except httpx.TransportError:
        return


@pytest.mark.stress
async def test_nobody_needs_to_ask_for_a_lost_session(tmp_path: Path) -> None:
    """The next server ends it by itself, as lost."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (BOARD,), *BATCHED) as bird:
            each = conversation(bird, 3)
            await each.start()
            for call in each.script:
                await each.perform(call)
            await bird.kill_and_start()

            async def has_ended() -> bool:
                return (await each.record()).outcome is not None

            await until(has_ended)
            assert MAY_LACK in ((await each.record()).error or "")


@pytest.mark.stress
async def test_a_session_without_a_step_is_resumed(tmp_path: Path) -> None:
    """Nothing that its agent was told of can be missing; it goes on as it was begun."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (BOARD,), *BATCHED) as bird:
            each = conversation(bird, 2)
            await each.start()
            await bird.kill_and_start()
            await each.play()
            assert each.receipts[0]["reward"] == 1.0
            assert (await each.record()).record == "batched"


@pytest.mark.long
async def test_nothing_of_an_answered_session_is_lost(
    tmp_path: Path, gates: Callable[[str], Gate]
) -> None:
    """It is killed while it grades: every step is there, and the next server grades it."""
    gate = gates("grade")
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (BOARD,), *BATCHED) as bird:
            graded = conversation(bird, 20)
            await graded.play()
            given = {
                "entered": gate.entered, "gate": gate.path, "gradings": str(tmp_path / "gradings"),
            }  # fmt: skip
            script = [act("type", text=note, enter_after=True) for note in NOTES]
            grading = Conversation(bird, "gated", given, script, "right")
            await grading.start()
            for call in script:
                await grading.perform(call)
            async with anyio.create_task_group() as group:
                group.start_soon(grading.respond)
                await gate.arrived()
                bird.kill()
                gate.open()
                await bird.start()
            for each, count in ((graded, 20), (grading, len(NOTES))):
                record = await each.record()
                check_order(record.model_copy(update={"steps": record.steps[:-1]}), count)
                assert len(record.steps) == count + 1
                assert (record.outcome, record.reward) == (Outcome.GRADED, 1.0)
                assert record.receipt is not None
                assert "recorded in batches" in " ".join(record.receipt.notes)


@pytest.mark.stress
async def test_a_clean_stop_writes_every_step_and_the_next_server_goes_on(tmp_path: Path) -> None:
    """SIGTERM is no crash: the whole session is there, and is graded with its right reward."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, (BOARD,), *BATCHED) as bird:
            each = conversation(bird, 12)
            await each.start()
            for call in each.script[:8]:
                await each.perform(call)
            await anyio.to_thread.run_sync(bird.stop)
            assert len((await each.record()).steps) == 8
            await bird.start()
            await each.play()
            assert each.receipts[0]["reward"] == 1.0
            # It may be lost again: the second server's steps are batched as the first one's were.
            again = conversation(bird, 4)
            await again.start()
            await again.perform(again.script[0])
            await anyio.to_thread.run_sync(bird.stop)
            await bird.start()
            await again.perform(again.script[1])
            await bird.kill_and_start()
            assert MAY_LACK in await told(bird, again.session)

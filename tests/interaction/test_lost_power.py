"""A machine that loses its power takes the last steps of a record along, and no grade."""

import os
from pathlib import Path

import anyio
import pytest
from peers import BOARD
from phoenix import Conversation, Phoenix, act, phoenix
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

BOUND_S = 2 * PATIENCE_S
FRAME_BYTES = 24 + 4096
"""One page in SQLite's write-ahead log, with its header."""


def conversation(bird: Phoenix, steps: int) -> Conversation:
    """A task of so many steps."""
    script = tuple(act("type", text=f"note {i}", enter_after=True) for i in range(steps))
    return Conversation(bird, "collect", {"marker": f"of {steps}"}, script, "done")


def lose_power(bird: Phoenix, frames: int) -> None:
    """Leave a killed server's store as after a loss of power: an end that never reached the disk.

    Args:
        bird: Whose server was killed.
        frames: How many pages of the log's end are lost.
    """
    log = Path(f"{bird.store}-wal")
    os.truncate(log, log.stat().st_size - frames * FRAME_BYTES)
    bird.write("UPDATE servers SET machine = 'the start before'")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("frames", [0, 6])
async def test_unanswered_sessions_are_lost_with_the_power_and_grades_are_not(
    tmp_path: Path, frames: int
) -> None:
    """None goes on from a record that may lack what its agent was told."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, [BOARD]) as bird:
            graded, begun, idle = (conversation(bird, count) for count in (2, 6, 0))
            await idle.start()
            await graded.play()
            await begun.start()
            for call in begun.script:
                await begun.perform(call)
            (before,) = bird.query("SELECT COUNT(*) FROM steps")[0]
            bird.kill()
            lose_power(bird, frames)
            (after,) = bird.query("SELECT COUNT(*) FROM steps")[0]
            assert (before - after > 0) is (frames > 0)
            await bird.start()
            for each in (begun, idle):
                look = await bird.call("task_status", session=each.session)
                text = look["content"][0]["text"]
                assert "lost" in text, text
                assert "Its machine or its server went down" in text, text
                assert (await each.record()).outcome == "lost"
            record = await graded.record()
            assert record.reward == graded.receipts[0]["reward"]
            assert len(record.steps) == len(graded.script) + 1


@pytest.mark.long
async def test_a_killed_server_s_sessions_go_on_where_the_machine_did(tmp_path: Path) -> None:
    """Every step that was told is there, though no disk was waited for."""
    with anyio.fail_after(BOUND_S):
        async with phoenix(tmp_path, [BOARD]) as bird:
            begun = conversation(bird, 6)
            await begun.start()
            for call in begun.script[:5]:
                await begun.perform(call)
            await bird.kill_and_start()
            await begun.perform(begun.script[5])
            assert len((await begun.record()).steps) == 6

"""An evaluation whose worlds die: who it is held against, and what is tried again."""

from pathlib import Path

import pytest
from peers import ENVIRONMENTS, load_all
from runs import finish, rows_of

pytestmark = pytest.mark.anyio

FRAGILE = str(ENVIRONMENTS / "fragile.py")


@pytest.mark.long
async def test_a_world_that_died_between_two_steps_costs_its_agent_nothing(tmp_path: Path) -> None:
    """The step is made again in the world that came back, as where a server died."""
    rows = rows_of("notes", 2, env="fragile", number=6)
    options = ("--agent", "oracle", "--env", FRAGILE, "--max-concurrent", "1")
    status, printed = await finish(tmp_path, rows, *options)
    assert status == 0, printed
    records = await load_all(tmp_path / "store.sqlite3")
    assert [record.reward for record in records] == [1.0, 1.0]
    undone = [step for record in records for step in record.steps if step.undone]
    assert [step.performed for step in undone] == [0]
    assert "The wall was torn down." in (undone[0].error or "")


@pytest.mark.long
async def test_a_world_that_its_agent_ends_twice_is_no_reason_for_another_try(
    tmp_path: Path,
) -> None:
    """It is graded 0.0 by the agent's doing, once, whatever `--retries` says."""
    rows = rows_of("jumps", 1, env="fragile")
    options = ("--agent", "oracle", "--env", FRAGILE, "--retries", "3")
    _status, printed = await finish(tmp_path, rows, *options)
    (record,) = await load_all(tmp_path / "store.sqlite3")
    assert (record.outcome, record.reward, record.cause) == ("graded", 0.0, "agent")
    assert "it is tried again" not in printed
    assert "by the agent's doing: Its world died a second time of the same" in printed, printed

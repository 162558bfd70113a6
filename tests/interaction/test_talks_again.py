"""Conversations that are graded again, or go on after their server was killed."""

from pathlib import Path

import anyio
import pytest
from peers import ENVIRONMENTS, load_all, raw_stdio
from runs import finish, rows_of
from test_regrading import job_of, regrade
from waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TALKING = str(ENVIRONMENTS / "talking.py")


async def test_a_regrade_asks_no_user_again(tmp_path: Path) -> None:
    """The record has the user's turns; the same conversation has the same grade."""
    log = tmp_path / "asked"
    rows = rows_of("costly", 1, env="shop", log=str(log))
    oracle = ("--agent", "oracle", "--env", f"{TALKING}:shop")
    status, printed = await finish(tmp_path, rows, *oracle)
    assert status == 0, printed
    (run,) = await load_all(tmp_path / "store.sqlite3")
    assert run.receipt is not None
    assert run.receipt.reward == 1.0
    assert log.read_text() == "a\nbye\n"
    status, printed = await regrade(tmp_path, job_of(tmp_path))
    assert status == 0, printed
    assert "Graded again: 1 of 1 runs; 0 changed." in printed
    assert log.read_text() == "a\nbye\n"


async def test_a_kill_between_a_message_and_its_reply_costs_nothing(tmp_path: Path) -> None:
    """The user was asked once: its words are in the record before the server dies."""
    log, sources = tmp_path / "asked", [f"{TALKING}:shop"]
    given = {"log": str(log), "holds": True}
    async with raw_stdio(tmp_path, sources) as first:
        await first.hello()
        begun = await first.call("start_task", template="costly", arguments=given)
        session = begun["structuredContent"]["session"]
        await first.post("message_user", {"session": session, "text": "a"})
        await until(Path(f"{log}.asked").exists)
        first.process.kill()
    await anyio.Path(f"{log}.go").touch()
    async with raw_stdio(tmp_path, sources) as second:
        await second.hello()
        told = await second.call("message_user", session=session, text="a")
        assert told["structuredContent"]["reply"] == "You said a."
        last = await second.call("message_user", session=session, text="bye")
        assert last["structuredContent"]["reward"] == 1.0
    assert log.read_text() == "a\nbye\n"

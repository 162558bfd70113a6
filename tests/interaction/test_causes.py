"""Whose doing an end was: the agent's, its operator's, or nobody's."""

import signal
from pathlib import Path

import anyio
import pytest
from peers import (
    BOARD,
    MODERN,
    Peer,
    http_peer,
    http_server,
    load_when,
    stdio_peer,
)
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp.analysis.tries import outcome_class
from hud_mcp.environment import Environment
from hud_mcp.plugins.hud.operating import conclude
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.record.transcript import transcript_text
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Cause, Outcome, cause_of

pytestmark = pytest.mark.anyio


async def test_what_a_client_gives_up_is_the_agents(peer: Peer) -> None:
    """`cancel_task`, over every transport; its receipt and its status say so."""
    task = await peer.start("collect")
    await peer.ok("cancel_task", session=task.session)
    receipt = await peer.ended(task.session)
    assert (receipt["outcome"], receipt["cause"]) == ("cancelled", "agent")
    record = await peer.record(task)
    assert record.cause is Cause.AGENT
    assert "cause        agent" in transcript_text(record)


@pytest.mark.long
async def test_what_idles_while_its_server_runs_is_the_agents(tmp_path: Path) -> None:
    """Idle and total time are what the agent had."""
    async with stdio_peer(tmp_path, (BOARD,), "--limit", "idle_s=0.3") as peer:
        task = await peer.start("collect")
        receipt = await peer.ended(task.session)
        assert (receipt["outcome"], receipt["cause"]) == ("expired", "agent")


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "cause"),
    [(signal.SIGTERM, Cause.OPERATOR), (signal.SIGKILL, Cause.MACHINE)],
    ids=["stopped", "killed"],
)
async def test_what_nobody_could_reach_is_not_the_agents(
    tmp_path: Path, how: signal.Signals, cause: Cause
) -> None:
    """A session whose server was stopped expires by its operator; one whose server died, by none.

    Either is counted as interrupted, and the texts say by whom.
    """
    with http_server(tmp_path, (BOARD,)) as server:
        async with http_peer(server, era=MODERN) as peer:
            task = await peer.start("collect")
            await peer.ok("act", session=task.session, type="type", text="tea")
            server.process.send_signal(how)
            server.process.wait()
    with http_server(tmp_path, (BOARD,), "--limit", "idle_s=0.2") as server:
        record = await load_when(server.store, task.trajectory, lambda r: r.outcome is not None)
        assert (record.outcome, record.cause) == (Outcome.EXPIRED, cause)
        said = "by its operator" if cause is Cause.OPERATOR else "by no doing of the agent's"
        assert f"expired {said}" in transcript_text(record)
        async with http_peer(server, era=MODERN) as peer:
            told = await peer.error("step", session=task.session)
            assert f"UTC, {said}: Its server ended, and nobody went on with it" in told
            status = await peer.ok("task_status", session=task.session)
            assert status.structured["receipt"]["cause"] == cause.value
    summary = TrajectorySummary.model_validate(
        {**record.model_dump(include=set(TrajectorySummary.model_fields)), "step_count": 1}
    )
    assert outcome_class(summary) == "interrupted"


async def test_what_an_operator_closes_or_makes_room_for_is_the_operators(tmp_path: Path) -> None:
    """Without a measurement; and one that nobody acted on, whose place is needed."""
    env = Environment("quiz")

    @env.template(id="ask")
    async def ask():  # noqa: ANN202
        answer = yield "Say yes."
        yield float(answer == "yes")

    sessions = Sessions([env], store=Store(tmp_path / "s.sqlite3"))
    task = Task(env="quiz", template="ask")
    try:
        with anyio.fail_after(PATIENCE_S):
            held = await sessions.start(task, caller=Caller(principal=OPERATOR))
            receipt = await conclude(held)
            assert receipt is not None
            assert (receipt.outcome, receipt.cause) == (Outcome.CANCELLED, Cause.OPERATOR)
            shown = await sessions.start(task, caller=Caller(principal="ann"), provisional=True)
            await sessions.close()
            assert shown.receipt is not None
            assert (shown.receipt.outcome, shown.receipt.cause) == (
                Outcome.EXPIRED,
                Cause.OPERATOR,
            )
    finally:
        await sessions.close()


@each_of("outcome", list(Outcome))
def test_a_receipt_of_before_causes_reads_as_it_was_counted(outcome: Outcome) -> None:
    """It has no cause, says none in words, and is the agent's where it was then."""
    receipt = Receipt.model_validate(
        {
            "trajectory": "traj-1",
            "environment": "quiz",
            "task": "ask-1",
            "template": "ask",
            "outcome": outcome.value,
            "reward": 1.0 if outcome is Outcome.GRADED else None,
            "error": None if outcome is Outcome.GRADED else "It was so.",
            "started_at": "2026-01-02T03:04:05Z",
            "ended_at": "2026-01-02T03:05:05Z",
            "reward_policy": "on_submit",
            "package_version": "0.1.0",
            "task_digest": "0" * 64,
            "environment_digest": "0" * 64,
        }
    )
    assert receipt.cause is None
    assert receipt.said_cause == ""
    theirs = outcome in (Outcome.GRADED, Outcome.CANCELLED, Outcome.EXPIRED)
    assert cause_of(receipt.outcome, receipt.cause) is (Cause.AGENT if theirs else Cause.MACHINE)

"""The calls of servers' tools are counted in the store, on each kind of database."""

from datetime import timedelta
from typing import Any

import pytest
from records import AT, begin, receipt

from hud_mcp.plugins.servers.use import load_use, use_of
from hud_mcp.record.job import Job
from hud_mcp.record.values import REPLY, TrajectoryStep
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

SERVER = {"name": "acme 1", "tokens": 9, "count": 2, "listed": ["look", "add"]}


def call(index: int, tool: str, error: str | None = None, **info: Any) -> TrajectoryStep:
    """A recorded call of a tool."""
    at = AT + timedelta(seconds=index)
    actions = [{"tool": tool, "args": {"error": "x\x00"}}]
    times = {"started_at": at, "ended_at": at}
    return TrajectoryStep(
        index=index, kind="tool", actions=actions, error=error, info=info, **times
    )


async def test_calls_and_errors_are_counted_by_tool(store: Store) -> None:
    """Over the runs that count; a call without a reply is one of a listed tool."""
    job, other = Job(name="a"), Job(name="b")
    for each in (job, other):
        await store.add_job(each)
        await begin(store, f"run-{each.name}", job_id=each.id)
    kept = {REPLY: {"server": SERVER, "content": ["\ud800"]}}
    steps = [
        call(0, "look", **kept),
        call(1, "look", "no such file", **kept),
        call(2, "add", "it died"),
        call(3, "own_tool"),
        call(4, "beyond_the_list", **kept),
    ]
    for step in steps:
        await store.add_step("run-a", step, None)
    await store.end_session("run-a", receipt(reward=1.0))
    use = await load_use(store.database, job.id)
    assert use is not None
    assert use["tools"] == [
        {"name": "look", "calls": 2, "errors": 1},
        {"name": "add", "calls": 1, "errors": 1},
        {"name": "beyond_the_list", "calls": 1, "errors": 0},
    ]
    assert (use["calls"], use["errors"], use["runs"]) == (4, 2, 1)
    assert (use["passed"], use["steps_to_success"]) == (1, 5)
    whole = use_of([await store.load_trajectory("run-a")])
    assert whole is not None
    assert whole["tools"] == use["tools"]
    assert await load_use(store.database, other.id) is None

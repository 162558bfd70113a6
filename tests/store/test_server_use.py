"""The calls of servers' tools are counted in the store, on each kind of database."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from records import AT, begin, receipt
from tables import each_of

from hud_mcp.plugins.servers.against import print_use
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


@each_of(
    "asked, figures, told",
    [
        ([{"model": "m", "tokens": 9, "cost_usd": 0.5}], (1, 9, 0.5), "once: 9 tokens, $0.5000,"),
        ([{"model": "m", "tokens": 9}] * 2, (2, 18, None), "2 times: 18 tokens,"),
        (
            [{"model": "m", "tokens": 9}, {"model": "m", "tokens": None}],
            (2, None, None),
            "2 times,",
        ),
    ],
)
def test_figures_of_a_servers_model_are_told_where_each_request_has_them(
    asked: list[Any], figures: tuple[Any, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown cost is no cost of nothing."""
    steps = [
        call(0, "look", **{REPLY: {"server": SERVER, "asked": [*asked, {"action": "refused"}]}})
    ]
    use = use_of([SimpleNamespace(id="a", steps=steps)])
    assert use is not None
    assert tuple(map(use["sampled"].get, ("requests", "tokens", "cost_usd"))) == figures
    print_use([Job(name="a")], [{**use, "steps_to_success": None}])
    assert f"asked a model {told} apart from" in " ".join(capsys.readouterr().out.split())


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

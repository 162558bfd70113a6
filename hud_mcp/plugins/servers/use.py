"""The use of servers' tools in recorded runs: what was listed and called, and what failed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

import orjson

from hud_mcp.analysis.tries import PASS_REWARD, choose_runs, counting
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.peer import Json
from hud_mcp.record.values import REPLY
from hud_mcp.registry import service

__all__ = ["load_use", "use_of"]

_TOOLS, _NAME_CHARS = 200, 80
"""The most tools of a page, and the length of a name; servers choose both."""


@dataclass(frozen=True)
class _Calls:
    """Some calls of one tool in one run, all of which failed, or none."""

    run: str
    tool: str
    failed: bool
    server: Any
    count: int = 1


def use_of(runs: Iterable[Any]) -> Json | None:
    """Return the use of servers' tools in whole trajectories; None if no server answered."""
    return _use(
        _Calls(
            run.id,
            str(step.actions[0].get("tool")),
            step.error is not None,
            _object(step.info.get(REPLY)).get("server"),
        )
        for run in runs
        for step in getattr(run, "steps", ())  # none of a damaged record
        if step.kind == "tool" and step.actions
    )


async def load_use(database: Any, job_id: str, *, threshold: float = PASS_REWARD) -> Json | None:
    """Return the use of servers' tools in the runs of a job that count; None without any.

    Raises:
        SourceNotFound: There is no such job.
        StoreFailed: The store cannot be read.
    """

    def count(connection: Any) -> list[Any]:
        return libraries.statements.count_calls(connection, job_id)

    rows = await database.read(count)
    if not any(row.server for row in rows):
        return None
    job, _, found = await service("job outlines")(database).load_outline(job_id)
    by_task: dict[str, list[Any]] = {}
    for run in counting(found):
        by_task.setdefault(run.task_id, []).append(run)
    counted = [each for runs in by_task.values() for each in choose_runs(runs, job.group)[0]]
    ids = {run.id for run in counted}
    use = _use(
        _Calls(row.run, row.tool or "", bool(row.failed), _read(row.server), row.calls)
        for row in rows
        if row.run in ids
    )
    if use is None:
        return None
    passed = [r.step_count for r in counted if r.reward is not None and r.reward >= threshold]
    steps = median(passed) if passed else None
    return {**use, "runs": len(counted), "passed": len(passed), "steps_to_success": steps}


def _use(calls: Iterable[_Calls]) -> Json | None:
    known = list(calls)
    servers: dict[str, Json] = {}
    for each in known:
        told = _object(each.server)
        listed, tokens = told.get("listed"), told.get("tokens")
        if not isinstance(listed, list) or not isinstance(tokens, int):
            continue
        name = str(told.get("name"))[:_NAME_CHARS]
        names = [str(tool)[:_NAME_CHARS] for tool in cast("Sequence[Any]", listed)]
        servers.setdefault(name, {"name": name, "tokens": tokens, "tools": names[:_TOOLS]})
    if not servers:
        return None
    tools = {name: [0, 0] for each in servers.values() for name in each["tools"]}
    for each in known:
        # A call without a reply, as of a server that died, is known by its tool alone.
        counts = tools.get(each.tool[:_NAME_CHARS], [0, 0])
        counts[0] += each.count
        counts[1] += each.count * each.failed
    return {
        "servers": list(servers.values()),
        "runs": len({each.run for each in known}),
        "calls": sum(count for count, _ in tools.values()),
        "errors": sum(failed for _, failed in tools.values()),
        "tools": [
            {"name": name, "calls": count, "errors": failed}
            for name, (count, failed) in tools.items()
        ][:_TOOLS],
    }


def _read(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except ValueError:
        return None


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}

"""The use of servers' tools in recorded runs: what was listed and called, and what failed."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, cast

import orjson

from hud_mcp.analysis.tries import PASS_REWARD, choose_runs, counting
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.peer import Json, as_list, as_object
from hud_mcp.record.values import REPLY
from hud_mcp.registry import service

__all__ = ["load_use", "use_of"]

_TOOLS, _NAME_CHARS = 200, 80
"""The most tools of a page, and the length of a name; servers choose both."""


_Calls = tuple[str, str, bool, Json, int]
"""A run, a tool, whether its calls failed, what is kept of their reply, and their number."""


def use_of(runs: Iterable[Any]) -> Json | None:
    """Return the use of servers' tools in whole trajectories; None if no server answered."""
    steps = (
        (run.id, step)
        for run in runs
        for step in getattr(run, "steps", ())  # none of a damaged record
        if step.kind == "tool" and step.actions
    )
    return _use(
        (run, str(step.actions[0].get("tool")), step.error is not None, reply, 1)
        for run, step in steps
        for reply in [as_object(step.info.get(REPLY))]
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
        (row.run, row.tool or "", bool(row.failed), reply, row.calls)
        for row in rows
        if row.run in ids
        for reply in [{"server": _read(row.server), "asked": _read(row.asked)}]
    )
    if use is None:
        return None
    passed = [r.step_count for r in counted if r.reward is not None and r.reward >= threshold]
    steps = median(passed) if passed else None
    return {**use, "runs": len(counted), "passed": len(passed), "steps_to_success": steps}


def _use(calls: Iterable[_Calls]) -> Json | None:
    known = list(calls)
    servers: dict[str, Json] = {}
    for told in (as_object(reply.get("server")) for _, _, _, reply, _ in known):
        listed, tokens, count = (told.get(each) for each in ("listed", "tokens", "count"))
        if isinstance(listed, list) and isinstance(tokens, int) and isinstance(count, int):
            name = str(told.get("name"))[:_NAME_CHARS]
            names = [str(each)[:_NAME_CHARS] for each in cast("Sequence[Any]", listed)[:_TOOLS]]
            facts = {"name": name, "tokens": tokens, "count": count, "tools": names}
            servers.setdefault(name, facts)
    tools = {name: [0, 0] for each in servers.values() for name in each["tools"]}
    for _, tool, failed, reply, count in known:
        # A call without a reply, as of a server that died, is known by its tool alone.
        is_new = bool(reply.get("server")) and len(tools) < _TOOLS
        find = tools.setdefault if is_new else tools.get
        counts = find(tool[:_NAME_CHARS], [0, 0])
        counts[0] += count
        counts[1] += count * failed
    figures = [{"name": name, "calls": n, "errors": bad} for name, (n, bad) in tools.items()]
    told = {"servers": list(servers.values()), "runs": len({run for run, *_ in known})}
    sums = {name: sum(each[name] for each in figures) for name in ("calls", "errors")}
    return {**told, **sums, **_sampled(known), "tools": figures} if servers else None


def _sampled(calls: Sequence[_Calls]) -> Json:
    """Return the figures of the models that servers asked, without one that a request lacks."""
    asked = [
        (note, count)
        for *_, reply, count in calls
        for note in map(as_object, as_list(reply.get("asked")))
        if note.get("model") is not None
    ]
    figures: Json = {"requests": sum(count for _, count in asked)}
    for name in ("tokens", "cost_usd"):
        if all(isinstance(note.get(name), int | float) for note, _ in asked):
            figures[name] = sum(count * note[name] for note, count in asked)
    return {"sampled": figures} if asked else {}


def _read(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except ValueError:
        return None

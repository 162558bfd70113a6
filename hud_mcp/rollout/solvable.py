"""The tasks that the oracle can play: those that have a solution."""

from collections.abc import Mapping

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidTask
from hud_mcp.loading.provenance import LeftOut, leave_out
from hud_mcp.loading.source import load_environments
from hud_mcp.rollout.options import RunOptions

__all__ = ["solvable"]


def solvable(
    how: RunOptions, tasks: Taskset, *, every: bool = False
) -> tuple[Taskset, list[LeftOut]]:
    """Return the tasks that a job's agent can play, and the others, before anything runs.

    The oracle plays tasks with a solution. Any other agent plays all.

    Args:
        how: The options of the job.
        tasks: The tasks.
        every: Whether all tasks have to be played, as they were recorded.

    Raises:
        InvalidTask: No task has an oracle; or all have to be played, and some have no oracle.
    """
    if how.agent != "oracle":
        return tasks, []
    environments = {e.name: e for e in load_environments(how.sources)}
    why = {task.id: _unsolved(task, environments) for task in tasks}
    chosen = tasks.filter(lambda task: why[task.id] is None)
    if len(chosen) == len(tasks):
        return tasks, []
    if every or not len(chosen):
        raise InvalidTask(_nothing_to_play(tasks, environments))
    return chosen, leave_out((task, said) for task in tasks if (said := why[task.id]) is not None)


def _unsolved(task: Task, environments: Mapping[str, Environment]) -> str | None:
    """Return the reason why the oracle cannot play a task; None if it can, or a server knows."""
    if task.prompt is not None:
        return "a prompt has no oracle"
    if task.env not in environments:
        return None
    template = environments[task.env].find_template(task.template)
    return "its template has no oracle" if template.oracle_function is None else None


def _nothing_to_play(tasks: Taskset, environments: Mapping[str, Environment]) -> str:
    """Return the advice for tasks that have no oracle."""
    if asked := [task.id for task in tasks if task.prompt is not None]:
        more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
        return (
            f"Tasks with a prompt have no oracle: {asked[0]}{more}. Play them with --agent nop or "
            "--agent-command, or leave them out with --filter."
        )
    wanted = {(t.env, t.template) for t in tasks if t.env in environments}
    templates = [environments[env].find_template(name) for env, name in sorted(wanted)]
    without = [f"{t.id} ({t.where})" for t in templates if t.oracle_function is None]
    return (
        f"These templates have no oracle: {', '.join(without)}. Declare one with "
        "@<template>.oracle, or leave their tasks out with --filter."
    )

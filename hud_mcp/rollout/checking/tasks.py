"""Which tasks are proved: rows that fit their environments, and templates with their defaults."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import is_like
from hud_mcp.environment.template import Template
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.source import declared_tasks
from hud_mcp.rollout.checking.probes import hud_calls
from hud_mcp.rollout.checking.verdicts import TaskVerdict
from hud_mcp.session.catalogue import Catalogue

__all__ = ["Wanted", "rows_wanted", "templates_wanted", "unloaded"]


@dataclass
class Wanted:
    """What is to be proved.

    Attributes:
        tasks: Each fits its environment.
        judged: Verdicts on what cannot even be started.
    """

    tasks: list[Task] = field(default_factory=list[Task])
    judged: list[TaskVerdict] = field(default_factory=list[TaskVerdict])
    _by_id: dict[str, Task] = field(default_factory=dict[str, Task])

    def keep_like(self, pattern: str) -> None:
        """Leave out what is not like a pattern: by its id, its environment or its template."""
        self.tasks = [t for t in self.tasks if is_like(pattern, t.env, t.id, t.template)]
        self.judged = [v for v in self.judged if is_like(pattern, v.environment, v.task)]

    def add(self, task: Task, catalogue: Catalogue, place: str | None = None) -> None:
        """Take a task; one that does not fit its environment has failed.

        One whose row says that it does not run here is unproven: nothing of it is played.
        """
        try:
            bound = catalogue.check(task)
            hud_calls(bound)
        except HudMcpError as exc:
            at = f"{place}: " if place else ""
            self.judged.append(_failed(task.id, task.env, f"{at}It does not fit. {exc}"))
            return
        if (why := why_not_runnable(bound)) is not None:
            self.judged.append(
                _judged(bound.id, bound.env, "unproven", f"It does not run here: {why}.")
            )
            return
        if (other := self._by_id.get(bound.id)) is not None:
            if bound == other:
                return
            bound = bound.model_copy(update={"id": f"{bound.env}/{bound.id}"[:200]})
        self._by_id[bound.id] = bound
        self.tasks.append(bound)


def rows_wanted(
    wanted: Wanted,
    tasks: Iterable[Task],
    environments: Sequence[Environment],
    places: Mapping[str, str | None],
) -> None:
    """Take the rows of a taskset.

    Args:
        wanted: Takes them.
        tasks: The rows.
        environments: Theirs.
        places: The file and the line of each, by its id.
    """
    catalogue = Catalogue(environments)
    for task in tasks:
        wanted.add(task, catalogue, places.get(task.id))


def templates_wanted(wanted: Wanted, environments: Sequence[Environment]) -> None:
    """Take what environments declare: their files' tasks, and each template with its defaults.

    A template with an argument that has neither default nor example is unproven: nobody knows
    a task of it.
    """
    catalogue = Catalogue(environments)
    for task in declared_tasks(environments):
        wanted.add(task, catalogue)
    for environment in environments:
        if not environment.templates:
            text = "It declares no template; give a taskset whose rows are worked on in it."
            wanted.judged.append(_judged(environment.name, environment.name, "unproven", text))
        for template in environment.templates.values():
            try:
                wanted.add(template(**_examples(template)), catalogue)
            except InvalidTask as exc:
                name = f"{environment.name}:{template.id}"
                wanted.judged.append(_judged(name, environment.name, "unproven", str(exc)))


def unloaded(source: str, error: HudMcpError) -> TaskVerdict:
    """The verdict on a source that does not load."""
    return _failed(source, "", f"It does not load. {error}")


def _examples(template: Template) -> dict[str, Any]:
    """Arguments for those that have no default: the first of their examples.

    Raises:
        InvalidTask: One has none.
    """
    found: dict[str, Any] = {}
    for name in sorted(template.arguments.required):
        schema = template.arguments.schema["properties"].get(name, {})
        known = [*schema.get("examples", ()), *schema.get("enum", ())]
        if "const" in schema:
            known = [schema["const"]]
        if not known:
            raise InvalidTask(
                f"{template.where}: the argument {name!r} has neither a default nor an example; "
                "give a taskset with a row that names it."
            )
        found[name] = known[0]
    return found


def _failed(name: str, environment: str, reason: str) -> TaskVerdict:
    return _judged(name, environment, "failed", reason)


def _judged(name: str, environment: str, verdict: Any, reason: str) -> TaskVerdict:
    return TaskVerdict(task=name, environment=environment, verdict=verdict, reasons=(reason,))

"""The environments, templates and listed tasks that can be started."""

from collections.abc import Iterable, Mapping
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.environment.gyms import why_remote
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidContext, InvalidTask, did_you_mean, name_known


class Catalogue:
    """The environments of a process and the tasks that it lists, all checked.

    Raises:
        InvalidTask: A listed task names an environment, a template or an argument that is not
            there, or two tasks have one id.
    """

    def __init__(
        self, environments: Iterable[Environment], tasksets: Iterable[Taskset] = ()
    ) -> None:
        self.environments = {e.name: e for e in environments}
        # By name and digest: the sessions of replaced versions go on in them.
        self.former: dict[tuple[str, str], Environment] = {}
        self.tasks = self._join(tasksets)

    def become(self, other: "Catalogue") -> None:
        """Take over another catalogue's environments and tasks; the mappings stay the same."""
        self.former |= {(e.name, e.digest): e for e in self.environments.values()}
        served = dict(other.environments)
        self.environments.clear()
        self.environments.update(served)
        self.tasks = other.tasks

    def find_environment(self, name: str | None) -> Environment:
        """Return an environment; None means the only one.

        Raises:
            InvalidTask: No environment has that name, or several are there to choose from.
        """
        known = ", ".join(self.environments)
        if name is None:
            if len(self.environments) == 1:
                return next(iter(self.environments.values()))
            raise InvalidTask(f"Name the `environment`: one of {known}.")
        if name not in self.environments:
            hint = did_you_mean(name, self.environments)
            raise InvalidTask(f"There is no environment {name!r}.{hint} There are: {known}.")
        return self.environments[name]

    def environment_of(self, task: Task) -> Environment:
        """Return the environment of a task; raise InvalidTask, which lists those that are there."""
        remote = None if task.env in self.environments else why_remote(task.gym)
        if remote is not None:
            raise InvalidTask(f"gym: {remote}")
        try:
            return self.find_environment(task.env)
        except InvalidTask as exc:
            raise InvalidTask(f"gym: {exc}" if task.prompt is not None else str(exc)) from None

    def phrase(self, task: Task) -> str:
        """Return what a task asks for, in a phrase for agents.

        It is the template's description, or a prompt's first line. A row's own description is for
        people, and may tell what the task tests.
        """
        if task.prompt:
            return task.prompt.strip().partition("\n")[0]
        environment = self.environments.get(task.env)
        template = environment.templates.get(task.template) if environment else None
        return template.description if template else ""

    def notes(self, environment: str | None = None) -> list[str]:
        """Return the agents' notes on the environments, or on one, beside templates and tools."""
        return [
            f"{e.name}: {note}"
            for e in self.environments.values()
            if environment in (None, e.name)
            for note in e.notes
        ]

    def resolve_template(self, template: str, environment: str | None) -> Environment:
        """Return the environment that has a template; without a name, the only one that has it.

        Raises:
            InvalidTask: No environment has the template, or several have.
        """
        if environment is not None:
            found = self.find_environment(environment)
            found.find_template(template)
            return found
        having = [e for e in self.environments.values() if template in e.templates]
        if len(having) == 1:
            return having[0]
        if having:
            names = ", ".join(e.name for e in having)
            raise InvalidTask(f"Several environments have {template!r}; name one: {names}.")
        known = [t for e in self.environments.values() for t in e.templates]
        listed = name_known(template, known, what="There are", listing="list_tasks shows all.")
        raise InvalidTask(f"There is no template {template!r}.{listed}")

    def mint(
        self,
        template: str,
        arguments: Mapping[str, Any],
        *,
        environment: str | None = None,
        context: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Task:
        """Make a task of a template and arguments, all checked; nothing runs.

        Raises:
            InvalidTask: The template or an argument is not there, or of the wrong kind.
            InvalidContext: The context is not one of the environment's.
        """
        found = self.resolve_template(template, environment)
        task = found.find_template(template)(**arguments)
        if context:
            found.context_space.fill(context)
        elif context is None and found.context_selector is not None:
            if seed is not None:  # so that the same seed is the same task
                found.context_selector.seed(seed)
            context = found.context_selector.select()
        seed = found.seed if seed is None else seed
        if not context and seed is None:
            return task
        return task.model_copy(update={"context": dict(context or {}), "seed": seed})

    def check(self, task: Task) -> Task:
        """Return the checked tasks of all sets in one; an InvalidTask names place and fault."""
        bound = self.environment_of(task).bind(task)
        refuses = any(call.function == "not_runnable" for call in bound.setup)
        if bound.prompt is not None and not bound.evaluate and not refuses:
            raise InvalidTask(
                "evaluate: it is empty, so no answer can be graded. Name a function, such as "
                "['response_includes', 'Paris']."
            )
        return bound

    def _join(self, tasksets: Iterable[Taskset]) -> Taskset:
        """Return the checked tasks of all sets in one.

        Raises:
            InvalidTask: A task is wrong; the text names it, its file and line, and the fault.
        """
        rows: dict[str, Task] = {}
        places: dict[str, str | None] = {}
        for taskset in tasksets:
            for task in taskset:
                place = taskset.place_of(task.id)
                at = f"{place}: " if place else ""
                if task.id in rows:
                    other = places[task.id] or "another one"
                    raise InvalidTask(
                        f"{at}the id {task.id!r} is taken by {other}; ids must be distinct. "
                        "Give each row its own id."
                    )
                try:
                    rows[task.id] = self.check(task)
                except (InvalidTask, InvalidContext) as exc:
                    text = f"{at}The task {task.id!r} cannot be offered. {exc}"
                    raise InvalidTask(text) from None
                places[task.id] = place
        return Taskset(rows.values(), name="The taskset")

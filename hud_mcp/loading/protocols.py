"""The protocols of benchmarks' authors, and a job's differences from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask
from hud_mcp.registry import Entries
from hud_mcp.values.action import Value

PROTOCOL = "protocol"
"""The key of a job's metadata for the protocol that it follows."""

TIMEOUT_S = 14_400.0
"""The seconds for a run if a benchmark's authors set no time: a run that hangs has to end."""

_OPENAI = "api.openai.com"


@dataclass(frozen=True)
class Conduct:
    """The settings of a job that a protocol has rules for, as the user gave them.

    None or an empty text means that the user set nothing.
    """

    max_steps: int | None = None
    timeout_s: float | None = None
    contexts: str | None = None
    judge: str = ""
    judge_url: str = ""


class ProtocolRecord(Value):
    """Of a job: whose protocol it follows, and in what it does not."""

    title: str = Field(description="The benchmark.")
    differences: tuple[str, ...] = Field(default=(), description="From what was published.")

    def __str__(self) -> str:
        if not self.differences:
            return f"official protocol of {self.title}"
        return f"protocol of {self.title}, but for: {'; '.join(self.differences)}"


@dataclass(frozen=True)
class Protocol:
    """The way in which the authors of a benchmark run it.

    One of `graders` grades each row. `as_published` makes the authors' form of a row. `rows` is
    None if the number is not published. A whole job has rows of all `parts`.
    """

    title: str
    graders: tuple[str, ...]
    as_published: Callable[[Task, Conduct], Task]
    max_steps: int | None = None
    rows: int | None = None
    parts: tuple[str, ...] = ()
    judge: str = ""

    def published(self, task: Task, conduct: Conduct) -> Task:
        """Return a row in its authors' form: its wording, its window, its judge or its scorer.

        Raises:
            InvalidTask: The task is not a row of this benchmark.
        """
        names = [call.function for call in task.evaluate]
        if task.prompt is None or len(names) != 1 or names[0] not in self.graders:
            raise InvalidTask(
                f"--protocol {self.title.casefold()} runs rows of {self.title} alone, and "
                f"{task.id!r} is not one of them. Leave it out with --filter."
            )
        return self.as_published(task, conduct)

    def record(self, tasks: Sequence[Task], conduct: Conduct, *, whole: int) -> ProtocolRecord:
        """Return the differences of a job from this protocol. All rows are `whole` many."""
        found = [*self._of_conduct(conduct), *self._of_rows(tasks, whole)]
        return ProtocolRecord(title=self.title, differences=tuple(found))

    def _of_conduct(self, conduct: Conduct) -> Iterable[str]:
        steps = conduct.max_steps
        if steps != self.max_steps:
            wanted = self.max_steps or "no limit"
            yield f"--max-steps {steps} instead of {wanted}"
        if conduct.timeout_s is not None:
            yield f"--timeout {conduct.timeout_s:g} instead of no limit"
        if conduct.contexts is not None:
            yield f"--contexts {conduct.contexts}"
        if self.judge and conduct.judge not in ("", self.judge):
            yield f"judge {conduct.judge} instead of {self.judge}"
        host = urlsplit(conduct.judge_url).hostname
        if self.judge and host not in (None, _OPENAI):
            yield f"judge at {host} instead of {_OPENAI}"

    def _of_rows(self, tasks: Sequence[Task], whole: int) -> Iterable[str]:
        of = max(self.rows or 0, whole)
        if len(tasks) != of:
            yield f"{len(tasks)} of {of} rows"
        there = {part for task in tasks for part in task.metadata.get("parts", ())}
        if missing := [part for part in self.parts if part not in there]:
            yield f"no rows of {', '.join(missing)}"
        if local := sum(task.metadata.get("is_local") is True for task in tasks):
            yield f"copies in place of the sites of {local} row{'s' * (local > 1)}"


PROTOCOLS: Mapping[str, Protocol] = Entries("protocols")
"""The protocols by the names of `--protocol`; each loads when it is read."""


def recorded_protocol(metadata: Mapping[str, Any]) -> ProtocolRecord | None:
    """Return the protocol that a job's metadata names; None if it names none."""
    try:
        return ProtocolRecord.model_validate(metadata.get(PROTOCOL))
    except ValidationError:
        return None

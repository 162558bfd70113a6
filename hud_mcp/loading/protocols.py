"""How a benchmark's authors run it, and in what a job differs from that."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask
from hud_mcp.registry import Entries
from hud_mcp.values.action import Value

__all__ = [
    "PROTOCOL",
    "PROTOCOLS",
    "TIMEOUT_S",
    "Conduct",
    "Protocol",
    "ProtocolRecord",
    "recorded_protocol",
]

PROTOCOL = "protocol"
"""Where a job's metadata says by whose protocol it was run."""

TIMEOUT_S = 14_400.0
"""For one run of a benchmark whose authors set no time: what hangs has to end."""

_OPENAI = "api.openai.com"


@dataclass(frozen=True)
class Conduct:
    """How a job is run, as far as a protocol has a say in it.

    Attributes:
        max_steps: Steps after which the agent is stopped; None for any number.
        timeout_s: Seconds that its user allows a run; None where he says nothing.
        contexts: What the rows are spread over, as it was written; or None.
        judge: The model that judges, by the user's environment; empty for none.
        judge_url: Its address, likewise.
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
    """How the authors of a benchmark run it.

    Attributes:
        title: The benchmark.
        graders: The functions of which one grades each row.
        as_published: Makes a row as its authors put it of a row of ours.
        max_steps: What an agent has; None where there is no limit.
        rows: How many there are; None where that is not published openly.
        parts: Those that there have to be rows of.
        judge: The model that judges; empty where none does.
    """

    title: str
    graders: tuple[str, ...]
    as_published: Callable[[Task, Conduct], Task]
    max_steps: int | None = None
    rows: int | None = None
    parts: tuple[str, ...] = ()
    judge: str = ""

    def published(self, task: Task, conduct: Conduct) -> Task:
        """A row as its authors put it: its wording, its window, its judge or its scorer.

        Raises:
            InvalidTask: It is not a row of this benchmark.
        """
        names = [call.function for call in task.evaluate]
        if task.prompt is None or len(names) != 1 or names[0] not in self.graders:
            raise InvalidTask(
                f"--protocol {self.title.casefold()} runs rows of {self.title} alone, and "
                f"{task.id!r} is not one of them. Leave it out with --filter."
            )
        return self.as_published(task, conduct)

    def record(self, tasks: Sequence[Task], conduct: Conduct, *, whole: int) -> ProtocolRecord:
        """In what a job differs.

        Args:
            tasks: What it runs.
            conduct: How.
            whole: How many rows its taskset has that run here.
        """
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
    """Whose protocol a job follows, from its metadata; None where nothing says it."""
    try:
        return ProtocolRecord.model_validate(metadata.get(PROTOCOL))
    except ValidationError:
        return None

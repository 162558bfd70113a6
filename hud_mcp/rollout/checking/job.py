"""A proof as a recorded job: its tasks, its options, its runs and its verdicts."""

import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from pydantic import Field, ValidationError

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset, is_like
from hud_mcp.environment.template import Template
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.loading.provenance import why_not_runnable
from hud_mcp.loading.source import declared_tasks, load_environments, narrow_sources
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.rollout.attempt import Attempt, Bounds
from hud_mcp.rollout.checking.leaks import choices
from hud_mcp.rollout.checking.pages import open_page_reader
from hud_mcp.rollout.checking.probes import hud_calls, original, plan_probes, read_probe
from hud_mcp.rollout.checking.solver import ProbeSolver, read_report
from hud_mcp.rollout.checking.surface import Seen
from hud_mcp.rollout.checking.verdicts import CUT_OFF, TaskVerdict, is_done, judge
from hud_mcp.rollout.conversation import SessionIds
from hud_mcp.rollout.link import ServerCommand
from hud_mcp.rollout.run import PlannedRun, Rollout, Runs, Watch, derived_seed
from hud_mcp.rollout.server import run_server
from hud_mcp.rollout.trusted import end_left_runs, load_resumable
from hud_mcp.session.catalogue import Catalogue
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.values.action import Value


@dataclass
class Wanted:
    """The tasks of a proof, each of which fits its environment, and verdicts on the others.

    `unserved` has the environments whose worlds cannot be opened here, with the reasons.
    """

    tasks: list[Task] = field(default_factory=list[Task])
    judged: list[TaskVerdict] = field(default_factory=list[TaskVerdict])
    unserved: dict[str, str] = field(default_factory=dict[str, str])
    _by_id: dict[str, Task] = field(default_factory=dict[str, Task])

    def keep_like(self, pattern: str) -> None:
        """Keep only the tasks that match a pattern by id, environment or template."""
        self.tasks = [t for t in self.tasks if is_like(pattern, t.env, t.id, t.template)]
        self.judged = [v for v in self.judged if is_like(pattern, v.environment, v.task)]

    def look_at(self, environments: Iterable[Environment]) -> None:
        """Find out which worlds cannot be opened here; this may install a package."""
        missing = {e.name: e.world.missing(e.folder) for e in environments}
        self.unserved |= {name: f"its world {why}" for name, why in missing.items() if why}

    def add(self, task: Task, catalogue: Catalogue, place: str | None = None) -> None:
        """Add a task. One that does not fit its environment has failed.

        A task whose row says that it does not run here is unproven, and is not played.
        """
        try:
            bound = catalogue.check(task)
            hud_calls(bound)
        except HudMcpError as exc:
            at = f"{place}: " if place else ""
            self.judged.append(_judged(task.id, task.env, f"{at}It does not fit. {exc}", "failed"))
            return
        why = why_not_runnable(bound) or self.unserved.get(bound.env)
        if why is not None:
            self.judged.append(_judged(bound.id, bound.env, f"It does not run here: {why}."))
            return
        if (other := self._by_id.get(bound.id)) is not None:
            if bound == other:
                return
            # Rows of two sets may share an id.
            bound = bound.model_copy(update={"id": f"{bound.env}/{bound.id}"[:200]})
        self._by_id[bound.id] = bound
        self.tasks.append(bound)


def rows_wanted(
    wanted: Wanted,
    tasks: Iterable[Task],
    environments: Sequence[Environment],
    places: Mapping[str, str | None],
) -> None:
    """Add the rows of a taskset, with the file and the line of each by its id."""
    wanted.look_at(environments)
    catalogue = Catalogue(environments)
    for task in tasks:
        wanted.add(task, catalogue, places.get(task.id))


def templates_wanted(wanted: Wanted, environments: Sequence[Environment]) -> None:
    """Add the declared tasks of environments, and each template with its defaults.

    A template is unproven if an argument has neither a default nor an example.
    """
    wanted.look_at(environments)
    catalogue = Catalogue(environments)
    for task in declared_tasks(environments):
        wanted.add(task, catalogue)
    for environment in environments:
        if not environment.templates:
            text = "It declares no template; give a taskset whose rows are worked on in it."
            wanted.judged.append(_judged(environment.name, environment.name, text))
        for template in environment.templates.values():
            try:
                wanted.add(template(**_examples(template)), catalogue)
            except InvalidTask as exc:
                name = f"{environment.name}:{template.id}"
                wanted.judged.append(_judged(name, environment.name, str(exc)))


def unloaded(source: str, error: HudMcpError) -> TaskVerdict:
    """Return the verdict on a source that does not load."""
    return _judged(source, "", f"It does not load. {error}", "failed")


def _examples(template: Template) -> dict[str, Any]:
    """Return the first example of each argument without a default, or raise `InvalidTask`."""
    found: dict[str, Any] = {}
    for name in sorted(template.arguments.required):
        schema = template.arguments.schema["properties"].get(name, {})
        known = [*schema.get("examples", ()), *schema.get("enum", ())]
        if "const" in schema:
            known = [schema["const"]]  # the only value that fits
        if not known:
            raise InvalidTask(
                f"{template.where}: the argument {name!r} has neither a default nor an example; "
                "give a taskset with a row that names it."
            )
        found[name] = known[0]
    return found


def _judged(name: str, environment: str, reason: str, verdict: Any = "unproven") -> TaskVerdict:
    return TaskVerdict(task=name, environment=environment, verdict=verdict, reasons=(reason,))


AGENT = "check"
"""The agent's name of such a job, which counts in no figures of agents."""


class CheckOptions(Value):
    """The options of a proof. The job's record keeps them, so that it can be resumed."""

    sources: tuple[str, ...] = Field(description="Environments, by name or absolute path.")
    repeat: int = Field(default=2, ge=1, description="Times that one seed is played.")
    seed: int = Field(default=0, ge=0)
    timeout_s: float = Field(default=120.0, gt=0)
    max_concurrent: int = Field(default=4, ge=1)
    allow: tuple[str, ...] = ()
    judged: tuple[TaskVerdict, ...] = Field(
        default=(), description="Verdicts on what could not even be started."
    )
    sets: dict[str, tuple[str, ...]] = Field(
        default_factory=dict[str, tuple[str, ...]],
        description="The tasks of each set or source, where there are several.",
    )


class Proof:
    """The probes of tasks, as a recorded job.

    `planned` are still to be played. `answers` are the known ones of oracles, by the task's id.
    `lost` is the reason why no server was left at the end, or None.
    """

    def __init__(
        self, job: Job, probes: Sequence[Task], planned: Sequence[PlannedRun], how: CheckOptions,
        *, store: Store, environments: Sequence[Environment],
        answers: Mapping[str, str | None] | None = None,
    ) -> None:  # fmt: skip
        self.job = job
        self.probes = list(probes)
        self.planned = list(planned)
        self.how = how
        self.lost: str | None = None
        self._store = store
        self._environments = {e.name: e for e in environments}
        self._answers = answers or {}
        self._refused: dict[str, str] = {}  # no record tells why a session was never begun

    async def run(self, log: TextIO, watch: Watch) -> None:
        """Play the remaining probes. If this call is cancelled, the rest can be resumed.

        Raises:
            EnvironmentFailed: The server does not start; the text has the end of its log.
        """
        how = self.how
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            rows = Path(folder) / "tasks.jsonl"
            Taskset([run.task for run in self.planned]).save(rows)
            # Probes of one task begin together, and one that has just ended may still count.
            limit = max(Limits().sessions, 3 * how.max_concurrent)
            command = ServerCommand(
                how.sources, rows, self._store.url, self.job.id, log,
                (
                    "--live=0", "--limit", f"sessions={limit}",
                    "--limit", f"sessions_per_caller={limit}",
                    *(text for host in how.allow for text in ("--allow", host)),
                ),
            )  # fmt: skip
            runs: Runs | None = None
            try:
                async with (
                    open_page_reader(how.seed) as pages,
                    run_server(
                        command, http=False, answers_requests=True, on_death=watch.on_death
                    ) as server,
                ):
                    begin = partial(
                        Attempt,
                        solver=ProbeSolver(
                            self._environments.values(), server, self._answers, pages
                        ),
                        server=server,
                        store=self._store,
                        bounds=Bounds(how.timeout_s),
                        ids=SessionIds(self._store, self.job.id),
                    )
                    # Refusals leave no record.
                    noting = replace(watch, on_end=partial(self._note, watch))
                    runs = Runs(begin, max_concurrent=how.max_concurrent, watch=noting)
                    await runs.run(self.planned)
            finally:
                if runs is not None:
                    # Also after a cancellation, so that none stays open.
                    await runs.record_lost(runs.lost or f"{CUT_OFF}was interrupted.")
                    self.lost = runs.lost

    async def verdicts(self) -> list[TaskVerdict]:
        """Judge every task by the record; raise `StoreFailed` if it cannot be read."""
        _, trajectories = await self._store.load_job(self.job.id)
        records = _newest(trajectories)
        by_task: dict[str, list[Task]] = {}
        for probe in self.probes:
            by_task.setdefault(read_probe(probe).task, []).append(probe)
        shared: dict[str, list[Seen]] = {}
        for record in records.values():
            report = read_report(record.logs)
            for seen in report.seen if report else ():
                if seen.shared:  # one probe looked for all tasks of its environment
                    shared.setdefault(record.environment, []).append(seen)
        listed = choices(self._environments.values())
        judged = [
            judge(
                original(probes[0]), self._environments[probes[0].env], probes, records,
                shared=shared.get(probes[0].env, ()), listed=listed, refused=self._refused,
            )
            for probes in by_task.values()
        ]  # fmt: skip
        return [*judged, *self.how.judged]

    def _note(self, watch: Watch, done: Rollout, again: bool) -> None:  # noqa: FBT001  # a callback's
        if done.trajectory_id is None and done.error:
            self._refused[done.planned.task.id] = done.error
        watch.on_end(done, again)


async def begin_proof(
    store: Store, wanted: Wanted, how: CheckOptions, *, name: str,
    environments: Sequence[Environment],
) -> Proof:  # fmt: skip
    """Begin a proof, and record it for its resumption. `StoreFailed` leaves no record."""
    by_name = {e.name: e for e in environments}
    seen: set[str] = set()
    probes: list[Task] = []
    # Ids of probes end as rows' ids may: each is compared with all before.
    taken: set[str] = set()
    for task in wanted.tasks:
        planned = plan_probes(
            task, by_name[task.env], repeat=how.repeat, whole=task.env not in seen
        )
        seen.add(task.env)  # the first task of an environment looks for all of them
        for _, derived in planned:
            probes.append(_distinct(derived, taken))
            taken.add(probes[-1].id)
    how = how.model_copy(update={"judged": tuple(wanted.judged)})
    if wanted.unserved:
        here = narrow_sources(how.sources, {task.env for task in wanted.tasks})
        how = how.model_copy(update={"sources": tuple(here)})
    job = Job(
        name=f"check {name}",
        taskset=name,
        agent=AGENT,
        planned=True,
        metadata={"check": how.model_dump(mode="json", exclude_defaults=True)},
    )
    await store.add_job(job, probes)
    planned_runs = _planned(probes, {}, how.seed)
    return Proof(job, probes, planned_runs, how, store=store, environments=environments)


async def resume_proof(store: Store, job_id: str) -> Proof:
    """Resume a proof from its record. Probes that have ended are not played again.

    Raises:
        SourceNotFound: There is no such job.
        HudMcpError: It is no job of this command, or another process still runs it.
    """
    job, probes, runs = await load_resumable(store, job_id)
    try:
        how = CheckOptions.model_validate(job.metadata.get("check"))
    except ValidationError:
        raise HudMcpError(
            f"Job {job.id} is not a job of `hud-mcp check`. `hud-mcp eval --resume` resumes "
            "jobs of agents."
        ) from None
    await end_left_runs(store, job, runs, f"{CUT_OFF}that it belongs to ended before it did.")
    records = _newest((await store.load_job(job.id))[1])
    planned = _planned(probes, records, how.seed)
    known = {probe.id for probe in probes}
    environments = load_environments(how.sources)
    answers = {  # probes that need them do not wait for an oracle that has played
        read_probe(record.task).task: report.answer
        for record in records.values()
        if record.task.id in known and read_probe(record.task).kind == "oracle"
        if (report := read_report(record.logs)) is not None
    }
    return Proof(job, probes, planned, how, store=store, environments=environments, answers=answers)


def _distinct(probe: Task, taken: set[str]) -> Task:
    """Return a probe's task with a unique id: the id of another row may end as a probe's does."""
    if probe.id not in taken:
        return probe
    short = hashlib.sha256(f"{len(taken)} {probe.id}".encode()).hexdigest()[:8]
    return probe.model_copy(update={"id": f"{probe.id[:191]}-{short}"})


def _planned(
    probes: Sequence[Task], records: Mapping[str, Trajectory], seed: int
) -> list[PlannedRun]:
    return [
        PlannedRun(
            probe, 0, derived_seed(seed, read_probe(probe).task, 0) if probe.seed is None else None
        )
        for probe in probes
        if probe.id not in records or not is_done(records[probe.id])
    ]


def _newest(trajectories: Sequence[Trajectory]) -> dict[str, Trajectory]:
    """Return the record of each probe that counts: the newest ended one, else the newest."""
    found: dict[str, Trajectory] = {}
    for each in trajectories:  # in the order in which they began
        if each.task.id not in found or is_done(each) or not is_done(found[each.task.id]):
            found[each.task.id] = each
    return found

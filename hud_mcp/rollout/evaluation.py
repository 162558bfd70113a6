"""A job while it runs: its servers, its agent, its runs, and the ends that are left to record."""

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from hud_mcp.agents.kind import Solver, Workplace
from hud_mcp.environment.taskset import Taskset
from hud_mcp.loading.source import Source, load_environments
from hud_mcp.record.job import Job
from hud_mcp.registry import service
from hud_mcp.rollout.agents import open_agent, tools_of
from hud_mcp.rollout.attempt import Attempt, Bounds
from hud_mcp.rollout.conversation import SessionIds
from hud_mcp.rollout.link import Address, ServerCommand
from hud_mcp.rollout.options import EACH, JobOptions, RunOptions
from hud_mcp.rollout.pool import AnyOf, Anywhere, Moves, Pool, Worker
from hud_mcp.rollout.prepared import Prepared
from hud_mcp.rollout.run import Runs, Watch
from hud_mcp.rollout.server import AnyServer, RunServer, local_server, run_server
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.values.needs import Needs

ROWS = "tasks.jsonl"
"""The file of a job's tasks, in the folder that its servers read."""


async def with_workers(options: JobOptions, *, resumed: bool) -> JobOptions:
    """Return the options with the number of workers, and as many runs at once as those take.

    Without a number, each node of a cluster has one. A resumed job keeps its recorded number of
    runs at once.

    Raises:
        NotInstalled, HudMcpError: The cluster cannot be reached. Nothing ran.
    """
    count = options.workers
    if count is None and options.ray is not None:
        count = await service("count nodes")(options.ray)
    if count is None:
        return options
    more = {"workers": count}
    if not resumed and "max_concurrent" not in options.model_fields_set:
        more["max_concurrent"] = EACH * count  # workers without runs would be idle
    return options.model_copy(update=more)


@dataclass(frozen=True)
class Served:
    """The servers of a job while they run.

    `offers` has the needs that each meets, empty if they are alike. Without `moves`, each run stays
    with its server.
    """

    servers: Sequence[AnyServer]
    offers: Sequence[Needs] = field(default_factory=list[Needs])
    moves: Moves | None = None

    @property
    def any_server(self) -> AnyServer:
        """Any server, for requests that each of them answers alike."""
        # These alone can die.
        listed = [server for server in self.servers if isinstance(server, RunServer)]
        if self.moves is None or not listed:
            return self.servers[0]
        return Anywhere(listed[0], AnyOf(listed), None)


@dataclass(frozen=True)
class ServedJob:
    """The parts that all servers of a job start with."""

    prepared: Prepared
    store: Store
    folder: Path
    log: TextIO
    watch: Watch

    @property
    def how(self) -> RunOptions:
        """The options of the job."""
        return self.prepared.how

    @property
    def options(self) -> list[str]:
        """Options of `serve` on any machine."""
        how = self.how
        return [
            *("--image", how.image, *_room(how.max_concurrent)),
            *(text for host in how.allow for text in ("--allow", host)),
        ]


@asynccontextmanager
async def served(
    prepared: Prepared, store: Store, *, folder: Path, log: TextIO, watch: Watch
) -> AsyncGenerator[Served]:
    """Serve the environments of a job while the block runs.

    Raises:
        EnvironmentFailed: A server does not start; the text has the end of its log.
        HudMcpError: A cluster cannot run the job.
    """
    job = ServedJob(prepared, store, folder, log, watch)
    if prepared.how.in_process:
        kind = _in_process(job)
    elif prepared.how.ray is not None:
        kind = service("serve on nodes")(job, prepared.how.ray)
    else:
        kind = _beside(job)
    async with kind as found:
        yield found


@asynccontextmanager
async def _in_process(job: ServedJob) -> AsyncGenerator[Served]:
    how = job.how
    environments = load_environments(how.sources)
    sessions = Sessions(
        environments,
        store=job.store,
        tasksets=[Taskset(job.prepared.tasks, "tasks")],
        limits=_limits(how.max_concurrent),
        job_id=job.prepared.job.id,
        local_hosts=how.allow,
    )
    async with local_server(
        sessions, environments, image=how.image, answers_requests=how.lists_tools
    ) as local:
        yield Served([local])


@asynccontextmanager
async def _beside(job: ServedJob) -> AsyncGenerator[Served]:
    how, rows = job.how, job.folder / ROWS
    Taskset(job.prepared.tasks).save(rows)  # the rows of this job alone
    variables = service("sampling variables")(how.model)
    command = ServerCommand(
        how.sources, rows, job.store.url, job.prepared.job.id, job.log, job.options, variables
    )
    count = how.workers or 1  # every job has a server
    async with AsyncExitStack() as stack:
        servers: list[AnyServer] = []
        for number in range(1, count + 1):
            named = partial(tell_worker_death, job.watch, number)
            kept = run_server(
                command,
                http=how.is_remote,
                answers_requests=how.lists_tools,
                on_death=job.watch.on_death if count == 1 else named,
            )
            servers.append(await stack.enter_async_context(kept))
        yield Served(servers)


def tell_worker_death(watch: Watch, number: int, text: str) -> None:
    """Tell people which worker of several has died."""
    watch.on_death(f"Worker {number}: {text}")


def _room(max_concurrent: int) -> list[str]:
    """Return limits for so many sessions at one time. One that has just ended may still count."""
    limits = _limits(max_concurrent)
    return [
        "--limit", f"sessions={limits.sessions}",
        "--limit", f"sessions_per_caller={limits.sessions_per_caller}",
    ]  # fmt: skip


def _limits(max_concurrent: int) -> Limits:
    wanted = 2 * max_concurrent  # an ended session counts until its end is recorded
    default = Limits()
    return Limits(
        sessions=max(default.sessions, wanted),
        sessions_per_caller=max(default.sessions_per_caller, wanted),
    )


_PLANNED = 64
"""The most ids that one commit adds to the plan."""


def report_folder(store: Store) -> Path:
    """Return the folder beside the store, or in the user's data folder, for reports and logs."""
    return store.folder / "reports"


class Evaluation:
    """The planned runs of a job.

    Without an agent of this process, the job's options name it. After the run, `lost` is the reason
    why no server was left, and `cut_off` the number of runs that a cancellation ended.
    """

    def __init__(self, store: Store, prepared: Prepared, *, agent: Solver | None = None) -> None:
        self.prepared = prepared
        self.lost: str | None = None
        self.cut_off = 0
        self._store = store
        self._agent = agent
        self._runs: Runs | None = None

    @property
    def job(self) -> Job:
        """The job."""
        return self.prepared.job

    async def run(self, log: TextIO, watch: Watch) -> None:
        """Make the planned runs. A failed run is data, and raises nothing.

        Raises:
            EnvironmentFailed: A server does not start; the text has the end of its log.

        If this call is cancelled, answers that are being graded have a moment to get their grade.
        Every other run that was under way is recorded as lost: resuming the job runs it again.
        """
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            try:
                async with (
                    served(
                        self.prepared, self._store, folder=Path(folder), log=log, watch=watch
                    ) as found,
                    AsyncExitStack() as stack,
                ):
                    # Kept for the end, which a cancellation brings too.
                    runs = self._runs = await self._begin(found, watch, stack)
                    await runs.run(self.prepared.planned)
            finally:
                await self._flush_ends()

    async def _begin(self, found: Served, watch: Watch, stack: AsyncExitStack) -> Runs:
        how, servers = self.prepared.how, found.servers
        at_once = min(_PLANNED, len(self.prepared.planned))
        begin = partial(
            Attempt,
            store=self._store,
            bounds=Bounds(how.timeout_s, how.max_steps),
            ids=SessionIds(self._store, self.job.id, at_once=at_once),
        )
        agent = self._agent
        place = Workplace(
            environments=lambda: load_environments(
                each for each in how.sources if not Source(each).is_remote
            ),
            max_steps=how.max_steps,
            list_tools=tools_of(found.any_server),
            spent_usd=self.prepared.spent_usd,
            note=watch.on_note,
            permit=how.permit,
        )
        if agent is None and how.is_remote and not how.no_gateway:
            # One for all servers, as a budget holds for the whole job.
            opening = service("model gateway")(how.model, how.agent, place)
            place = replace(place, gateway=await stack.enter_async_context(opening))
        if agent is None and (found.moves is not None or not how.is_remote):
            # One for all servers: it has an address that stays, or needs none.
            address = None if found.moves is None else found.moves.address
            agent = await self._opened(stack, place, address)
        workers = [
            Worker(
                server,
                partial(begin, solver=agent or await self._opened(stack, place, server.address)),
                number,
                found.offers[number - 1] if found.offers else Needs(),
            )
            for number, server in enumerate(servers, 1)
        ]
        begins = Pool(workers, found.moves).begin
        return Runs(begins, max_concurrent=how.max_concurrent, retries=how.retries, watch=watch)

    async def _opened(
        self, stack: AsyncExitStack, place: Workplace, address: Address | None
    ) -> Solver:
        if address is not None:
            place = replace(place, url=address.url, token=address.token)
        return await stack.enter_async_context(open_agent(self.prepared.how, place))

    async def _flush_ends(self) -> None:
        """Record the end of every run without one. The servers have ended by then."""
        runs = self._runs
        if runs is None:
            return
        self.lost = runs.lost
        self.cut_off = await runs.record_lost(runs.lost or "The evaluation was interrupted.")

"""A job while it runs: its server, its agent, its runs, and what is left of them at the end."""

import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from hud_mcp.agents.command import CommandAgent
from hud_mcp.agents.human import human_agent
from hud_mcp.agents.model.agent import ModelAgent
from hud_mcp.agents.nop import NopAgent
from hud_mcp.agents.oracle import OracleAgent
from hud_mcp.agents.random import RandomAgent
from hud_mcp.agents.ready import ReadyAgent
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.bridged import is_bridged
from hud_mcp.loading.source import load_environments
from hud_mcp.record.job import Job
from hud_mcp.rollout.agent_check import process_command
from hud_mcp.rollout.attempt import Attempt, Bounds, Solver
from hud_mcp.rollout.in_process import local_server
from hud_mcp.rollout.link import ServerCommand
from hud_mcp.rollout.models import model_agent
from hud_mcp.rollout.plan import RunOptions
from hud_mcp.rollout.pool import Pool, Worker
from hud_mcp.rollout.prepared import Prepared
from hud_mcp.rollout.run import Begin, Runs, Watch
from hud_mcp.rollout.server import AnyServer, run_server
from hud_mcp.rollout.session_ids import SessionIds
from hud_mcp.session.limits import Limits
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.task import RecordMode
from hud_mcp.taskset import Taskset

__all__ = ["Evaluation", "report_folder"]

_PLANNED = 64
"""So many runs are added to the plan by one commit."""


def report_folder(store: Store) -> Path:
    """Where the reports of jobs are, and the logs of their servers: beside their store.

    Args:
        store: Where the jobs are recorded; what belongs to a database is in the user's data folder.
    """
    return store.folder / "reports"


class Evaluation:
    """Runs what is planned of a job.

    Args:
        store: Where it is recorded.
        prepared: The job, and what is to be run of it.
        agent: Who works on it, where that is an object of this process; else its options say.
        record: How steps are written, one of `RECORD_MODES`; None for the environments' choice.

    Attributes:
        prepared: The job, and what is to be run of it.
        lost: Why the server could not be had to the end, or None.
        cut_off: How many runs were under way when this was cancelled, and are recorded as lost.
    """

    def __init__(
        self,
        store: Store,
        prepared: Prepared,
        *,
        agent: Solver | None = None,
        record: RecordMode | None = None,
    ) -> None:
        self.prepared = prepared
        self.lost: str | None = None
        self.cut_off = 0
        self._store = store
        self._agent = agent
        self._record: RecordMode | None = record
        self._runs: Runs | None = None
        self._model: ModelAgent | None = None

    @property
    def job(self) -> Job:
        """The job."""
        return self.prepared.job

    async def run(self, log: TextIO, watch: Watch) -> None:
        """Run what is planned. A run that fails is data, and no exception.

        Args:
            log: Where its server writes what it has to say.
            watch: Who is told how it goes on.

        Raises:
            EnvironmentFailed: The server does not start; the text has the end of its log.

        If this call is cancelled, answers that are being graded have a moment to get their grade.
        Every other run that was under way is recorded as lost: resuming the job runs it again.
        """
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            try:
                async with (
                    self._served(Path(folder), log, watch) as servers,
                    self._with_person(watch),
                ):
                    runs = self._runs = self._begin(servers, watch)
                    await runs.run(self.prepared.planned)
            finally:
                await self._flush_ends()
                if self._model is not None:
                    await self._model.aclose()

    @asynccontextmanager
    async def _served(
        self, folder: Path, log: TextIO, watch: Watch
    ) -> AsyncGenerator[Sequence[AnyServer]]:
        """Have its environments served, in this process or in others."""
        how = self.prepared.how
        if not how.in_process:
            command, count = self._server_command(folder, log), how.workers or 1
            async with AsyncExitStack() as stack:
                servers: list[AnyServer] = []
                for number in range(1, count + 1):
                    tell = watch.on_death if count == 1 else _telling(watch, number)
                    kept = run_server(command, http=how.is_remote, on_death=tell)
                    servers.append(await stack.enter_async_context(kept))
                yield servers
            return
        environments = load_environments(how.sources)
        sessions = Sessions(
            environments,
            store=self._store,
            tasksets=[Taskset(self.prepared.tasks, "tasks")],
            limits=_limits(how.max_concurrent),
            job_id=self.job.id,
            local_hosts=how.allow,
            record=self._record,
        )
        is_model = how.model is not None
        async with local_server(
            sessions, environments, image=how.image, answers_requests=is_model
        ) as local:
            yield [local]

    def _begin(self, servers: Sequence[AnyServer], watch: Watch) -> Runs:
        how, agent = self.prepared.how, self._agent
        if how.model is not None:
            spent_usd = self.prepared.spent_usd
            agent = self._model = model_agent(how.model, servers[0], spent_usd=spent_usd)
        at_once = min(_PLANNED, len(self.prepared.planned))
        begin = partial(
            Attempt,
            store=self._store,
            bounds=Bounds(how.timeout_s, how.max_steps),
            ids=SessionIds(self._store, self.job.id, at_once=at_once),
        )
        workers = [
            Worker(server, partial(begin, solver=agent or _solver(how, server), server=server))
            for server in servers
        ]
        begins: Begin = workers[0].begin if len(workers) == 1 else Pool(workers).begin
        return Runs(begins, max_concurrent=how.max_concurrent, retries=how.retries, watch=watch)

    @asynccontextmanager
    async def _with_person(self, watch: Watch) -> AsyncGenerator[None]:
        """Have a page for a person, where that is the agent."""
        how = self.prepared.how
        if how.agent != "human":
            yield
            return
        async with human_agent(load_environments(_loadable(how))) as (self._agent, address):
            watch.on_note(f"Work on the tasks at {address}")
            yield

    async def _flush_ends(self) -> None:
        """Record the end of every run that has none; the server has ended."""
        runs = self._runs
        if runs is None:
            return
        self.lost = runs.lost
        self.cut_off = await runs.record_lost(runs.lost or "The evaluation was interrupted.")

    def _server_command(self, folder: Path, log: TextIO) -> ServerCommand:
        how = self.prepared.how
        rows = folder / "tasks.jsonl"
        Taskset(self.prepared.tasks).save(rows)  # what this job needs, and no more
        record = ("--record", self._record) if self._record else ()
        return ServerCommand(
            how.sources, rows, self._store.url, self.job.id, log,
            ("--image", how.image, *_room(how.max_concurrent), *_allowed(how.allow), *record),
        )  # fmt: skip


def _telling(watch: Watch, number: int) -> Callable[[str], None]:
    """Says of which worker a line is."""
    return lambda text: watch.on_death(f"Worker {number}: {text}")


def _solver(how: RunOptions, server: AnyServer) -> Solver:
    if how.agent == "nop":
        return NopAgent()
    if how.agent == "oracle":
        return OracleAgent(load_environments(how.sources))
    if how.agent == "random":
        return RandomAgent(load_environments(_loadable(how)), max_steps=how.max_steps)
    address = server.address
    if how.agent is not None and address is not None:
        return ReadyAgent(how.agent, url=address.url, token=address.token)
    reference = how.agent_python
    command = how.agent_command if reference is None else process_command(reference)
    if command is None or address is None:
        raise HudMcpError("A job is run by a built-in agent, or by a command over HTTP.")
    folder = Path(how.folder)
    return CommandAgent(
        command,
        url=address.url,
        token=address.token,
        folder=folder if folder.is_dir() else None,
        title="command" if reference is None else "process",
    )


def _loadable(how: RunOptions) -> list[str]:
    """The sources that this process can load."""
    return [source for source in how.sources if not is_bridged(source)]


def _allowed(hosts: Sequence[str]) -> list[str]:
    """What tells the server which local hosts rows may open."""
    return [text for host in hosts for text in ("--allow", host)]


def _room(max_concurrent: int) -> list[str]:
    """Limits that let so many sessions live at once; one that just ended may still count."""
    limits = _limits(max_concurrent)
    return [
        "--limit", f"sessions={limits.sessions}",
        "--limit", f"sessions_per_caller={limits.sessions_per_caller}",
    ]  # fmt: skip


def _limits(max_concurrent: int) -> Limits:
    wanted = 2 * max_concurrent
    default = Limits()
    return Limits(
        sessions=max(default.sessions, wanted),
        sessions_per_caller=max(default.sessions_per_caller, wanted),
    )

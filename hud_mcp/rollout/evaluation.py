"""A job while it runs: its server, its agent, its runs, and what is left of them at the end."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from hud_mcp.agents.command import CommandAgent
from hud_mcp.agents.oracle import NopAgent, OracleAgent
from hud_mcp.agents.random import RandomAgent
from hud_mcp.agents.ready import ReadyAgent
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.bridged import is_bridged
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.models.job.agent import ModelAgent
from hud_mcp.record.job import Job
from hud_mcp.rollout import surfaces
from hud_mcp.rollout.agent_process import process_command
from hud_mcp.rollout.attempt import Attempt, Bounds, Solver
from hud_mcp.rollout.conversation import SessionIds
from hud_mcp.rollout.link import Address
from hud_mcp.rollout.models import model_agent
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.pool import Pool, Worker
from hud_mcp.rollout.prepared import Prepared
from hud_mcp.rollout.run import Runs, Watch
from hud_mcp.rollout.served import Served, served
from hud_mcp.store import Store
from hud_mcp.values.needs import Needs

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
    ) -> None:
        self.prepared = prepared
        self.lost: str | None = None
        self.cut_off = 0
        self._store = store
        self._agent = agent
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
                    served(
                        self.prepared,
                        self._store,
                        folder=Path(folder),
                        log=log,
                        watch=watch,
                    ) as found,
                    self._with_person(watch),
                ):
                    runs = self._runs = self._begin(found, watch)
                    await runs.run(self.prepared.planned)
            finally:
                await self._flush_ends()
                if self._model is not None:
                    await self._model.aclose()

    def _begin(self, found: Served, watch: Watch) -> Runs:
        how, servers = self.prepared.how, found.servers
        at_once = min(_PLANNED, len(self.prepared.planned))
        begin = partial(
            Attempt,
            store=self._store,
            bounds=Bounds(how.timeout_s, how.max_steps),
            ids=SessionIds(self._store, self.job.id, at_once=at_once),
        )
        agent = self._agent
        if how.model is not None:
            spent_usd = self.prepared.spent_usd
            agent = self._model = model_agent(how.model, found.any_server, spent_usd=spent_usd)
        elif found.moves is not None:
            agent = agent or _solver(how, found.moves.address)
        workers = [
            Worker(
                server,
                partial(begin, solver=agent or _solver(how, server.address)),
                number,
                found.offers[number - 1] if found.offers else Needs(),
            )
            for number, server in enumerate(servers, 1)
        ]
        begins = Pool(workers, found.moves).begin
        return Runs(begins, max_concurrent=how.max_concurrent, retries=how.retries, watch=watch)

    @asynccontextmanager
    async def _with_person(self, watch: Watch) -> AsyncGenerator[None]:
        """Have a page for a person, where that is the agent."""
        how = self.prepared.how
        if how.agent != "human":
            yield
            return
        async with surfaces.human_agent(load_environments(_loadable(how))) as (
            self._agent,
            address,
        ):
            watch.on_note(f"Work on the tasks at {address}")
            yield

    async def _flush_ends(self) -> None:
        """Record the end of every run that has none; the server has ended."""
        runs = self._runs
        if runs is None:
            return
        self.lost = runs.lost
        self.cut_off = await runs.record_lost(runs.lost or "The evaluation was interrupted.")


def _solver(how: RunOptions, address: Address | None) -> Solver:
    if how.agent == "nop":
        return NopAgent()
    if how.agent == "oracle":
        return OracleAgent(load_environments(how.sources))
    if how.agent == "random":
        return RandomAgent(load_environments(_loadable(how)), max_steps=how.max_steps)
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

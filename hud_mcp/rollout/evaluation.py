"""A job while it runs: its servers, its agent, its runs, and the ends that are left to record."""

import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TextIO

from hud_mcp.agents.kind import Solver, Workplace
from hud_mcp.loading.source import Source, load_environments
from hud_mcp.record.job import Job
from hud_mcp.rollout.agents import open_agent, tools_of
from hud_mcp.rollout.attempt import Attempt, Bounds
from hud_mcp.rollout.conversation import SessionIds
from hud_mcp.rollout.link import Address
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.pool import Pool, Worker
from hud_mcp.rollout.prepared import Prepared
from hud_mcp.rollout.run import Runs, Watch
from hud_mcp.rollout.served import Served, served
from hud_mcp.store import Store
from hud_mcp.values.needs import Needs

__all__ = ["Evaluation", "report_folder"]

_PLANNED = 64
"""The most ids that one commit adds to the plan."""


def report_folder(store: Store) -> Path:
    """Return the folder beside the store for reports of jobs and logs of servers.

    Args:
        store: The store of the jobs. The folder of a database is in the user's data folder.
    """
    return store.folder / "reports"


class Evaluation:
    """The planned runs of a job.

    Args:
        store: Its store.
        prepared: The job and its planned runs.
        agent: The agent, if it is an object of this process; by default the job's options say.

    Attributes:
        prepared: The job and its planned runs.
        lost: The reason why no server was left at the end, or None.
        cut_off: The number of runs that a cancellation has cut off. They are recorded as lost.
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

    @property
    def job(self) -> Job:
        """The job."""
        return self.prepared.job

    async def run(self, log: TextIO, watch: Watch) -> None:
        """Make the planned runs. A failed run is data, and raises nothing.

        Args:
            log: The log of its servers.
            watch: Called as the job goes on.

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
        if agent is None and (found.moves is not None or not how.is_remote):
            # One for all servers: it has an address that stays, or needs none.
            address = None if found.moves is None else found.moves.address
            agent = await self._opened(stack, found, address, watch)
        workers = [
            Worker(
                server,
                partial(
                    begin, solver=agent or await self._opened(stack, found, server.address, watch)
                ),
                number,
                found.offers[number - 1] if found.offers else Needs(),
            )
            for number, server in enumerate(servers, 1)
        ]
        begins = Pool(workers, found.moves).begin
        return Runs(begins, max_concurrent=how.max_concurrent, retries=how.retries, watch=watch)

    async def _opened(
        self, stack: AsyncExitStack, found: Served, address: Address | None, watch: Watch
    ) -> Solver:
        how = self.prepared.how
        place = Workplace(
            environments=lambda: load_environments(_loadable(how)),
            max_steps=how.max_steps,
            url="" if address is None else address.url,
            token="" if address is None else address.token,
            list_tools=tools_of(found.any_server),
            spent_usd=self.prepared.spent_usd,
            note=watch.on_note,
        )
        return await stack.enter_async_context(open_agent(how, place))

    async def _flush_ends(self) -> None:
        """Record the end of every run without one. The servers have ended by then."""
        runs = self._runs
        if runs is None:
            return
        self.lost = runs.lost
        self.cut_off = await runs.record_lost(runs.lost or "The evaluation was interrupted.")


def _loadable(how: RunOptions) -> list[str]:
    """Return the sources that this process can load."""
    return [each for each in how.sources if not Source(each).is_remote]

"""A group's setup: run once, kept as a snapshot, and restored for the group's other runs.

Every run has a world of its own. A setup is shared only if its functions are the world's, and the
kind of world says that such a setup changes nothing but what its snapshot keeps.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio

from hud_mcp.environment import Environment
from hud_mcp.environment.calls import CallTemplate
from hud_mcp.environment.task import Task
from hud_mcp.environment.world import World
from hud_mcp.errors import HudMcpError
from hud_mcp.store import Store

logger = logging.getLogger(__name__)

_WORTH_S = 0.1
"""A setup that took less is run again, which is about as quick as a restore."""
_MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of all kept snapshots. A job's own are never given up for others."""

_Key = tuple[str, str | None, Environment, str, str]


@dataclass(eq=False)
class Kept:
    """The setup of one group.

    Attributes:
        left: The number of runs that have not asked for it.
        by: The record's id of the run that ran it.
        data: The snapshot; None if each run sets itself up.
        tried: Set once the first run's setup is over.
    """

    left: int
    by: str
    data: bytes | None = None
    tried: anyio.Event = field(default_factory=anyio.Event)


class GroupSetups:
    """The snapshots after setup that the sessions of one process share, by job and task."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._groups: dict[str, int] = {}
        self.kept: dict[_Key, Kept] = {}

    def of(
        self, task: Task, environment: Environment, principal: str | None, job_id: str | None
    ) -> "GroupSetup | None":
        """Return the setup that a principal's new session shares; None if it cannot be shared.

        The task is bound to its environment. Nothing is shared with another principal.
        """
        if job_id is None or task.prompt is None or not task.setup:
            return None
        functions = environment.functions
        named = [functions[call.function] for call in task.setup]
        if not environment.world.shares_setup(named):
            return None
        context = repr(sorted(environment.context_space.fill(task.context).items()))
        key = (job_id, principal, environment, task.asked(fixed=False), context)
        return GroupSetup(self, key)

    async def group(self, job_id: str) -> int:
        """Return the number of runs of each task of a job; 1 if it is not known."""
        known = self._groups.get(job_id)
        if known is None:
            try:
                job, _ids = await self._store.load_job_ids(job_id)
                known = job.group
            except HudMcpError as exc:
                logger.info("the group of %s is not known: %s", job_id, exc)
                known = 1
            self._groups[job_id] = known
        return known

    def make_room(self, size: int, job_id: str) -> bool:
        """Whether one more snapshot may be kept; those of other jobs are given up for it."""
        for key in [key for key in self.kept if key[0] != job_id]:
            if self._bytes() + size <= _MOST_BYTES:
                break
            if self.kept[key].tried.is_set():
                del self.kept[key]
        return self._bytes() + size <= _MOST_BYTES

    def _bytes(self) -> int:
        return sum(len(each.data) for each in self.kept.values() if each.data is not None)


@dataclass(frozen=True)
class GroupSetup:
    """The setup that one session, with the record `by`, shares with its group."""

    setups: GroupSetups = field(repr=False)
    key: _Key
    by: str = ""

    def of_session(self, trajectory_id: str) -> "GroupSetup":
        """Return the same setup for a session with this record."""
        return replace(self, by=trajectory_id)

    async def apply(
        self,
        world: World,
        template: CallTemplate,
        *,
        reopen: Callable[[], Awaitable[World]],
        log: Callable[[str], None],
    ) -> World:
        """Set a freshly opened world up: by its group's snapshot, or by the calls.

        The first run of a group runs the calls while the others wait for it. If a restore fails,
        `reopen` closes the world and opens another one, which is returned. Raises whatever the
        calls raise.
        """
        group = await self.setups.group(self.key[0])
        if group < 2:  # noqa: PLR2004  # one shares nothing
            await template.set_up(world.unwrapped)
            return world
        kept = self.setups.kept.get(self.key)
        if kept is None:
            kept = self.setups.kept[self.key] = Kept(group - 1, self.by)
            await self._run_first(kept, world, template, log)
            return world
        await kept.tried.wait()
        data = self._take(kept)
        if data is None:
            await template.set_up(world.unwrapped)
            return world
        try:
            await world.restore(data)
        except Exception as exc:  # noqa: BLE001  # whatever it is, a new world is set up by the calls
            log(f"setup was not restored, so it is run: {_why(exc)}")
            world = await reopen()
            await template.set_up(world.unwrapped)
        else:
            log(f"setup was restored from the snapshot that {kept.by} took after its own")
        return world

    async def _run_first(
        self, kept: Kept, world: World, template: CallTemplate, log: Callable[[str], None]
    ) -> None:
        done = False
        try:
            began = time.monotonic()
            await template.set_up(world.unwrapped)
            took_s = time.monotonic() - began
            if took_s >= _WORTH_S:
                await self._keep(kept, world, log)
            done = True
        finally:
            if not done and self.setups.kept.get(self.key) is kept:
                del self.setups.kept[self.key]  # the next one that begins is the first again
            kept.tried.set()

    async def _keep(self, kept: Kept, world: World, log: Callable[[str], None]) -> None:
        try:
            data = await world.snapshot_setup()
        except Exception as exc:
            if world.died is not None:
                raise
            log(f"setup is run by each run of the group, as no snapshot was taken: {_why(exc)}")
            return
        if data is None:
            return
        if not self.setups.make_room(len(data), self.key[0]):
            log("setup is run by each run of the group, as too many snapshots are kept already")
            return
        kept.data = data
        log("setup was run, and a snapshot after it is kept for the group's other runs")

    def _take(self, kept: Kept) -> bytes | None:
        """Return the snapshot for one run; the group's last one leaves nothing behind."""
        data = kept.data
        kept.left -= 1
        if kept.left <= 0 and self.setups.kept.get(self.key) is kept:
            del self.setups.kept[self.key]
        return data


def _why(exc: Exception) -> str:
    return str(exc) if isinstance(exc, HudMcpError) else f"{type(exc).__name__}: {exc}"

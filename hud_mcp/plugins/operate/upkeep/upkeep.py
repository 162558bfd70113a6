"""The operations of a store's owner: measure, verify, shrink, prune and copy."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.operate import sql
from hud_mcp.plugins.operate.upkeep import pictures
from hud_mcp.plugins.operate.upkeep.copying import Side, copy
from hud_mcp.plugins.operate.upkeep.values import Copied, Finding, Holdings, Pruned, Vacuumed
from hud_mcp.plugins.operate.upkeep.verification import verify
from hud_mcp.record.place import read_place, shown_url
from hud_mcp.record.values import utc_now
from hud_mcp.store import Store
from hud_mcp.values.model_turn import RedactedField

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["OnProgress", "Upkeep"]

OnProgress = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""


class Upkeep:
    """The upkeep of a store that stays open: measure, verify, shrink, prune, copy and redact it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = store.database

    async def measure(self) -> Holdings:
        """Return the store's contents in numbers, and its size.

        Raises:
            SourceNotFound: There is no store.
            StoreFailed: The store cannot be read.
        """
        self._store.look_for_it()
        path, lease = read_place(self._store.url)[1], self._database.lease

        def read(connection: "Connection") -> Holdings:
            counts = sql.holdings.count(connection)
            alive = sql.holdings.alive_servers(connection, lease.server_id, lease.is_alive)
            database_bytes, free_bytes = sql.holdings.size_of(connection, path)
            held = sum(alive.values())
            count = size = unused = unused_bytes = 0
            others = pictures.other_stores(self._store.screenshots, self._store.url)
            for file in pictures.list_pictures(self._store.screenshots):
                count, size = count + 1, size + file.size
            if count:
                files = pictures.list_pictures(self._store.screenshots)
                with closing(_names(connection, others)) as names:
                    for file in pictures.unused(files, names):
                        unused, unused_bytes = unused + 1, unused_bytes + file.size
            return Holdings(
                url=shown_url(self._store.url),
                servers=len(alive),
                held=held,
                waiting=counts["sessions"].get("unfinished", 0) - held,
                database_bytes=database_bytes,
                free_bytes=free_bytes,
                folder=self._store.screenshots,
                pictures=count,
                picture_bytes=size,
                unused=unused,
                unused_bytes=unused_bytes,
                shared_with=tuple(others),
                **counts,
            )

        return await self._database.read(read)

    async def verify(self, *, on_progress: OnProgress | None = None) -> list[Finding]:
        """Look for damage in the database and among the pictures; nothing is changed.

        Args:
            on_progress: Called on another thread with how many rows and pictures were looked at,
                and how many there are.

        Returns:
            What is damaged or left over; empty where all is sound.

        Raises:
            SourceNotFound: There is no store.
        """
        self._store.look_for_it()
        bring = None if self._store.objects is None else self._store.objects.get
        return await anyio.to_thread.run_sync(
            verify, self._store.url, self._store.screenshots, on_progress, bring
        )

    async def vacuum(self, *, beside: Sequence[str] = ()) -> Vacuumed:
        """Remove pictures that no store refers to, and give back the database's free pages.

        It is safe beside a living server: pictures of the last hour stay, and a SQLite file is
        only made smaller there if `vacuum` has prepared it while no server ran.

        Args:
            beside: URLs of other stores that keep their pictures in the same folder, where they
                need a password.

        Raises:
            SourceNotFound: There is no store.
            StoreFailed: The store cannot be read or written.
        """
        self._store.look_for_it()
        path, lease = read_place(self._store.url)[1], self._database.lease
        count, size, notes = await self._remove_unused(beside)

        def free(connection: "Connection") -> int:
            before = sql.holdings.size_of(connection, path)[0]
            alive = (
                sql.holdings.alive_servers(connection, lease.server_id, lease.is_alive)
                if path
                else {}
            )
            if not alive:
                sql.holdings.free_pages(connection)
            elif not sql.holdings.free_pages_slowly(connection):
                notes.append(
                    "A server uses the file, so its free pages stay in it, for what comes. Stop "
                    "the server, then call vacuum again."
                )
            return max(0, before - sql.holdings.size_of(connection, path)[0])

        freed = await self._database.read(free)
        return Vacuumed(count, size, freed, tuple(notes))

    async def prune(
        self,
        before: datetime,
        *,
        keep_grades: bool = False,
        job_id: str | None = None,
        rule: str | None = None,
        dry_run: bool = False,
        beside: Sequence[str] = (),
        on_progress: OnProgress | None = None,
    ) -> Pruned:
        """Remove the steps, pictures, turns and logs of trajectories that ended before a time.

        Each keeps a marker of what was removed, when, and by which rule. Trajectories that have
        not ended stay whole. A failure or a cancellation leaves each one pruned or whole; the
        same call again goes on.

        Args:
            before: Sessions that ended before this time.
            keep_grades: Whether the tasks, receipts and grades stay, so that the figures of jobs
                stay right. Else the grades of a job are removed once all of its runs are old
                enough, and its tasks with them.
            job_id: Only those of this job.
            rule: The rule in words, for the marker.
            dry_run: Whether to say only what would be removed.
            beside: As for `vacuum`.
            on_progress: Called with how many trajectories are done, and how many there are.

        Raises:
            SourceNotFound: There is no store, or no such job.
            StoreFailed: The store cannot be read or written.
        """
        self._store.look_for_it()
        if job_id is not None:
            await self._store.load_job_ids(job_id)
        wanted = sql.pruning.Rule(
            before=before,
            keep_grades=keep_grades,
            job_id=job_id,
            text=rule or f"ended before {before:%Y-%m-%d %H:%M} UTC",
            at=utc_now(),
        )
        found = await self._database.read(lambda c: sql.pruning.count_prunable(c, wanted))
        if dry_run:
            return Pruned(found.runs, 0, found.steps, found.turns, found.lines)
        runs = steps = turns = lines = 0
        last: tuple[datetime, str] | None = None
        while True:
            prune = partial(sql.pruning.prune_batch, rule=wanted, after=last)
            batch = await self._database.write(prune)
            runs, steps = runs + batch.runs, steps + batch.steps
            turns, lines, last = turns + batch.turns, lines + batch.lines, batch.last
            if last is None:
                break
            if on_progress is not None:
                on_progress(runs, max(runs, found.runs))
        jobs = await self._database.write(lambda c: sql.pruning.empty_jobs(c, wanted))
        count, size, notes = await self._remove_unused(beside) if steps else (0, 0, [])
        return Pruned(runs, jobs, steps, turns, lines, count, size, tuple(notes))

    async def copy_to(self, target: Store, *, on_progress: OnProgress | None = None) -> Copied:
        """Copy everything to another store, and compare both sides at the end.

        A copy that was interrupted goes on where it was; until it is finished, nobody else opens
        it. Servers, and the connections that they serve, are not copied.

        Args:
            target: A store that does not exist yet or is empty, or an unfinished copy of this one.
            on_progress: Called on another thread with how many rows are done, and how many there
                are: each is counted as it is copied, and on both sides as it is compared.

        Raises:
            SourceNotFound: There is no store.
            StoreFailed: The target holds something else, a living server uses this store, a row is
                damaged, or both sides are not the same in the end.
        """
        self._store.look_for_it()
        if self._store.url.partition("?")[0] == target.url.partition("?")[0] and (
            self._store.url == target.url or read_place(self._store.url)[1] is not None
        ):
            raise StoreFailed("The target is this store itself; name another one.")
        lease = self._database.lease

        def run(connection: "Connection") -> Copied:
            alive = sql.holdings.alive_servers(connection, lease.server_id, lease.is_alive)
            if alive:
                raise StoreFailed(
                    f"{len(alive)} living servers use the store, and may write to it. Stop them, "
                    "then copy again."
                )
            return copy(connection, Side.of(self._store), Side.of(target), on_progress)

        return await self._database.read(run)

    async def redact(
        self, trajectory_ids: Sequence[str], fields: Sequence[RedactedField]
    ) -> tuple[int, int]:
        """Remove fields from all turns of some sessions for good. Each turn keeps a marker of it.

        Returns:
            The number of turns, and the number of turns that had such fields.

        Raises:
            StoreFailed: Nothing was removed; or SQLite's log still contains the removed text, as
                the error then says. The same call again empties the log.
        """
        at = utc_now()
        done: tuple[int, int] = await self._database.write(
            lambda c: sql.pruning.redact(c, trajectory_ids, fields, at)
        )
        await self._database.read(sql.pruning.empty_log)
        return done

    async def _remove_unused(self, beside: Sequence[str]) -> tuple[int, int, list[str]]:
        """Remove the pictures that no store refers to; return count, bytes, and why some stay."""

        def remove(connection: "Connection") -> tuple[int, int, int]:
            others = pictures.other_stores(self._store.screenshots, self._store.url)
            given = {shown_url(url): url for url in beside}
            others = [given.get(other, other) for other in dict.fromkeys([*others, *given])]
            with closing(_names(connection, others)) as names:
                return pictures.remove_unused(self._store.screenshots, names)

        try:
            count, size, young = await self._database.read(remove)
        except StoreFailed as exc:
            return 0, 0, [f"All pictures stay: {exc} Name it with --beside, with its password."]
        stay = f"{young} unused pictures were written or used in the last hour, and stay."
        notes = [stay] if young else []
        if self._store.objects is not None:
            notes.append("Only the copies on this machine were removed: the object store has all.")
        return count, size, notes


def _names(connection: "Connection", others: Sequence[str]) -> "Generator[str, None, None]":
    return pictures.all_names(_own_names(connection), others)


def _own_names(connection: "Connection") -> "Generator[str, None, None]":
    with closing(sql.holdings.picture_names(connection)) as found:
        for name, _ in found:
            yield name

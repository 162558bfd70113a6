"""The operations of a store's owner: measure, verify, shrink, prune and copy."""

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from sqlalchemy import Connection, func, select

from hud_mcp.errors import StoreFailed
from hud_mcp.plugins.operate.upkeep import pictures, pruning
from hud_mcp.plugins.operate.upkeep.copying import copy
from hud_mcp.plugins.operate.upkeep.soundness import verify
from hud_mcp.plugins.operate.values import Copied, Finding, Holdings, OnProgress, Pruned, Vacuumed
from hud_mcp.record.place import read_place, shown_url
from hud_mcp.record.values import utc_now
from hud_mcp.store import Store
from hud_mcp.store.sql.schema import (
    VERSION,
    jobs,
    logs,
    metadata,
    servers,
    sessions,
    sound_json,
    steps,
    turns,
)
from hud_mcp.values.model_turn import RedactedField


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

        def read(connection: Connection) -> Holdings:
            counts = _count_all(connection)
            alive = _alive_servers(connection, lease.server_id, lease.is_alive)
            database_bytes, free_bytes = _size_of(connection, path)
            held = sum(alive.values())
            count = size = unused = unused_bytes = 0
            others = pictures.other_stores(self._store.screenshots, self._store.url)
            for file in pictures.list_pictures(self._store.screenshots):
                count, size = count + 1, size + file.size
            if count:
                files = pictures.list_pictures(self._store.screenshots)
                with closing(pictures.all_names(connection, others)) as names:
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

        def free(connection: Connection) -> int:
            before = _size_of(connection, path)[0]
            alive = _alive_servers(connection, lease.server_id, lease.is_alive) if path else {}
            if not alive:
                _free_pages(connection)
            elif not _free_pages_slowly(connection):
                notes.append(
                    "A server uses the file, so its free pages stay in it, for what comes. Stop "
                    "the server, then call vacuum again."
                )
            return max(0, before - _size_of(connection, path)[0])

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
        wanted = pruning.Rule(
            before=before,
            keep_grades=keep_grades,
            job_id=job_id,
            text=rule or f"ended before {before:%Y-%m-%d %H:%M} UTC",
            at=utc_now(),
        )
        found = await self._database.read(lambda c: pruning.count_prunable(c, wanted))
        if dry_run:
            return Pruned(found.runs, 0, found.steps, found.turns, found.lines)
        runs = steps = turns = lines = 0
        last: tuple[datetime, str] | None = None
        while True:
            prune = partial(pruning.prune_batch, rule=wanted, after=last)
            batch = await self._database.write(prune)
            runs, steps = runs + batch.runs, steps + batch.steps
            turns, lines, last = turns + batch.turns, lines + batch.lines, batch.last
            if last is None:
                break
            if on_progress is not None:
                on_progress(runs, max(runs, found.runs))
        jobs = await self._database.write(lambda c: pruning.empty_jobs(c, wanted))
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

        def run(connection: Connection) -> Copied:
            alive = _alive_servers(connection, lease.server_id, lease.is_alive)
            if alive:
                raise StoreFailed(
                    f"{len(alive)} living servers use the store, and may write to it. Stop them, "
                    "then copy again."
                )
            return copy(connection, self._store, target, on_progress)

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
            lambda c: pruning.redact(c, trajectory_ids, fields, at)
        )
        await self._database.read(pruning.empty_log)
        return done

    async def _remove_unused(self, beside: Sequence[str]) -> tuple[int, int, list[str]]:
        """Remove the pictures that no store refers to; return count, bytes, and why some stay."""

        def remove(connection: Connection) -> tuple[int, int, int]:
            others = pictures.other_stores(self._store.screenshots, self._store.url)
            given = {shown_url(url): url for url in beside}
            others = [given.get(other, other) for other in dict.fromkeys([*others, *given])]
            with closing(pictures.all_names(connection, others)) as names:
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


_PAGES = 500
"""The pages of one transaction, so that a server that waits does not wait long."""


_READERS_MS = 200
"""The time that emptying the log may wait for readers."""


def _count_all(connection: Connection) -> dict[str, Any]:
    """Return the counts of rows, and the first and last beginning, by the names of `Holdings`."""
    outcome = sound_json(connection, sessions.c.receipt)["outcome"].as_string()
    ended = func.coalesce(outcome, "unfinished").label("ended")
    by_end = select(ended, func.count()).group_by(ended).order_by(ended)
    oldest, newest = connection.execute(
        select(func.min(sessions.c.started_at), func.max(sessions.c.started_at))
    ).one()
    pruned = select(func.count()).where(sessions.c.pruned.is_not(None))
    return {
        "version": VERSION,
        "jobs": _rows(connection, jobs),
        "sessions": {row[0]: row[1] for row in connection.execute(by_end)},
        "steps": _rows(connection, steps),
        "turns": _rows(connection, turns),
        "lines": _rows(connection, logs),
        "pruned": connection.execute(pruned).scalar_one(),
        "oldest": oldest if isinstance(oldest, datetime) else None,
        "newest": newest if isinstance(newest, datetime) else None,
    }


def _alive_servers(
    connection: Connection, own_id: str, is_alive: Callable[[Connection, str], bool]
) -> dict[str, int]:
    """Return the other living servers, each with its number of unfinished sessions."""
    found: dict[str, int] = {}
    for server in connection.execute(select(servers.c.id)).scalars().all():
        if server != own_id and is_alive(connection, server):
            held = select(func.count()).where(
                sessions.c.owner == server, sessions.c.ended_at.is_(None)
            )
            found[server] = connection.execute(held).scalar_one()
    return found


def _size_of(connection: Connection, path: Path | None) -> tuple[int, int | None]:
    """Return the bytes that the database takes, and the free ones of them; None if unknown."""
    if path is None:
        total = 0
        for table in metadata.tables:
            size = func.pg_total_relation_size(func.to_regclass(table))
            total += connection.execute(select(func.coalesce(size, 0))).scalar_one()
        return total, None
    files = (path, path.with_name(f"{path.name}-wal"))
    total = sum(each.stat().st_size for each in files if each.exists())
    free = _pragma(connection, "freelist_count") * _pragma(connection, "page_size")
    return total, free


def _free_pages(connection: Connection) -> None:
    """Give back free space: of SQLite while no other process uses it, of PostgreSQL always."""
    connection.rollback()
    own = connection.execution_options(isolation_level="AUTOCOMMIT")
    if connection.dialect.name != "sqlite":
        for table in metadata.tables:
            own.exec_driver_sql(f'VACUUM (ANALYZE) "{table}"')
        return
    own.exec_driver_sql("PRAGMA auto_vacuum=INCREMENTAL")  # the next time it needs not be alone
    own.exec_driver_sql("VACUUM")
    own.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()


def _free_pages_slowly(connection: Connection) -> bool:
    """Give back free space of SQLite beside a server; return whether this file allows that."""
    if _pragma(connection, "auto_vacuum") != 2:  # noqa: PLR2004  # INCREMENTAL, which `free_pages` sets
        return False
    connection.rollback()
    own = connection.execution_options(isolation_level="AUTOCOMMIT")
    before = _pragma(connection, "freelist_count")
    while before:
        moved = own.exec_driver_sql(f"PRAGMA incremental_vacuum({_PAGES})")
        if moved.returns_rows:
            moved.all()
        left = _pragma(connection, "freelist_count")
        if left >= before:
            break
        before = left
    # It holds up writers while it waits for readers; what it cannot do now, a later commit does.
    own.exec_driver_sql(f"PRAGMA busy_timeout={_READERS_MS}")
    own.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
    own.exec_driver_sql(f"PRAGMA busy_timeout={connection.info['timeout_ms']}")
    return True


def _rows(connection: Connection, table: Any) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _pragma(connection: Connection, name: str) -> int:
    return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()

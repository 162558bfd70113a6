"""A store of an earlier version is brought up to date when it is opened, with all that it holds."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from records import execute, libpq, picture, receipt, step
from sqlalchemy import Connection, create_engine, inspect, text
from store_server import Server
from waiting import PATIENCE_S

from hud_mcp.errors import StoreFailed
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store
from hud_mcp.store.sql.migrations import REVISIONS, upgrade
from hud_mcp.store.sql.schema import VERSION, metadata

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parent.parent / "data"
TABLES = ("jobs", "sessions", "steps", "logs", "versions")


@pytest.fixture
def old_url(url: str) -> str:
    """A store of version 1 that a run of version 0.1.0 has written."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.executescript((DATA / "store_v1.sql").read_text())
        file.close()
        return url
    with sqlite3.connect(":memory:") as old:
        old.executescript((DATA / "store_v1.sql").read_text())
        old.execute("UPDATE sessions SET seed = seed % 1000")  # its PostgreSQL had 32 bits for it
    engine = create_engine(url)
    with engine.begin() as connection:
        upgrade(connection, 0, 1)
    engine.dispose()
    with psycopg.connect(libpq(url)) as new:
        new.execute("SET TIME ZONE 'UTC'")
        for table in TABLES:
            rows = old.execute(f"SELECT * FROM {table}").fetchall()
            places = ", ".join(["%s"] * len(rows[0]))
            new.cursor().executemany(f"INSERT INTO {table} VALUES ({places})".encode(), rows)
        new.execute("SELECT setval('logs_id_seq', max(id)) FROM logs")
    old.close()
    return url


def expected() -> dict[str, Any]:
    """What version 0.1.0 itself read from it."""
    return json.loads((DATA / "store_v1.json").read_text())


def without_places(read: Trajectory) -> Trajectory:
    """A record as it was written: where its pictures are depends on the folder."""
    steps = tuple(s.model_copy(update={"observation_url": None}) for s in read.steps)
    return read.model_copy(update={"steps": steps})


async def test_all_that_an_old_store_holds_is_there_after_it_was_migrated(
    old_url: str, open_store: Callable[..., Store]
) -> None:
    """Sessions that ended and that go on, with steps, pictures, logs, receipts, and jobs."""
    told = expected()
    # Nothing is known of its plan: all that was begun in it counts, as before.
    job = Job.model_validate({**told.pop("job"), "planned": None})
    store = open_store()
    for name, values in told.items():
        read = await store.load_trajectory(name)
        if values["seed"] is not None and not old_url.startswith("sqlite"):
            values["seed"] = abs(values["seed"]) % 1000 * (1 if values["seed"] > 0 else -1)
        assert without_places(read) == Trajectory.model_validate(values)
    assert len(told) == 4
    read_job, tasks, runs = await store.load_job_summary(job.id)
    assert (read_job, tasks) == (job, [])
    assert [(run.id, run.step_count, run.damage) for run in runs] == [
        ("traj-graded", 3, None),
        ("traj-lost", 3, None),
        ("traj-open", 3, None),
    ]
    assert [j.id for j in await store.list_jobs()] == ["job-000000000002", job.id]
    assert await store.find_session("3" * 64, principal="alice") == ("traj-alone", None)
    assert execute(old_url, "SELECT version FROM versions") == [(VERSION,)]


async def test_a_session_of_an_old_store_goes_on(
    old_url: str, open_store: Callable[..., Store]
) -> None:
    """A migrated store can be written: a server takes the session up, and ends it."""
    store = open_store()
    waiting = await store.waiting_sessions(["shop"])
    assert [(w.trajectory_id, w.has_prompt) for w in waiting] == [
        ("traj-open", True),
        ("traj-alone", False),
    ]
    assert await store.claim_session("traj-open")
    held = await store.load_session("traj-open")
    assert (held.secret_digest, held.reward_policy, held.lines) == ("2" * 64, "hidden", 0)
    shot = picture()
    row = step(3, screenshot=ScreenshotRecord.of(shot))
    await store.add_step("traj-open", row, shot, snapshot=b"state")
    await store.add_logs("traj-open", [(row.ended_at, "went on")], first=held.lines)
    await store.end_session("traj-open", receipt(trajectory="traj-open"))
    read = await store.load_trajectory("traj-open")
    assert [s.index for s in read.steps] == [0, 1, 2, 3]
    assert read.logs is not None
    assert read.logs.endswith("went on") or read.logs.startswith("03:04:05 went on")
    assert read.reward == 0.5
    if old_url.startswith("sqlite"):
        assert execute(old_url, "PRAGMA foreign_key_check") == []


def tables_of(connection: Connection) -> dict[str, Any]:
    """All that a database knows of its tables."""
    inspector = inspect(connection)
    names = set(inspector.get_table_names())
    return {
        name: {
            "columns": {
                c["name"]: (str(c["type"]), c["nullable"]) for c in inspector.get_columns(name)
            },
            "indexes": sorted(
                (
                    str(i["name"]),
                    i["column_names"],
                    bool(i["unique"]),
                    # A partial one's condition, without PostgreSQL's parentheses.
                    [str(v).strip("()") for k, v in i["dialect_options"].items() if "where" in k],
                )
                for i in inspector.get_indexes(name)
            ),
            "unique": sorted(str(u["name"]) for u in inspector.get_unique_constraints(name)),
            "key": inspector.get_pk_constraint(name)["constrained_columns"],
            "refers": sorted(str(f["referred_table"]) for f in inspector.get_foreign_keys(name)),
        }
        for name in names
    }


async def test_the_revisions_make_exactly_what_is_declared(
    url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A migrated store and a new one are the same, on either database; nothing is left to do."""
    request.getfixturevalue("old_url")
    made = {}
    new_url = f"sqlite:///{tmp_path}/new.sqlite3"
    if not url.startswith("sqlite"):
        new_url = request.getfixturevalue("cluster").new_schema()
    for place in (url, new_url):
        store = Store(place)
        await store.list_jobs()
        await store.close()
        engine = create_engine(place)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, metadata) == []
            made[place] = tables_of(connection)
        engine.dispose()
    assert made[url] == made[new_url]
    assert set(made[url]) == set(metadata.tables)
    going_on = ("sessions_going_on", ["owner"], False, ["ended_at IS NULL"])
    assert going_on in made[url]["sessions"]["indexes"]


def test_the_newest_revision_is_the_version() -> None:
    """Whoever adds a revision raises the version, and the other way round."""
    assert len(REVISIONS) == VERSION


async def test_several_processes_may_open_an_old_store_at_once(
    old_url: str, serve: Callable[..., Server]
) -> None:
    """One migrates it, the others wait and find it migrated."""
    servers = [serve() for _ in range(5)]
    with anyio.fail_after(PATIENCE_S):
        for server in servers:
            assert await server.ask("block", 0) is None  # it runs
        for server in servers:
            server.tell("trajectories of", "job-000000000001")
        told = [await server.answer() for server in servers]
    assert told == [["traj-graded", "traj-lost", "traj-open"]] * 5
    assert execute(old_url, "SELECT version FROM versions") == [(VERSION,)]


def content(url: str) -> Any:
    """All that is in a database."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            dump = list(file.iterdump())
        file.close()
        return dump
    engine = create_engine(url)
    with engine.connect() as connection:
        found = tables_of(connection)
    engine.dispose()
    return found, [execute(url, f"SELECT * FROM {table} ORDER BY 1") for table in TABLES]


@pytest.mark.parametrize(
    ("obstacle", "mended"),
    [
        ("CREATE TABLE snapshots (x INTEGER)", "DROP TABLE snapshots"),
        ("CREATE INDEX sessions_going_on ON jobs (id)", "DROP INDEX sessions_going_on"),
    ],
    ids=["at its beginning", "at its end"],
)
async def test_a_migration_that_fails_leaves_the_old_store_as_it_was(
    old_url: str, open_store: Callable[..., Store], obstacle: str, mended: str
) -> None:
    """To the last byte of its tables; once what was in its way is gone, it succeeds."""
    execute(old_url, obstacle)
    before = content(old_url)
    store = open_store()
    said = "version 1 could not be upgraded: .*already exists.* It is unchanged"
    with pytest.raises(StoreFailed, match=said):
        await store.load_trajectory("traj-open")
    with pytest.raises(StoreFailed, match=said):
        await store.add_job(Job(name="a"))
    assert content(old_url) == before
    execute(old_url, mended)
    assert (await store.load_trajectory("traj-open")).id == "traj-open"


async def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(
    url: str, open_store: Callable[..., Store]
) -> None:
    """An older program does not write what a newer one would not understand.

    Version 0.1.0 asks the same question, so that it refuses a store that was migrated.
    """
    first = open_store()
    await first.add_job(Job(name="a"))
    await first.close()
    execute(url, "UPDATE versions SET version = 99")
    before = content(url)
    newer = open_store()
    said = f"has version 99, this program reads up to {VERSION}; update hud-mcp, or name another"
    with pytest.raises(StoreFailed, match=said):
        await newer.load_trajectory("traj-1")
    with pytest.raises(StoreFailed, match=said):
        await newer.add_job(Job(name="a"))
    assert content(url) == before


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE sessions (token TEXT)",
        "CREATE TABLE versions (id INTEGER, item TEXT)",
        "CREATE TABLE versions (version TEXT); INSERT INTO versions VALUES ('1.0')",
    ],
)
async def test_a_database_of_another_program_is_refused(
    url: str, open_store: Callable[..., Store], made: str
) -> None:
    """Its tables have names that others use too; nothing is written among them."""
    for statement in made.split(";"):
        execute(url, statement)
    inside = execute(url, f"SELECT * FROM {made.split()[2]}")
    with pytest.raises(StoreFailed, match=r"tables of another program .* a database of its own"):
        await open_store().add_job(Job(name="a"))
    assert execute(url, f"SELECT * FROM {made.split()[2]}") == inside


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("DROP TABLE steps", "no table steps"),
        ("ALTER TABLE sessions DROP COLUMN receipt", "no column sessions.receipt"),
        ("DELETE FROM versions", "no version"),
        ("DROP TABLE versions", "no version"),
        ("INSERT INTO versions VALUES (99)", "no version"),
    ],
)
async def test_a_store_that_lacks_a_part_is_named_before_anything_runs(
    url: str, open_store: Callable[..., Store], statement: str, named: str
) -> None:
    """It cannot be half used: what begins in it would come to no end."""
    store = open_store()
    await store.add_job(Job(name="a"))
    await store.close()
    execute(url, statement)
    damaged = open_store()
    for use in (damaged.list_jobs(), damaged.add_job(Job(name="b"))):
        with pytest.raises(StoreFailed, match=f"The store is damaged: it has {named}") as got:
            await use
        assert "name another store with --store" in str(got.value)


async def test_a_server_of_the_version_before_goes_on_after_the_migration(
    url: str, store: Store
) -> None:
    """What the newest revision added may be left out by whoever does not know of it."""
    await store.list_jobs()
    engine = create_engine(url)
    with engine.connect() as connection:
        columns = {c["name"]: c for c in inspect(connection).get_columns("servers")}
        assert all(columns[name]["nullable"] for name in ("advertised", "tag", "is_draining"))
        connection.execute(
            text(
                "INSERT INTO servers (id, machine, started_at, beat_at, beat_s) "
                "VALUES ('srv-old', 'm', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, 0)"
            )
        )
    engine.dispose()
    assert execute(url, "SELECT version FROM versions") == [(VERSION,)]

"""A replica of an older version on a store that a newer one has migrated."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flock import SECRET, in_thread
from peers import child_environment, serve_arguments
from postgresql import Cluster, find_programs
from sqlalchemy import create_engine, text
from waiting import PATIENCE_S

from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.store.sql.schema import VERSION

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the replicas keep their record."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'shared.sqlite3'}"
        return
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed: make test installs it")
    cluster = Cluster(programs)
    try:
        cluster.start()
        yield cluster.new_schema()
    finally:
        cluster.remove()


async def test_a_replica_ends_before_it_serves_where_the_store_is_newer(
    store: str, tmp_path: Path
) -> None:
    """It says which version it reads and what to do, and tells its address to nobody."""
    made = Store(store)
    await made.add_job(Job(name="a"))
    await made.close()
    engine = create_engine(store)
    try:
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE versions SET version = {VERSION + 1}"))

        def begin() -> subprocess.CompletedProcess[str]:
            given = serve_arguments(
                ("letter_count",), store, "--http", "127.0.0.1:0", "--replica", "r1"
            )
            return subprocess.run(
                [sys.executable, *given],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                env=child_environment(
                    HUD_MCP_REPLICA_SECRET=SECRET, XDG_DATA_HOME=str(tmp_path / "data")
                ),
                check=False,
            )

        ended = await in_thread(begin)
        assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
        assert (
            f"Error: The store has version {VERSION + 1}, this program reads up to {VERSION}; "
            "update hud-mcp, or name another store with --store." in ended.stderr
        )
        with engine.connect() as connection:
            told = connection.execute(text("SELECT count(*) FROM servers WHERE tag = 'r1'"))
            assert told.scalar_one() == 0
    finally:
        engine.dispose()

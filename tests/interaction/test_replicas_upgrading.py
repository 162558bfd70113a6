"""A replica of an older version on a store that a newer one has migrated."""

import subprocess
import sys
from pathlib import Path

import pytest
from flock import SECRET, in_thread
from peers import child_environment, serve_arguments
from sqlalchemy import create_engine, text
from waiting import PATIENCE_S

from hud_mcp.record.job import Job
from hud_mcp.store import Store
from hud_mcp.store.sql.schema import VERSION

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.mark.parametrize("store_url", ["sqlite", "postgresql"], indirect=True)
async def test_a_replica_ends_before_it_serves_where_the_store_is_newer(
    store_url: str, tmp_path: Path
) -> None:
    """It says which version it reads and what to do, and tells its address to nobody."""
    made = Store(store_url)
    await made.add_job(Job(name="a"))
    await made.close()
    engine = create_engine(store_url)
    try:
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE versions SET version = {VERSION + 1}"))

        def begin() -> subprocess.CompletedProcess[str]:
            given = serve_arguments(
                ("letter_count",), store_url, "--http", "127.0.0.1:0", "--replica", "r1"
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
